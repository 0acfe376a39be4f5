//! Requests through the host's one door. Needs `http` with a rule in the manifest, and the grant.
//!
//! ```no_run
//! # fn main() -> Result<(), astrarium_sdk::Error> {
//! use astrarium_sdk::http;
//!
//! let answer = http::get("https://example.org/list").header("accept", "application/json").send()?;
//! if answer.status == 200 {
//!     let text = String::from_utf8_lossy(&answer.body);
//! # let _ = text;
//! }
//! # Ok(()) }
//! ```

use std::time::Duration;

pub use crate::host::http::Response;
use crate::{Error, host};

/// A request, sent by [`Request::send`].
#[derive(Debug, Clone)]
pub struct Request(host::http::Request);

/// A request by `GET`.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// A request by `POST`, with a body.
pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>) -> Request {
    Request::new("POST", url).body(body)
}

impl Request {
    /// A request by any method that the grant allows.
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        Self(host::http::Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout_ms: None,
        })
    }

    /// Adds a header. Those of the connection, and those that the operator injects, are refused.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.0.body = Some(body.into());
        self
    }

    /// Waits no longer than this for the whole answer; the grant's own time is the most.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.0.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Sends it and answers with the whole response, whatever its status. Granted redirects are followed.
    pub fn send(self) -> Result<Response, Error> {
        Ok(host::http::send(&self.0)?)
    }
}

impl Response {
    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
