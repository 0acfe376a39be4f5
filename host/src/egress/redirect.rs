//! What a redirect asks for: the next request, to be judged like the first.

use super::{Refusal, Target};

/// A request on its way, as redirects change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Where it goes.
    pub target: Target,
    /// Method in capitals.
    pub method: String,
    /// Whether it carries the body.
    pub with_body: bool,
    /// Whether every hop up to here had the origin of the first: only then do a guest's credentials and the operator's
    /// secrets go along.
    pub at_home: bool,
}

/// The request that follows `hop`, when the answer is a redirect; none when it is an answer.
pub fn next_hop(hop: &Hop, status: u16, location: Option<&str>, url_limit: usize) -> Result<Option<Hop>, Refusal> {
    let (true, Some(location)) = (matches!(status, 301 | 302 | 303 | 307 | 308), location) else { return Ok(None) };
    let target = hop.target.join(location, url_limit)?;
    // As browsers do (RFC 9110, 15.4): 303 asks for the result by GET, and so do 301 and 302 after a POST.
    let to_get = (status == 303 && hop.method != "HEAD") || (matches!(status, 301 | 302) && hop.method == "POST");
    Ok(Some(Hop {
        at_home: hop.at_home && target.same_origin(&hop.target),
        method: if to_get { "GET".into() } else { hop.method.clone() },
        with_body: hop.with_body && !to_get,
        target,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: &str, status: u16, location: &str) -> String {
        let hop = Hop {
            target: Target::parse("https://a.org/x", 100).unwrap(),
            method: method.into(),
            with_body: true,
            at_home: true,
        };
        match next_hop(&hop, status, Some(location), 100) {
            Ok(Some(next)) => format!("{} {} {} {}", next.method, next.target, next.with_body, next.at_home),
            Ok(None) => "an answer".into(),
            Err(refusal) => refusal.to_string(),
        }
    }

    #[test]
    fn a_redirect_is_a_request_of_its_own() {
        assert_eq!(hop("GET", 301, "/y"), "GET https://a.org/y true true");
        assert_eq!(hop("POST", 302, "y"), "GET https://a.org/y false true");
        assert_eq!(hop("PUT", 303, "y"), "GET https://a.org/y false true");
        assert_eq!(hop("HEAD", 303, "y"), "HEAD https://a.org/y true true");
        assert_eq!(hop("POST", 307, "//b.org"), "POST https://b.org/ true false");
        assert_eq!(hop("GET", 308, "http://a.org/x"), "GET http://a.org/x true false");
        assert_eq!(hop("GET", 302, "https://a.org:444/"), "GET https://a.org:444/ true false");
        assert_eq!(hop("GET", 304, "/y"), "an answer");
        assert_eq!(hop("GET", 200, "/y"), "an answer");
        assert!(hop("GET", 302, "file:///etc/passwd").contains("none of http and https"));
        assert!(hop("GET", 302, "https://a.org@evil.org/").contains("user name"));
    }

    #[test]
    fn who_has_left_home_does_not_come_back() {
        let first = Hop {
            target: Target::parse("https://a.org/x", 100).unwrap(),
            method: "GET".into(),
            with_body: false,
            at_home: true,
        };
        let away = next_hop(&first, 302, Some("https://b.org"), 100).unwrap().unwrap();
        let back = next_hop(&away, 302, Some("https://a.org/x"), 100).unwrap().unwrap();
        assert!(!back.at_home, "b.org chose this URL, so it does not get a's secrets on it");
    }
}
