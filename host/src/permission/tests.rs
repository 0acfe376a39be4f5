//! Rules as operators write them, and the laws that hold for all of them.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn rules(yaml: &str) -> Rules {
    let own: Permissions = serde_saphyr::from_str(yaml).unwrap();
    let shipped = serde_saphyr::from_str("ask: [run_bash]").unwrap();
    Rules { mode: own.mode.unwrap_or_default(), own, shipped }
}

fn call<'a>(tool: &'a str, read_only: bool, input: &'a Value) -> Call<'a> {
    Call { tool, plugin: "p", read_only, input, workspace: "/home/me/project" }
}

fn check(yaml: &str, tool: &str, input: Value, expected: &str) {
    let ruling = match judge(&rules(yaml), call(tool, tool.starts_with("read"), &input)) {
        Ruling::Allow(rule) => format!("allowed by {rule}"),
        Ruling::Ask(rule) => format!("asked by {rule}"),
        Ruling::Deny(rule) => format!("denied by {rule}"),
    };
    assert_eq!(ruling, expected, "{yaml} on {tool} {input}");
}

#[test]
fn without_rules_only_what_ships_asks() {
    check("{}", "file_write", json!({}), "allowed by mode: default");
    check("{}", "run_bash", json!({ "command": "ls" }), "asked by ask: run_bash");
}

#[test]
fn deny_wins_over_ask_and_ask_over_allow() {
    let yaml = "{ deny: [file_write], ask: ['file_*'], allow: ['*'] }";
    check(yaml, "file_write", json!({}), "denied by deny: file_write");
    check(yaml, "file_edit", json!({}), "asked by ask: file_*");
    check(yaml, "todo_write", json!({}), "allowed by allow: *");
}

#[test]
fn the_operators_rules_count_before_those_that_ship_but_for_deny() {
    check("allow: [run_bash]", "run_bash", json!({}), "allowed by allow: run_bash");
    let rule = "{ allow: [{ tool: run_bash, arguments: { command: 'git *' } }] }";
    let shown = r#"allowed by allow: { tool: "run_bash", arguments: { command: "git *" } }"#;
    check(rule, "run_bash", json!({ "command": "git status" }), shown);
    check(rule, "run_bash", json!({ "command": "rm -rf x" }), "asked by ask: run_bash");
}

#[test]
fn a_wildcard_that_allows_takes_no_second_command() {
    let rule = "{ allow: [{ tool: run_bash, arguments: { command: 'git *' } }] }";
    for command in ["git x; rm -rf ~", "git x && y", "git x | sh", "git $(y)", "git `y`", "git x > y", "git x\nrm y"] {
        check(rule, "run_bash", json!({ "command": command }), "asked by ask: run_bash");
    }
    // One that forbids takes anything.
    check(
        "{ deny: [{ tool: run_bash, arguments: { command: '*rm -rf*' } }] }",
        "run_bash",
        json!({ "command": "true; rm -rf /" }),
        r#"denied by deny: { tool: "run_bash", arguments: { command: "*rm -rf*" } }"#,
    );
}

#[test]
fn a_path_is_the_same_however_it_is_written() {
    let deny = "{ deny: [{ tool: file_write, arguments: { path: 'secret/*' } }] }";
    for path in
        ["secret/a", "./secret/a", "x/../secret/a", "secret//a", "/home/me/project/secret/a", "/workspace/./secret/a"]
    {
        let denied = r#"denied by deny: { tool: "file_write", arguments: { path: "secret/*" } }"#;
        check(deny, "file_write", json!({ "path": path }), denied);
        for root in ["/home/me/project", "/workspace"] {
            let deny = format!("{{ deny: [{{ tool: file_write, arguments: {{ path: '{root}/secret/*' }} }}] }}");
            let denied =
                format!(r#"denied by deny: {{ tool: "file_write", arguments: {{ path: "{root}/secret/*" }} }}"#);
            check(&deny, "file_write", json!({ "path": path }), &denied);
        }
    }
    let spaced = "{ deny: [{ tool: file_write, arguments: { path: '/home/me/project/*' } }] }";
    let denied = r#"denied by deny: { tool: "file_write", arguments: { path: "/home/me/project/*" } }"#;
    check(spaced, "file_write", json!({ "path": "my notes" }), denied);
    // And none that leaves it is allowed as if it did not.
    let allow = "{ mode: strict, allow: [{ tool: file_write, arguments: { path: 'notes/*' } }] }";
    for path in ["notes/../.env", "notes/../../x", "./notes/a", "/workspace/notes/a"] {
        check(allow, "file_write", json!({ "path": path }), "asked by mode: strict");
    }
    let allowed = r#"allowed by allow: { tool: "file_write", arguments: { path: "notes/*" } }"#;
    check(allow, "file_write", json!({ "path": "notes/a/b" }), allowed);
}

#[test]
fn modes_decide_what_no_rule_names() {
    check("mode: strict", "file_write", json!({}), "asked by mode: strict");
    check("mode: strict", "read_file", json!({}), "allowed by mode: strict, it changes nothing");
    check("{ mode: strict, allow: [file_write] }", "file_write", json!({}), "allowed by allow: file_write");
    check("{ mode: plan, allow: ['*'] }", "file_write", json!({}), "denied by mode: plan");
    check("{ mode: plan, allow: ['*'] }", "read_file", json!({}), "allowed by allow: *");
}

#[test]
fn arguments_inside_others_in_lists_and_of_other_types() {
    let deny = |arguments: &str| format!("{{ deny: [{{ tool: t, arguments: {{ {arguments} }} }}] }}");
    let denied = |yaml: &str, input: Value| matches!(judge(&rules(yaml), call("t", false, &input)), Ruling::Deny(_));
    assert!(denied(&deny("a.b: x"), json!({ "a": { "b": "x" } })));
    assert!(denied(&deny("list: x"), json!({ "list": ["y", "x"] })));
    assert!(denied(&deny("n: '1*'"), json!({ "n": 17 })));
    assert!(denied(&deny("force: 'true'"), json!({ "force": true })));
    assert!(!denied(&deny("a: '*'"), json!({ "b": 1 })), "an argument that is not there matches nothing");
    let allow = rules("{ mode: strict, allow: [{ tool: t, arguments: { list: 'x*' } }] }");
    let allowed = |input: Value| matches!(judge(&allow, call("t", false, &input)), Ruling::Allow(_));
    assert!(allowed(json!({ "list": ["x1", "x2"] })));
    assert!(!allowed(json!({ "list": ["x1", "y"] })) && !allowed(json!({ "list": [] })));
}

#[test]
fn a_rule_that_does_not_read_says_why() {
    let error = |yaml: &str| serde_saphyr::from_str::<Permissions>(yaml).unwrap_err().to_string();
    for (yaml, words) in [
        ("deny: [{ arguments: { a: b } }]", "names no tool"),
        ("deny: [3]", "a rule is a tool's name"),
        ("deny: [{ tool: t, argument: {} }]", "unknown key \"argument\""),
        ("deny: [{ tool: t, arguments: { a: 3 } }]", "a: 3 is no pattern"),
        ("denies: [t]", "denies"),
        ("mode: paranoid", "paranoid"),
    ] {
        assert!(error(yaml).contains(words), "{yaml}: {}", error(yaml));
    }
}

#[test]
fn a_pattern_of_many_stars_ends() {
    let started = pattern::matches(&"*a".repeat(2_000), &"a".repeat(1_999), |_| true);
    assert!(!started);
}

fn text() -> impl Strategy<Value = String> {
    "[ab*?/.;]{0,6}"
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let arguments = proptest::collection::btree_map("[xy]", text(), 0..2);
    ("[ab*?]{1,3}", arguments).prop_map(|(tool, arguments)| Rule { tool, plugin: None, arguments })
}

fn permissions() -> impl Strategy<Value = Permissions> {
    let list = || proptest::collection::vec(a_rule(), 0..3);
    (list(), list(), list()).prop_map(|(deny, ask, allow)| Permissions { mode: None, deny, ask, allow })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let mode = prop_oneof![Just(Mode::Default), Just(Mode::Strict), Just(Mode::Plan)];
    (mode, permissions(), permissions()).prop_map(|(mode, own, shipped)| Rules { mode, own, shipped })
}

/// How much a ruling lets through.
fn rank(ruling: &Ruling) -> u8 {
    match ruling {
        Ruling::Deny(_) => 0,
        Ruling::Ask(_) => 1,
        Ruling::Allow(_) => 2,
    }
}

proptest! {
    #[test]
    fn one_more_deny_or_ask_never_lets_more_through(
        rules in any_rules(), rule in a_rule(), tool in "[ab]{1,3}", read_only: bool, x in text(), y in text(),
    ) {
        let input = json!({ "x": x, "y": y });
        let call = call(&tool, read_only, &input);
        let before = rank(&judge(&rules, call));
        let mut denied = rules.clone();
        denied.own.deny.push(rule.clone());
        prop_assert!(rank(&judge(&denied, call)) <= before);
        let mut asked = rules.clone();
        asked.own.ask.push(rule.clone());
        prop_assert!(rank(&judge(&asked, call)) <= before);
        // And one more allow never holds anything up, nor passes a deny.
        let mut allowed = rules.clone();
        allowed.own.allow.push(rule);
        let after = rank(&judge(&allowed, call));
        prop_assert!(after >= before);
        prop_assert!(before > 0 || after == 0);
    }

    #[test]
    fn plan_runs_nothing_that_changes_something(rules in any_rules(), tool in "[ab]{1,3}", x in text()) {
        let input = json!({ "x": x });
        let rules = Rules { mode: Mode::Plan, ..rules };
        prop_assert_eq!(rank(&judge(&rules, call(&tool, false, &input))), 0);
    }

    #[test]
    fn a_text_without_wildcards_matches_itself_alone(a in "[ab/]{0,5}", b in "[ab/]{0,5}") {
        prop_assert_eq!(pattern::matches(&a, &b, |_| true), a == b);
        let starred = format!("*{a}*");
        prop_assert_eq!(pattern::matches(&starred, &b, |_| true), b.contains(&a));
    }

    #[test]
    fn what_narrow_takes_wide_takes_too(rule in a_rule(), tool in "[ab]{1,3}", x in text(), y in text()) {
        let input = json!({ "x": x, "y": y });
        let call = call(&tool, false, &input);
        prop_assert!(!rule.matches(call, Reading::Narrow) || rule.matches(call, Reading::Wide));
    }
}

#[test]
fn a_rule_for_a_tool_that_there_is_not_is_said_with_the_nearest() {
    let rules: Permissions = crate::yaml::from_str("{ deny: [file_wrte, 'file_*'], ask: [run_bash] }").unwrap();
    let said = idle(&rules, &["read_file", "file_write", "run_bash"]);
    assert_eq!(
        said,
        ["permissions: deny: no tool is named file_wrte, so this rule holds for nothing; the nearest is file_write"]
    );
}
