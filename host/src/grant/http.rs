//! HTTP rules: which origins a plugin may send to, with which methods, and which secrets go along unseen.
//!
//! A rule is valid once it is read. A manifest's rules ask, an operator's grant; only the operator's inject secrets.

use super::origin::{HostPattern, Origin, Scheme};
use super::secret::Template;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An HTTP origin and what may be sent there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct HttpRule {
    /// `https://host`, `https://*.host` for every name below it, `https://*` for all, with `:PORT` or `:*` where it is not
    /// the scheme's own port.
    pub origin: Origin,
    /// Methods in capitals; `GET` and `HEAD` when none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Whether addresses that are not public may answer: loopback, private networks, link-local, shared ones.
    #[serde(skip_serializing_if = "super::is_false")]
    pub private: bool,
    /// Headers that the host sets after every check, from a named secret: `{ authorization: "Bearer ${token}" }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inject: BTreeMap<String, Template>,
    /// Time for the whole exchange with its redirects, in milliseconds; at most `limits: http_ms`, its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Bytes of a body sent; at most `limits: http_request_bytes`, its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// Bytes of a body received; at most `limits: http_response_bytes`, its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
}

/// A rule as it is written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    origin: Origin,
    #[serde(default)]
    methods: Vec<String>,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    inject: BTreeMap<String, Template>,
    timeout_ms: Option<u64>,
    request_bytes: Option<u64>,
    response_bytes: Option<u64>,
}

/// Headers that belong to one connection or to the host's own framing: no guest sets them, and no secret is put there.
pub const HOST_HEADERS: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl TryFrom<Written> for HttpRule {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { origin, methods, private, inject, timeout_ms, request_bytes, response_bytes } = written;
        let methods = methods.into_iter().map(|method| {
            let method = method.to_ascii_uppercase();
            let is_token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
            match method.as_str() {
                "CONNECT" | "TRACE" => Err(format!("methods: {method} is never granted; take it out")),
                _ if !is_token => Err(format!("methods: {method:?} is no method; write such as GET or POST")),
                _ => Ok(method),
            }
        });
        let methods = methods.collect::<Result<_, String>>()?;
        let bounds = [("timeout_ms", timeout_ms), ("request_bytes", request_bytes), ("response_bytes", response_bytes)];
        if let Some((name, _)) = bounds.into_iter().find(|(_, bound)| *bound == Some(0)) {
            return Err(format!("{name}: must be at least 1; leave it out for the limit's own value"));
        }
        let inject: BTreeMap<String, Template> =
            inject.into_iter().map(|(name, template)| (name.to_ascii_lowercase(), template)).collect();
        for name in inject.keys() {
            if HOST_HEADERS.contains(&name.as_str()) || http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("inject: {name:?} is no header that can be set; write such as authorization"));
            }
        }
        if !inject.is_empty() && origin.host == HostPattern::Any {
            return Err(format!("inject: {origin} is every host, and each would get the secret; name the host"));
        }
        if !inject.is_empty() && origin.scheme == Scheme::Http && !private {
            return Err(format!("inject: {origin} would carry the secret in the clear; use https, or private: true"));
        }
        Ok(Self { origin, methods, private, inject, timeout_ms, request_bytes, response_bytes })
    }
}

/// What a rule allows that names no methods.
const READING: [&str; 2] = ["GET", "HEAD"];

impl HttpRule {
    /// Methods that it allows.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        let default = if self.methods.is_empty() { &READING[..] } else { &[] };
        self.methods.iter().map(String::as_str).chain(default.iter().copied())
    }

    /// Whether it allows a method.
    pub fn allows(&self, method: &str) -> bool {
        self.methods().any(|own| own == method)
    }

    /// What is left of `self`, asked for, under `granted`; none when they share no request.
    pub fn meet(&self, granted: &HttpRule) -> Option<HttpRule> {
        let methods: Vec<String> = self.methods().filter(|method| granted.allows(method)).map(str::to_owned).collect();
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        (!methods.is_empty()).then_some(HttpRule {
            origin: self.origin.meet(&granted.origin)?,
            methods: if methods == READING { Vec::new() } else { methods },
            private: self.private && granted.private,
            inject: granted.inject.clone(),
            timeout_ms: least(self.timeout_ms, granted.timeout_ms),
            request_bytes: least(self.request_bytes, granted.request_bytes),
            response_bytes: least(self.response_bytes, granted.response_bytes),
        })
    }

    /// Whether `rules` together allow all that `self` asks for, bounds aside.
    pub fn is_covered(&self, rules: &[HttpRule]) -> bool {
        self.methods().all(|method| {
            rules.iter().any(|rule| {
                rule.allows(method)
                    && (rule.private || !self.private)
                    && rule.origin.meet(&self.origin).as_ref() == Some(&self.origin)
            })
        })
    }
}
