//! What both wires share: the HTTP client, keys that never show, and what a status means. It knows no vendor's request
//! and no vendor's stream.
//!
//! Invariants: a key stands in a header and nowhere else; no error and no `Debug` prints one, not even where a server
//! repeats it. Redirects are not followed, since a redirect would carry `x-api-key` to a host that nobody named.

use super::{ModelError, sse};
use crate::transcript::{JSON_DEPTH, json_depth};
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{RequestBuilder, Response, Url};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A secret that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Takes the key as it was typed; a line feed that a shell left at its end is not part of it.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// A header value that `Debug` does not show either.
    pub(super) fn header(&self, prefix: &str, variable: &str) -> Result<HeaderValue, ModelError> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).map_err(|_| {
            ModelError::Config(format!("the key in {variable} holds a character that no header can; copy it again"))
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// How long a wire waits and how much it takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To connect. 15 s covers a slow handshake; a wrong address fails sooner than a person gives up.
    pub connect: Duration,
    /// Without a byte, before and inside an answer (`retry.silence_s` of the config). 120 s covers a long prefill; vendors ping
    /// far more often.
    pub idle: Duration,
    /// Of one event. 4 MiB holds a whole file written by one tool call in one event.
    pub event_bytes: usize,
    /// Of a whole answer. 128 MiB holds the longest that any model gives, at 300 bytes an event; what goes on beyond never ends.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            idle: Duration::from_secs(120),
            event_bytes: 4 << 20,
            answer_bytes: 128 << 20,
        }
    }
}

/// Where a vendor's key and address come from, for the cures.
#[derive(Debug)]
pub(super) struct Vendor {
    /// Of 401 and 403.
    pub key_cure: &'static str,
    /// Of 404 and of a redirect.
    pub address_cure: &'static str,
}

/// A vendor's address with the headers that open it.
#[derive(Debug)]
pub(super) struct Door {
    client: reqwest::Client,
    base: String,
    headers: HeaderMap,
    key: Option<Key>,
    vendor: &'static Vendor,
    limits: Limits,
}

/// Characters of a vendor's words that an error keeps.
const WORDS: usize = 500;
/// Bytes of an error's body that are read at all.
const ERROR_BYTES: usize = 64 << 10;
/// Bytes of a list of models; OpenRouter's is 400 KB.
const LIST_BYTES: usize = 8 << 20;

impl Door {
    /// `base` has no slash at its end; `headers` holds the key.
    pub fn new(
        base: &str,
        mut headers: HeaderMap,
        key: Option<Key>,
        vendor: &'static Vendor,
        limits: Limits,
    ) -> Result<Self, ModelError> {
        // An error only says that another part of this process installed a provider first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("astrarium/", env!("CARGO_PKG_VERSION"))));
        let mut client =
            reqwest::Client::builder().connect_timeout(limits.connect).redirect(reqwest::redirect::Policy::none());
        if is_loopback(base) {
            // A proxy that the environment names for the outside cannot reach a server on this machine.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| {
            ModelError::Config(format!("cannot set up TLS: {}; check the system's certificates", deepest(&error)))
        })?;
        Ok(Self { client, base: base.to_owned(), headers, key, vendor, limits })
    }

    /// The address of `path`, as errors show it.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Posts `body` and answers with the events of the stream that comes back.
    pub async fn stream(
        &self,
        url: &str,
        body: Vec<u8>,
    ) -> Result<BoxStream<'static, Result<sse::Event, sse::Fault>>, ModelError> {
        let request = self.client.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let response = self.send(url, request).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") || kind.starts_with("application/json") {
            let kind = bounded(kind, 60);
            let words = words_of(&read(response, ERROR_BYTES, self.limits.idle).await).message;
            return Err(self.unfit(url, &format!("it is {kind} and no event stream ({words}), so check the base URL")));
        }
        let bytes = response.bytes_stream().map(|chunk| chunk.map_err(|error| deepest(&error)));
        Ok(sse::events(bytes, self.limits))
    }

    /// Asks for the list of models, which costs no tokens, and says in a line whether `model` is among them.
    pub async fn check(&self, path: &str, query: &str, model: &str) -> Result<String, ModelError> {
        let url = self.url(path);
        let response = self.send(&url, self.client.get(format!("{url}{query}"))).await?;
        let body = read(response, LIST_BYTES, self.limits.idle).await;
        let list: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(models) = list.get("data").and_then(Value::as_array) else {
            return Err(self.unfit(&url, "it is no list of models, so check the base URL"));
        };
        let accepted = if self.key.is_some() { "accepts the key" } else { "answers without a key" };
        let count = models.len();
        Ok(if models.iter().any(|entry| entry.get("id").and_then(Value::as_str) == Some(model)) {
            format!("{url} {accepted}; {model} is one of its {count} models")
        } else {
            format!("{url} {accepted}; {model} is not among the {count} models that it lists, though an alias may work")
        })
    }

    /// Sends, and turns everything but a success into an error.
    async fn send(&self, url: &str, request: RequestBuilder) -> Result<Response, ModelError> {
        let unreachable = |reason: &str| ModelError::Unreachable { url: url.to_owned(), reason: self.scrub(reason) };
        let sent = tokio::time::timeout(self.limits.idle, request.headers(self.headers.clone()).send());
        let response = match sent.await {
            Err(_) => return Err(unreachable(&format!("no answer within {} s", self.limits.idle.as_secs_f64()))),
            Ok(Err(error)) if error.is_timeout() => {
                return Err(unreachable(&format!("no connection within {} s", self.limits.connect.as_secs_f64())));
            }
            Ok(Err(error)) => return Err(unreachable(&deepest(&error))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let mut words = words_of(&read(response, ERROR_BYTES, self.limits.idle).await);
        if words.message.is_empty() {
            words.message = status.canonical_reason().unwrap_or("no reason given").to_lowercase();
        }
        Err(self.refused(url, status.as_u16(), words, retry_after))
    }

    /// The error of a status, wherever it was said: in the answer's head, or in an event of a stream that began well.
    pub fn refused(&self, url: &str, status: u16, words: Words, retry_after: Option<f64>) -> ModelError {
        ModelError::Status {
            url: url.to_owned(),
            status,
            kind: words.kind.map(|kind| self.scrub(&bounded(&kind, 80))),
            message: self.scrub(&bounded(&words.message, WORDS)),
            cure: cure(self.vendor, status),
            retry_after,
        }
    }

    /// The error of what is no answer in any way.
    fn unfit(&self, url: &str, reason: &str) -> ModelError {
        ModelError::Unfit { url: url.to_owned(), reason: self.scrub(&bounded(reason, WORDS)) }
    }

    /// The error of a stream that is no answer.
    pub fn broken(&self, url: &str, reason: &str) -> ModelError {
        ModelError::Broken { url: url.to_owned(), reason: self.scrub(&bounded(reason, WORDS)) }
    }

    /// `text` without the key, which some servers repeat. A key this short is a stand-in for local servers, not a
    /// secret, and would tear words apart.
    fn scrub(&self, text: &str) -> String {
        match &self.key {
            Some(Key(key)) if key.len() >= 8 => text.replace(key.as_str(), "[key]"),
            _ => text.to_owned(),
        }
    }
}

/// What a vendor said of an error.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Its type.
    pub kind: Option<String>,
    /// Its sentence.
    pub message: String,
}

/// The words in the body of an error: `{"error": {"type", "message"}}` as both vendors write it, the forms of vLLM
/// (`message` at the top), Ollama (`error` is the sentence) and FastAPI (`detail`), or the text itself.
pub(super) fn words_of(body: &[u8]) -> Words {
    let text = String::from_utf8_lossy(body);
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return Words { kind: None, message: text.trim().to_owned() };
    };
    let inner = value.get("error").filter(|error| !error.is_null()).unwrap_or(&value);
    let field = |name: &str| inner.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let message = field("message").or_else(|| field("detail")).or_else(|| inner.as_str());
    Words {
        kind: field("type").or_else(|| field("code")).filter(|kind| *kind != "error").map(str::to_owned),
        message: message.map_or_else(|| text.trim().to_owned(), str::to_owned),
    }
}

/// What to do about a status.
fn cure(vendor: &Vendor, status: u16) -> &'static str {
    match status {
        400 | 422 => "change what the server names; a conversation that is too long can be compacted",
        401 | 403 => vendor.key_cure,
        402 => "check the account's billing",
        300..=399 | 404 | 405 => vendor.address_cure,
        413 => "send less: compact the conversation or shorten the last message",
        429 => "wait, or check the account's quota",
        408 | 409 | 425 | 500..=599 => "try again later",
        _ => "do what the server says",
    }
}

/// Seconds that the server asks to wait: `retry-after-ms` (OpenAI), or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<f64> {
    let date = || {
        let text = headers.get("retry-after")?.to_str().ok()?;
        let then = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
        Some(then.duration_since(jiff::Timestamp::now()).as_secs_f64().max(0.0))
    };
    let number = |name: &str| {
        let value: f64 = headers.get(name)?.to_str().ok()?.trim().parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    number("retry-after-ms").map(|millis| millis / 1000.0).or_else(|| number("retry-after")).or_else(date)
}

/// The body's first `limit` bytes, or as much of them as came before it broke or stalled.
async fn read(mut response: Response, limit: usize, idle: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < limit {
        match tokio::time::timeout(idle, response.chunk()).await {
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk[..chunk.len().min(limit - body.len())]),
            _ => break,
        }
    }
    body
}

/// The cause at the bottom of an error, which is the one that a person can act on.
fn deepest(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        // Its own words would repeat the address.
        Some(_) => "the request could not be sent".to_owned(),
        None => cause.to_string(),
    }
}

/// At most `limit` characters on one line.
fn bounded(text: &str, limit: usize) -> String {
    let line = text.split(|c: char| c.is_control()).filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limit) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// Whether `base` names this machine.
fn is_loopback(base: &str) -> bool {
    let Ok(url) = Url::parse(base) else { return false };
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        None => false,
    }
}

/// Arguments of a tool call as a model wrote them: the object, or an empty one beside the text that is none. Nothing
/// at all means no arguments.
pub(super) fn arguments(raw: &str) -> (Value, Option<String>) {
    let empty = || Value::Object(serde_json::Map::new());
    if raw.trim().is_empty() {
        return (empty(), None);
    }
    match serde_json::from_str(raw) {
        Ok(Value::Object(map)) if json_depth(raw) <= JSON_DEPTH => (Value::Object(map), None),
        _ => (empty(), Some(raw.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(key: &str) -> Door {
        let vendor = &Vendor { key_cure: "check the key", address_cure: "check the address" };
        let key = Key::new(key);
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", key.header("", "KEY").unwrap());
        Door::new("http://localhost:1", headers, Some(key), vendor, Limits::default()).unwrap()
    }

    #[test]
    fn the_words_of_an_error_in_every_form_that_servers_send() {
        let words = |body: &str| {
            let Words { kind, message } = words_of(body.as_bytes());
            format!("{}|{message}", kind.unwrap_or_default())
        };
        assert_eq!(
            words(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            "overloaded_error|Overloaded"
        );
        assert_eq!(words(r#"{"error":{"message":"No","type":null,"code":"bad_key"}}"#), "bad_key|No");
        assert_eq!(words(r#"{"object":"error","message":"No","type":"BadRequest","code":400}"#), "BadRequest|No");
        assert_eq!(words(r#"{"error":"model not found"}"#), "|model not found");
        assert_eq!(words(r#"{"detail":"Not Found"}"#), "|Not Found");
        assert_eq!(words("<h1>502</h1>\n"), "|<h1>502</h1>");
        assert_eq!(words(""), "|");
        assert_eq!(words(r#"{"detail":[{"loc":1}]}"#), r#"|{"detail":[{"loc":1}]}"#);
    }

    #[test]
    fn a_wait_is_read_in_seconds_in_milliseconds_or_as_a_date() {
        let wait = |name: &'static str, value: &str| {
            retry_after(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]))
        };
        assert_eq!(wait("retry-after", "12"), Some(12.0));
        assert_eq!(wait("retry-after", "0.5"), Some(0.5));
        assert_eq!(wait("retry-after-ms", "1500"), Some(1.5));
        assert_eq!(wait("retry-after", "-1"), None);
        assert_eq!(wait("retry-after", "inf"), None);
        assert_eq!(wait("retry-after", "soon"), None);
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(0.0), "the date is over");
        let far = wait("retry-after", "Thu, 21 Oct 2100 07:28:00 GMT").unwrap();
        assert!(far > 1e9, "{far}");
    }

    #[test]
    fn a_key_shows_nowhere() {
        let door = door("sk-secret-key\n");
        assert!(!format!("{door:?}").contains("secret"), "{door:?}");
        let words = Words { kind: None, message: "incorrect key sk-secret-key\nprovided".to_owned() };
        assert_eq!(
            door.refused("http://localhost:1/x", 401, words, None).to_string(),
            "http://localhost:1/x answered 401: incorrect key [key] provided; check the key"
        );
        let error = Key::new("sk-\u{7f}").header("", "KEY").unwrap_err();
        assert_eq!(error.to_string(), "the key in KEY holds a character that no header can; copy it again");
    }

    #[test]
    fn a_stand_in_for_a_key_does_not_tear_words_apart() {
        assert_eq!(door("e").scrub("the server"), "the server");
    }

    #[test]
    fn words_are_bounded_in_characters_on_one_line() {
        assert_eq!(bounded("a\r\nb\tc", 10), "a b c");
        assert_eq!(bounded("晴れです", 2), "晴れ…");
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for base in ["http://localhost:1/v1", "http://127.0.0.1", "http://[::1]:8080/v1"] {
            assert!(is_loopback(base), "{base}");
        }
        for base in ["https://localhost.example.org", "http://10.0.0.1", "http://127.0.0.1.example.org"] {
            assert!(!is_loopback(base), "{base}");
        }
    }

    #[test]
    fn arguments_are_an_object_or_malformed() {
        let read = |raw: &str| {
            let (input, malformed) = arguments(raw);
            format!("{input} {malformed:?}")
        };
        assert_eq!(read(r#"{"b":1,"a":2}"#), r#"{"b":1,"a":2} None"#);
        assert_eq!(read(""), "{} None");
        assert_eq!(read(r#"{"a":"#), r#"{} Some("{\"a\":")"#);
        assert_eq!(read("[1]"), r#"{} Some("[1]")"#);
        assert_eq!(read("null"), r#"{} Some("null")"#);
        // Deeper than what a stored message can be read with again.
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(110), "]".repeat(110));
        assert!(read(&deep).starts_with("{} Some("), "{deep}");
    }
}
