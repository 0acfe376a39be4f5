//! The judgement of every request that leaves by the http door: pure functions from rules and a request to allowed, or
//! to a refusal that names the rule and the cure.
//!
//! Nothing here resolves a name or opens a socket. The door asks in this order, for the first request and for each redirect
//! anew: [`Target::parse`], [`judge`], [`judge_addresses`] with all that the name has, [`judge_headers`]; only then are
//! secrets injected and a connection is made, to an address that was judged. A request is allowed when one rule allows all
//! of it; of several the most exact one counts, for its secrets and its bounds.

mod address;
mod headers;
mod redirect;
mod scrub;
mod target;

pub use address::{Kind, judge_addresses, kind};
pub use headers::{carried_across, judge_headers};
pub use redirect::{Hop, next_hop};
pub use scrub::Scrub;
pub use target::Target;

use crate::grant::HttpRule;

/// Why a request does not leave. Each is plain enough for the model to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No rule allows it: which, and the cure.
    #[error("{0}")]
    Denied(String),
    /// The name leads to an address that its rule does not grant.
    #[error("{0}")]
    Address(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// It is larger than a limit.
    #[error("{0}")]
    TooLarge(String),
}

/// What a request may weigh, from the limits.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of a URL.
    pub url: usize,
    /// Bytes of all headers together, names and values.
    pub headers: usize,
}

/// The rules under which `plugin` may send this, wherever it leads: the most exact one first, and of equal ones one that
/// injects. Never empty.
pub fn judge<'a>(
    plugin: &str,
    rules: &'a [HttpRule],
    method: &str,
    target: &Target,
) -> Result<Vec<&'a HttpRule>, Refusal> {
    let reaching = rules.iter().filter(|rule| rule.origin.matches(target.scheme, &target.host, target.port));
    let reaching: Vec<&HttpRule> = reaching.collect();
    let mut allowing: Vec<&HttpRule> = reaching.iter().copied().filter(|rule| rule.allows(method)).collect();
    if !allowing.is_empty() {
        allowing.sort_by_key(|rule| std::cmp::Reverse((rule.origin.exactness(), !rule.inject.is_empty())));
        return Ok(allowing);
    }
    let origin = target.origin();
    let methods = if matches!(method, "GET" | "HEAD") { String::new() } else { format!(", methods: [{method}]") };
    let own = match &target.host {
        url::Host::Domain(name) => name == "localhost",
        url::Host::Ipv4(address) => address::kind((*address).into()).is_some(),
        url::Host::Ipv6(address) => address::kind((*address).into()).is_some(),
    };
    let private = if own { ", private: true" } else { "" };
    let cure = format!(
        "do not retry; an operator grants it under grants: in astrarium.yaml with \
         `- {{ plugin: {plugin}, http: [{{ origin: \"{origin}\"{methods}{private} }}] }}`, if the plugin asks for it"
    );
    Err(Refusal::Denied(match reaching.first() {
        Some(rule) => {
            let allowed: Vec<&str> = rule.methods().collect();
            format!("http: the rule {} of {plugin} allows {}, not {method}; {cure}", rule.origin, allowed.join(" and "))
        }
        None => format!("http: no rule of {plugin} reaches {origin}; {cure}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn rules(yaml: &str) -> Vec<HttpRule> {
        crate::yaml::from_str(yaml).unwrap()
    }

    fn allowed(rules: &[HttpRule], method: &str, url: &str) -> Result<String, String> {
        let target = Target::parse(url, 8_192).map_err(|refusal| refusal.to_string())?;
        let rules = judge("web", rules, method, &target).map_err(|refusal| refusal.to_string())?;
        Ok(rules[0].origin.to_string())
    }

    #[test]
    fn the_most_exact_rule_counts() {
        let rules = rules(
            "[{ origin: 'https://*' }, { origin: 'https://*.a.org' }, { origin: 'https://api.a.org' },
              { origin: 'https://api.a.org', inject: { authorization: '${t}' } }, { origin: 'https://*.b.org:*' }]",
        );
        let rule = |url| allowed(&rules, "GET", url).unwrap();
        assert_eq!(rule("https://x.org"), "https://*");
        assert_eq!(rule("https://x.a.org/p?q"), "https://*.a.org");
        assert_eq!(rule("https://x.b.org:99"), "https://*.b.org:*");
        let target = Target::parse("https://API.a.org.", 100).unwrap();
        let judged = judge("web", &rules, "GET", &target).unwrap();
        assert!(!judged[0].inject.is_empty(), "of equal ones the one that injects");
        assert_eq!(judged.len(), 4);
    }

    #[test]
    fn a_refusal_names_the_rule_and_the_line_that_grants() {
        let rules = rules("[{ origin: 'https://a.org' }]");
        assert_eq!(
            allowed(&rules, "POST", "https://a.org/x").unwrap_err(),
            "http: the rule https://a.org of web allows GET and HEAD, not POST; do not retry; an operator grants it under \
             grants: in astrarium.yaml with `- { plugin: web, http: [{ origin: \"https://a.org\", methods: [POST] }] }`, \
             if the plugin asks for it"
        );
        for own in ["http://127.0.0.1:9", "http://[::1]", "http://localhost:9"] {
            let refusal = allowed(&rules, "GET", own).unwrap_err();
            assert!(refusal.contains(&format!("origin: \"{own}\", private: true }}")), "{refusal}");
        }
        let refusal = allowed(&rules, "GET", "http://a.org:8080/secret?key=1").unwrap_err();
        assert!(refusal.starts_with("http: no rule of web reaches http://a.org:8080; do not retry"), "{refusal}");
        assert!(!refusal.contains("key"), "what follows the origin may hold a key: {refusal}");
    }

    #[test]
    fn no_spelling_of_a_host_passes_for_another() {
        let rules = rules("[{ origin: 'https://good.org' }, { origin: 'https://*.wide.org' }]");
        for url in [
            "https://good.org@evil.org/",
            "https://good.org:443@evil.org/",
            "https://evil.org/https://good.org/",
            "https://evil.org#good.org",
            "https://evil.org?good.org",
            "https://evil.org\\@good.org/..",
            "https://good.org.evil.org/",
            "https://evilgood.org/",
            "https://wide.org/",
            "https://evilwide.org/",
            "https://good.org:8443/",
            "http://good.org/",
            "https://good%2eorg.evil.org/",
            "https:good.org@evil.org",
            "//good.org",
            "good.org",
            "file:///etc/passwd",
            "",
        ] {
            assert!(allowed(&rules, "GET", url).is_err(), "{url}");
        }
        for url in ["https://GOOD.org", "https://good.org:443/x", "https://a.b.wide.org", "https:\\\\good.org\\x"] {
            assert!(allowed(&rules, "GET", url).is_ok(), "{url}: {:?}", allowed(&rules, "GET", url));
        }
    }

    fn any_rules() -> impl Strategy<Value = Vec<HttpRule>> {
        let origin =
            prop::sample::select(vec!["http://a.org", "http://*.org", "http://*", "http://*:*", "https://a.org"]);
        let methods = prop::sample::select(vec!["[]", "[GET]", "[POST]", "[GET, POST]"]);
        let rule = (origin, methods, any::<bool>()).prop_map(|(origin, methods, private)| {
            format!("{{ origin: '{origin}', methods: {methods}, private: {private} }}")
        });
        prop::collection::vec(rule, 0..4).prop_map(|all| rules(&format!("[{}]", all.join(", "))))
    }

    proptest! {
        /// What is left of a request and a grant allows what both allow, and nothing else.
        #[test]
        fn a_meet_allows_what_both_allow(asked in any_rules(), granted in any_rules(), post: bool, inside: bool,
            url in prop::sample::select(vec!["http://a.org", "http://b.org:8080", "https://a.org", "http://127.0.0.1"])) {
            let target = Target::parse(url, 100).unwrap();
            let address = if inside { "127.0.0.1" } else { "8.8.8.8" }.parse().unwrap();
            let allowed = |rules: &[HttpRule]| {
                let judged = judge("web", rules, if post { "POST" } else { "GET" }, &target);
                judged.is_ok_and(|judged| judge_addresses(&judged, &target, &[address]).is_ok())
            };
            let caps = |http: &[HttpRule]| crate::grant::Capabilities { http: http.to_vec(), ..Default::default() };
            let met = caps(&asked).meet(&caps(&granted));
            prop_assert_eq!(allowed(&met.http), allowed(&asked) && allowed(&granted));
            // And a request of which nothing is missing is allowed all that it asked for.
            if caps(&asked).missing(&met).is_empty() {
                prop_assert_eq!(allowed(&met.http), allowed(&asked));
            }
        }

        #[test]
        fn no_request_makes_the_judgement_panic(method in "\\PC{0,8}", url in "(https?://)?[a-zA-Z0-9.:/?#@%\\[\\]\\\\ \u{0}-\u{ff}]{0,60}") {
            let _ = allowed(&rules("[{ origin: 'https://*.a.org' }]"), &method, &url);
        }
    }
}
