//! Patterns of HTTP origins: how they are written, what they name, and what two of them have in common.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use url::Host;

/// `http` or `https`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

/// A pattern of origins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin {
    /// Its scheme.
    pub scheme: Scheme,
    /// Its hosts.
    pub host: HostPattern,
    /// Its port; none for every port.
    pub port: Option<u16>,
}

/// A pattern of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// All of them.
    Any,
    /// Every name that ends in a dot and this one.
    Below(String),
    /// This one: a name in lower case and ASCII, or an address.
    One(Host),
}

impl Scheme {
    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port that a URL need not name.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl HostPattern {
    /// Whether the pattern names this host. Names below another are no addresses.
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (HostPattern::Any, _) => true,
            (HostPattern::Below(name), Host::Domain(host)) => is_below(host, name),
            (HostPattern::Below(_), _) => false,
            (HostPattern::One(one), host) => one == host,
        }
    }

    fn meet(&self, other: &Self) -> Option<Self> {
        let narrower = match (self, other) {
            (HostPattern::Any, narrow) | (narrow, HostPattern::Any) => narrow,
            (HostPattern::Below(a), HostPattern::Below(b)) if a == b || is_below(a, b) => self,
            (HostPattern::Below(a), HostPattern::Below(b)) if is_below(b, a) => other,
            (HostPattern::Below(_), HostPattern::Below(_)) => return None,
            (wide, HostPattern::One(host)) if wide.matches(host) => other,
            (HostPattern::One(host), wide) if wide.matches(host) => self,
            _ => return None,
        };
        Some(narrower.clone())
    }

    /// How much a pattern says: of two that match, the more exact one counts.
    fn exactness(&self) -> usize {
        match self {
            HostPattern::Any => 0,
            HostPattern::Below(name) => 1 + name.len(),
            HostPattern::One(_) => usize::MAX,
        }
    }
}

/// Whether `host` ends in a dot and `name`, with something before it.
fn is_below(host: &str, name: &str) -> bool {
    host.strip_suffix(name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl Origin {
    /// Whether the pattern names this origin.
    pub fn matches(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        self.scheme == scheme && self.host.matches(host) && self.port.is_none_or(|own| own == port)
    }

    /// The origins that both name, as one pattern.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let port = match (self.port, other.port) {
            (None, port) | (port, None) => port,
            (Some(a), Some(b)) if a == b => Some(a),
            _ => return None,
        };
        (self.scheme == other.scheme).then_some(())?;
        Some(Self { scheme: self.scheme, host: self.host.meet(&other.host)?, port })
    }

    /// How much a pattern says.
    pub fn exactness(&self) -> (usize, bool) {
        (self.host.exactness(), self.port.is_some())
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |reason: &str| format!("origin: {text:?} {reason}, as in https://example.org or https://*.example.org");
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err(wrong("must begin with https:// or http://")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@', '\\']) || rest.chars().any(char::is_whitespace) {
            return Err(wrong("must end after host and port"));
        }
        let (host, port) = match rest.rsplit_once(':') {
            // The colons of an address lie in brackets.
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let port = match port {
            None => Some(scheme.port()),
            Some("*") => None,
            Some(port) => match port.parse() {
                Ok(port) if port > 0 => Some(port),
                _ => return Err(wrong("has no port from 1 to 65535, nor *, after its last colon")),
            },
        };
        let parse = |host: &str| {
            let host = Host::parse(host).map_err(|error| wrong(&format!("names no host ({error})")))?;
            Ok::<_, String>(without_dot(host))
        };
        let host = match host.strip_prefix('*') {
            Some("") => HostPattern::Any,
            Some(rest) => match rest.strip_prefix('.').map(parse).transpose()? {
                Some(Host::Domain(name)) if !name.contains('*') => HostPattern::Below(name),
                _ => return Err(wrong("has a * that is no whole first label before a name")),
            },
            None if host.contains('*') => return Err(wrong("has a * that is no whole first label")),
            None => HostPattern::One(parse(host)?),
        };
        Ok(Self { scheme, host, port })
    }
}

/// A name with a dot at its end is the same name.
pub fn without_dot(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').map(str::to_owned).unwrap_or(name)),
        address => address,
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", self.scheme.as_str())?;
        match &self.host {
            HostPattern::Any => out.write_str("*")?,
            HostPattern::Below(name) => write!(out, "*.{name}")?,
            HostPattern::One(host) => write!(out, "{host}")?,
        }
        match self.port {
            None => out.write_str(":*"),
            Some(port) if port == self.scheme.port() => Ok(()),
            Some(port) => write!(out, ":{port}"),
        }
    }
}

impl TryFrom<String> for Origin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn origins_are_read_and_shown_in_one_form() {
        for (text, shown) in [
            ("https://Example.ORG", "https://example.org"),
            ("https://example.org./", "https://example.org"),
            ("https://*.example.org:8443", "https://*.example.org:8443"),
            ("http://*:*", "http://*:*"),
            ("https://[::1]:443", "https://[::1]"),
            ("http://2130706433", "http://127.0.0.1"),
            ("https://星.example", "https://xn--kiv.example"),
        ] {
            assert_eq!(text.parse::<Origin>().map(|origin| origin.to_string()).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn malformed_origins_are_refused_with_the_form() {
        for text in [
            "example.org",
            "ftp://example.org",
            "https://",
            "https://a/b",
            "https://user@a",
            "https://a:0",
            "https://a:99999",
            "https://a.*",
            "https://*a",
            "https://*.",
            "https://*.*.a",
            "https://*.127.0.0.1",
            "https://a b",
            "https://[::1",
        ] {
            let error = text.parse::<Origin>().expect_err(text);
            assert!(error.contains("https://example.org") && error.lines().count() == 1, "{error}");
        }
    }

    fn any_host() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::collection::vec(prop::sample::select(vec!["a", "b", "org", "xa"]), 1..4)
                .prop_map(|labels| labels.join(".")),
            Just("127.0.0.1".to_owned()),
            Just("[::1]".to_owned()),
        ]
    }

    fn any_origin() -> impl Strategy<Value = Origin> {
        let star = prop::sample::select(vec!["", "*.", "*"]);
        let port = prop::sample::select(vec!["", ":*", ":8080"]);
        (prop::sample::select(vec!["http", "https"]), star, any_host(), port).prop_filter_map(
            "no origin",
            |(scheme, star, host, port)| {
                let host = if star == "*" { String::new() } else { host };
                format!("{scheme}://{star}{host}{port}").parse().ok()
            },
        )
    }

    proptest! {
        #[test]
        fn a_meet_of_origins_names_what_both_name(a in any_origin(), b in any_origin(), host in any_host(), port in prop::sample::select(vec![80u16, 443, 8080]), https: bool) {
            let host = Host::parse(&host).unwrap();
            let scheme = if https { Scheme::Https } else { Scheme::Http };
            let both = a.matches(scheme, &host, port) && b.matches(scheme, &host, port);
            let met = a.meet(&b).is_some_and(|met| met.matches(scheme, &host, port));
            prop_assert_eq!(both, met);
            prop_assert_eq!(a.meet(&b), b.meet(&a));
        }

        #[test]
        fn an_origin_reads_as_it_is_shown(a in any_origin()) {
            prop_assert_eq!(a.to_string().parse::<Origin>(), Ok(a));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(https?://)?[a-z0-9*.:/@\\[\\]% \u{0}-\u{ff}]{0,40}") {
            let _ = text.parse::<Origin>();
        }
    }
}
