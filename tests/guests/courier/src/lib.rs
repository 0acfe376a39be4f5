//! Sends whatever request it is told to, and answers with all that came back: in the answer, in an error, or in a panic.

use astrarium_sdk::host::http::{Request, send};
use astrarium_sdk::{Context, Error, Output, Tool, tools};
use serde_json::json;

/// Sends a request.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// Its URL.
    url: String,
    /// Its method.
    #[serde(default = "get")]
    method: String,
    /// Its headers.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Its body.
    body: Option<String>,
    /// Its time-out.
    timeout_ms: Option<u32>,
    /// How often, one after the other; the last answer counts.
    #[serde(default)]
    times: u32,
    /// `answer`, `fail` or `panic` with what came back.
    #[serde(default)]
    then: String,
}

fn get() -> String {
    "GET".into()
}

impl Tool for Send {
    const NAME: &'static str = "send";

    fn call(self, _: &Context) -> Result<Output, Error> {
        let request = Request {
            method: self.method,
            url: self.url,
            headers: self.headers,
            body: self.body.map(String::into_bytes),
            timeout_ms: self.timeout_ms,
        };
        for _ in 1..self.times {
            send(&request)?;
        }
        let answer = send(&request)?;
        let shown = json!({
            "status": answer.status,
            "url": answer.url,
            "truncated": answer.truncated,
            "length": answer.body.len(),
            "headers": answer.headers,
            "body": String::from_utf8_lossy(&answer.body[..answer.body.len().min(4_096)]),
        });
        match self.then.as_str() {
            "fail" => Err(Error::failed(shown)),
            "panic" => panic!("{shown}"),
            _ => Ok(shown.to_string().into()),
        }
    }
}

tools!(Send);
