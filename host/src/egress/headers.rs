//! Headers that a guest sends along: which it may set, how much they may weigh, and which go on to another origin.

use super::{Bounds, Refusal};
use crate::grant::{HOST_HEADERS, HttpRule};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers that one request may have: what browsers send, several times over.
const COUNT: usize = 64;

/// Checks what a guest set. Its `content-length` is dropped before: the door writes its own.
pub fn judge_headers(rule: &HttpRule, headers: &[(String, Vec<u8>)], bounds: Bounds) -> Result<HeaderMap, Refusal> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() > COUNT || bytes > bounds.headers {
        return Err(Refusal::TooLarge(format!(
            "http: {} headers of {bytes} bytes; at most {COUNT} of {} bytes together (limits: http_header_bytes)",
            headers.len(),
            bounds.headers
        )));
    }
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let shown = crate::plain::one_line(name, 80);
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(Refusal::Invalid(format!("http: {shown:?} is no name of a header")));
        };
        if HOST_HEADERS.contains(&name.as_str()) {
            return Err(Refusal::Invalid(format!("http: the header {name} is set by the host; leave it out")));
        }
        if rule.inject.contains_key(name.as_str()) {
            return Err(Refusal::Invalid(format!(
                "http: the header {name} is injected by the rule {}; leave it out",
                rule.origin
            )));
        }
        let Ok(value) = HeaderValue::from_bytes(value) else {
            return Err(Refusal::Invalid(format!("http: the value of the header {name} holds a control character")));
        };
        map.append(name, value);
    }
    Ok(map)
}

/// What is left of the headers when a redirect leads to another origin. A list of what may stay: nobody knows the names
/// of all headers that carry a key.
pub fn carried_across(headers: &HeaderMap) -> HeaderMap {
    const HARMLESS: [HeaderName; 5] =
        [header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::RANGE, header::USER_AGENT];
    headers
        .iter()
        .filter(|(name, _)| HARMLESS.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::rules;
    use super::*;

    fn judged(headers: &[(&str, &str)]) -> Result<usize, String> {
        let rule = &rules("[{ origin: 'https://a.org', inject: { x-key: '${t}' } }]")[0];
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        let bounds = Bounds { url: 100, headers: 1_000 };
        judge_headers(rule, &headers, bounds).map(|map| map.len()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn what_belongs_to_the_host_or_the_connection_is_refused() {
        for name in
            ["Host", "connection", "Transfer-Encoding", "TE", "upgrade", "proxy-authorization", "Content-Length"]
        {
            assert!(judged(&[(name, "x")]).unwrap_err().contains("set by the host"), "{name}");
        }
        assert!(judged(&[("X-Key", "mine")]).unwrap_err().contains("injected"));
        assert_eq!(judged(&[("accept", "*/*"), ("authorization", "Bearer mine"), ("x", "é")]), Ok(3));
    }

    #[test]
    fn no_value_begins_a_header_of_its_own() {
        for (name, value) in
            [("x", "a\r\nhost: evil"), ("x", "a\nb"), ("x\r\nhost", "a"), ("x y", "a"), ("", "a"), ("x", "\0")]
        {
            assert!(judged(&[(name, value)]).is_err(), "{name:?}: {value:?}");
        }
    }

    #[test]
    fn a_flood_is_refused() {
        let long = "v".repeat(2_000);
        assert!(judged(&[("x", &long)]).unwrap_err().contains("http_header_bytes"));
        assert!(judged(&vec![("x", "v"); 65]).unwrap_err().contains("65 headers"));
    }

    #[test]
    fn no_key_goes_on_to_another_origin() {
        let names = ["accept", "authorization", "cookie", "x-api-key", "private-token", "user-agent", "referer"];
        let headers = names.map(|name| (HeaderName::from_static(name), HeaderValue::from_static("v")));
        let left = carried_across(&headers.into_iter().collect());
        let mut left: Vec<&str> = left.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "user-agent"]);
    }
}
