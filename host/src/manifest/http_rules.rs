//! Rules for `http` as they stand in a manifest or a grant, and how a request and a grant meet.

use crate::grant::HttpRule;
use crate::yaml;
use expect_test::{Expect, expect};

fn rule(text: &str) -> Result<HttpRule, String> {
    yaml::from_str(text)
}

fn check(yaml: &str, expected: Expect) {
    expected.assert_eq(&match rule(yaml) {
        Ok(rule) => serde_json::to_string(&rule).unwrap(),
        Err(error) => error,
    });
}

#[test]
fn a_rule_is_valid_once_it_is_read() {
    check(
        "{ origin: 'https://api.example.org', methods: [get, POST], inject: { Authorization: 'Bearer ${token}' } }",
        expect![[
            r#"{"origin":"https://api.example.org","methods":["GET","POST"],"inject":{"authorization":"Bearer ${token}"}}"#
        ]],
    );
    let wrong = |yaml: &str, words: &str| {
        let error = rule(yaml).expect_err(yaml);
        assert!(error.contains(words), "{yaml}: {error}");
    };
    wrong("{ origin: 'https://*', inject: { a: '${t}' } }", "name the host");
    wrong("{ origin: 'http://a', inject: { a: '${t}' } }", "in the clear");
    wrong("{ origin: 'https://a', inject: { host: '${t}' } }", "no header that can be set");
    wrong("{ origin: 'https://a', inject: { 'a b': '${t}' } }", "no header that can be set");
    wrong("{ origin: 'https://a', inject: { a: 'plain' } }", "${name}");
    wrong("{ origin: 'https://a', methods: [CONNECT] }", "never granted");
    wrong("{ origin: 'https://a', methods: ['GE T'] }", "no method");
    wrong("{ origin: 'https://a', timeout_ms: 0 }", "at least 1");
    wrong("{ origin: 'https://a', timeout_ms: -1 }", "whole number");
    wrong("{ origin: 'https://a', port: 1 }", "unknown field");
    wrong("{ methods: [GET] }", "origin");
}

#[test]
fn a_meet_is_the_narrower_of_both_and_only_the_grant_injects() {
    let meet = |asked: &str, granted: &str| {
        let met = rule(asked).unwrap().meet(&rule(granted).unwrap());
        met.map_or("nothing".into(), |rule| serde_json::to_string(&rule).unwrap())
    };
    assert_eq!(meet("{ origin: 'https://*' }", "{ origin: 'https://*.a.org' }"), r#"{"origin":"https://*.a.org"}"#);
    assert_eq!(
        meet("{ origin: 'https://*.b.a.org', methods: [GET] }", "{ origin: 'https://*.a.org:*', private: true }"),
        r#"{"origin":"https://*.b.a.org","methods":["GET"]}"#
    );
    assert_eq!(meet("{ origin: 'https://a.org', methods: [POST] }", "{ origin: 'https://a.org' }"), "nothing");
    assert_eq!(meet("{ origin: 'https://a.org' }", "{ origin: 'https://*.a.org' }"), "nothing");
    assert_eq!(meet("{ origin: 'https://a.org' }", "{ origin: 'http://a.org' }"), "nothing");
    assert_eq!(
        meet(
            "{ origin: 'https://a.org', timeout_ms: 5 }",
            "{ origin: 'https://a.org', timeout_ms: 9, inject: { x: '${t}' } }"
        ),
        r#"{"origin":"https://a.org","inject":{"x":"${t}"},"timeout_ms":5}"#
    );
}

#[test]
fn a_request_is_covered_by_several_rules_together_and_never_by_narrower_ones() {
    let asked = rule("{ origin: 'https://a.org', methods: [GET, POST] }").unwrap();
    let get = rule("{ origin: 'https://*.org', methods: [GET] }").unwrap();
    let post = rule("{ origin: 'https://*', methods: [POST] }").unwrap();
    assert!(asked.is_covered(&[get.clone(), post]));
    assert!(!asked.is_covered(&[get]));
    let wide = rule("{ origin: 'https://*' }").unwrap();
    assert!(!wide.is_covered(&[rule("{ origin: 'https://a.org' }").unwrap()]));
}
