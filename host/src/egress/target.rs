//! Where a request goes: the parts of its URL, taken apart once. Whatever is sent is built from these parts alone, so that
//! what was judged and what is asked for cannot differ.

use super::Refusal;
use crate::grant::{Scheme, without_dot};
use url::{Host, Url};

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// A name in lower case and ASCII without a dot at its end, or an address.
    pub host: Host,
    /// Its port, the scheme's own where none was named.
    pub port: u16,
    /// Path and query, beginning with a slash; what a URL may not hold is percent-encoded.
    pub path: String,
}

impl Target {
    /// Takes a URL apart. User names in it are refused: they are how one host is dressed up as another.
    pub fn parse(text: &str, limit: usize) -> Result<Self, Refusal> {
        if text.len() > limit {
            return Err(too_long(limit));
        }
        let url = Url::parse(text).map_err(|error| {
            Refusal::Invalid(format!("http: the URL does not read ({error}); write such as https://example.org/path"))
        })?;
        Self::of(&url, limit)
    }

    /// What a `location` leads to from here.
    pub fn join(&self, location: &str, limit: usize) -> Result<Self, Refusal> {
        if location.len() > limit {
            return Err(too_long(limit));
        }
        let base = Url::parse(&self.to_string());
        let url = base.and_then(|base| base.join(location)).map_err(|error| {
            Refusal::Invalid(format!("http: {} redirects to what is no URL ({error})", self.origin()))
        })?;
        Self::of(&url, limit)
    }

    fn of(url: &Url, limit: usize) -> Result<Self, Refusal> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(Refusal::Invalid(format!("http: {other:?} is none of http and https"))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Invalid(
                "http: the URL holds a user name; leave it out, an operator injects what a server needs to know".into(),
            ));
        }
        let host = url.host().map(|host| without_dot(host.to_owned()));
        let host = host.filter(
            |host| !matches!(host, Host::Domain(name) if name.split('.').any(str::is_empty) || name.len() > 253),
        );
        let Some(host) = host else { return Err(Refusal::Invalid("http: the URL names no host".into())) };
        let port = url.port_or_known_default().unwrap_or_else(|| scheme.port());
        if port == 0 {
            return Err(Refusal::Invalid("http: port 0 is no port".into()));
        }
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = Self { scheme, host, port, path: format!("{}{query}", url.path()) };
        // Percent-encoding makes a URL longer.
        if target.path.len() > limit {
            return Err(too_long(limit));
        }
        Ok(target)
    }

    /// Scheme, host and port, as a person reads them.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority())
    }

    /// Host and, where it is not the scheme's own, port: the value of the header `host`.
    pub fn authority(&self) -> String {
        match self.port == self.scheme.port() {
            true => self.host.to_string(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Whether two targets have scheme, host and port in common.
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}{}", self.origin(), self.path)
    }
}

fn too_long(limit: usize) -> Refusal {
    Refusal::TooLarge(format!("http: the URL is longer than {limit} bytes (limits: http_url_bytes)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_is_built_anew_from_its_parts() {
        for (text, built) in [
            ("HTTPS://Example.ORG.:443", "https://example.org/"),
            ("http://a.org:8080/x/../y?q=a b#part", "http://a.org:8080/y?q=a%20b"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://2130706433", "http://127.0.0.1/"),
            ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
            ("http://例え.jp/é", "http://xn--r8jz45g.jp/%C3%A9"),
            ("http://a.org\t/\nx", "http://a.org/x"),
        ] {
            assert_eq!(Target::parse(text, 200).map(|target| target.to_string()), Ok(built.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_long_url_is_refused_before_and_after_encoding() {
        let long = format!("https://a.org/{}", "x".repeat(200));
        assert!(matches!(Target::parse(&long, 100), Err(Refusal::TooLarge(_))));
        let grows = format!("https://a.org/{}", "é".repeat(30));
        assert!(matches!(Target::parse(&grows, 100), Err(Refusal::TooLarge(_))));
        let target = Target::parse("https://a.org/b/", 100).unwrap();
        assert!(matches!(target.join(&"x".repeat(101), 100), Err(Refusal::TooLarge(_))));
        assert_eq!(target.join("../c?d", 100).unwrap().to_string(), "https://a.org/c?d");
        assert_eq!(target.join("//b.org:1", 100).unwrap().to_string(), "https://b.org:1/");
    }

    #[test]
    fn a_name_with_an_empty_label_is_no_host() {
        for text in ["http://..?", "http://.a.org", "http://a..org", "http://a.org.."] {
            assert!(matches!(Target::parse(text, 100), Err(Refusal::Invalid(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_built_reads_as_the_same_parts(text in "https?://[a-z0-9.\\[\\]:-]{1,20}(:[0-9]{1,5})?[/?][ -~\u{a0}-\u{2ff}]{0,40}") {
            if let Ok(target) = Target::parse(&text, 1_000) {
                prop_assert_eq!(Target::parse(&target.to_string(), 1_000), Ok(target.clone()));
                prop_assert!(target.path.starts_with('/'));
                prop_assert!(target.to_string().is_ascii());
            }
        }
    }
}
