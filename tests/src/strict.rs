//! A server on loopback that speaks both model wires, judges every request as the real APIs would or harder, and answers
//! from a queue of plans.
//!
//! It is no model: it answers what a test planned, whatever was asked. A request that breaks a rule is answered with the
//! vendor's own error and kept in [`Strict::violations`], which a test asserts empty.

use astrarium::model::select::Endpoints;
use astrarium::model::wire::{Key, Limits};
use astrarium::tokens::{self, Tokenizer};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

mod anthropic;
mod openai;
mod plan;
mod rules;

pub use plan::{Form, Piece, Plan, Said, Usage};
use rules::Refused;

/// The key that the server accepts on both wires.
pub const KEY: &str = "sk-strict-0123456789";

/// A running server; it stops when it is dropped.
#[derive(Debug)]
pub struct Strict {
    address: String,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

/// What the handlers and the test see of each other.
#[derive(Debug, Default)]
struct Shared {
    plans: VecDeque<Plan>,
    requests: Vec<Value>,
    violations: Vec<String>,
    /// Reasoning that was sent out, since the vendor takes back only what it signed.
    signed: HashSet<String>,
    /// Answers to whatever contains some words, beside the queue.
    standing: Vec<(String, Plan)>,
    window: Option<Window>,
    too_long: Vec<String>,
}

/// A window that the server keeps to.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Tokens that a request may have.
    pub tokens: u64,
    /// Tokens that the server counts for each that the host estimates.
    pub weight: f64,
}

/// The two wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// `POST /v1/messages`.
    Anthropic,
    /// `POST /v1/chat/completions`.
    OpenAi,
}

impl Strict {
    /// Starts a server on a free port.
    pub async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port"))
    }

    /// Starts a server on a socket that listens.
    pub fn on(listener: TcpListener) -> Self {
        let address = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let shared = Arc::new(Mutex::new(Shared::default()));
        let router = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("axum serves until it is stopped");
        });
        Self { address, shared, task }
    }

    /// Plans the next answer; plans are used in order, one for each valid request.
    pub fn plan(&self, plan: impl Into<Plan>) {
        self.lock().plans.push_back(plan.into());
    }

    /// Answers every request whose last message contains `words` with `plan`, in place of an earlier one, and beside the
    /// queue.
    pub fn when(&self, words: &str, plan: impl Into<Plan>) {
        let mut shared = self.lock();
        shared.standing.retain(|(own, _)| own != words);
        shared.standing.push((words.to_owned(), plan.into()));
    }

    /// Refuses requests that are longer than this, and says in each answer what it counted; none takes any length.
    pub fn window(&self, window: Option<Window>) {
        self.lock().window = window;
    }

    /// What was said to requests that were refused as too long.
    pub fn too_long(&self) -> Vec<String> {
        self.lock().too_long.clone()
    }

    /// Forgets what is planned and was not asked for.
    pub fn forget(&self) {
        self.lock().plans.clear();
    }

    /// Endpoints with which [`astrarium::model::select::open`] reaches this server on both wires.
    pub fn endpoints(&self, limits: Limits) -> Endpoints {
        Endpoints {
            anthropic_key: Some(Key::new(KEY)),
            anthropic_base: Some(self.address.clone()),
            openai_key: Some(Key::new(KEY)),
            openai_base: Some(format!("{}/v1", self.address)),
            limits,
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// All request bodies, in order, the refused ones too.
    pub fn requests(&self) -> Vec<Value> {
        self.lock().requests.clone()
    }

    /// What was wrong with the requests; empty where all were good.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// Plans that no request has used.
    pub fn unused(&self) -> usize {
        self.lock().plans.len()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no handler panics while it holds the lock")
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Every request, of whatever path.
async fn handle(
    State(shared): State<Arc<Mutex<Shared>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut shared = shared.lock().expect("no handler panics while it holds the lock");
    let anthropic = headers.contains_key("anthropic-version") || uri.path() == "/v1/messages";
    let wire = if anthropic { Wire::Anthropic } else { Wire::OpenAi };
    match judge(&mut shared, wire, &method, &uri, &headers, &body) {
        Ok(Some(plan)) => {
            shared.signed.extend(plan.signed());
            plan.respond(wire)
        }
        Ok(None) => json_response(200, &models(wire), None),
        Err(refused) => {
            shared.violations.push(format!("{method} {}: {}", uri.path(), refused.message));
            json_response(refused.status, &error_body(wire, &refused), None)
        }
    }
}

/// The plan for a good request; none for a list of models, which needs no plan.
fn judge(
    shared: &mut Shared,
    wire: Wire,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Option<Plan>, Refused> {
    match wire {
        Wire::Anthropic => anthropic::headers(headers)?,
        Wire::OpenAi => openai::headers(headers)?,
    }
    if (method, uri.path()) == (&Method::GET, "/v1/models") {
        return Ok(None);
    }
    let is_ours = match wire {
        Wire::Anthropic => uri.path() == "/v1/messages",
        Wire::OpenAi => uri.path() == "/v1/chat/completions",
    };
    if !is_ours || *method != Method::POST {
        return Err(Refused { status: 404, message: format!("no such path: {method} {}", uri.path()) });
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    rules::need(kind == Some("application/json"), || "content-type: must be application/json".to_owned())?;
    let body: Value =
        serde_json::from_slice(body).map_err(|error| Refused::bad(format!("the body is no JSON: {error}")))?;
    shared.requests.push(body.clone());
    match wire {
        Wire::Anthropic => anthropic::body(&body, &shared.signed)?,
        Wire::OpenAi => openai::body(&body)?,
    }
    let weighed = |window: Window, tokens: u64| (tokens as f64 * window.weight) as u64;
    let counted = shared.window.map(|window| weighed(window, count(&body)));
    if let (Some(window), Some(counted)) = (shared.window, counted)
        && counted > window.tokens
    {
        let message = format!("prompt is too long: {counted} tokens > {} maximum", window.tokens);
        shared.too_long.push(message.clone());
        return Ok(Some(Plan::Status { status: 400, kind: "invalid_request_error", message, retry_after: None }));
    }
    let last = body["messages"].as_array().and_then(|messages| messages.last()).map(Value::to_string);
    let last = last.unwrap_or_default();
    let standing = shared.standing.iter().find(|(words, _)| last.contains(words)).map(|(_, plan)| plan.clone());
    let none = Refused { status: 500, message: "asked more often than the test planned".to_owned() };
    let mut plan = standing.or_else(|| shared.plans.pop_front()).ok_or(none)?;
    if let (Plan::Said(said), Some(window), Some(input)) = (&mut plan, shared.window, counted) {
        let output = said.pieces.iter().flat_map(Piece::texts).map(|text| tokens::text(text, Tokenizer::O200k)).sum();
        said.usage = Usage { input, output: weighed(window, output), ..Usage::default() };
    }
    Ok(Some(plan))
}

/// Tokens of a request: its texts, wherever they stand. A picture counts as a small one.
fn count(value: &Value) -> u64 {
    match value {
        Value::String(text) if text.starts_with("data:") => 100,
        Value::String(text) => tokens::text(text, Tokenizer::O200k),
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.iter().filter(|(key, _)| *key != "data").map(|(_, value)| count(value)).sum(),
        _ => 1,
    }
}

/// An error in the vendor's shape.
fn error_body(wire: Wire, refused: &Refused) -> Value {
    let kind = match refused.status {
        401 => "authentication_error",
        404 => "not_found_error",
        400 => "invalid_request_error",
        _ => "api_error",
    };
    match wire {
        Wire::Anthropic => json!({"type": "error", "error": {"type": kind, "message": refused.message}}),
        Wire::OpenAi => {
            let code = if refused.status == 401 { json!("invalid_api_key") } else { Value::Null };
            json!({"error": {"message": refused.message, "type": "invalid_request_error", "param": null, "code": code}})
        }
    }
}

/// The list of models, in the vendor's shape.
fn models(wire: Wire) -> Value {
    match wire {
        Wire::Anthropic => json!({
            "data": [{"type": "model", "id": "strict-1", "display_name": "Strict", "created_at": "2025-01-01T00:00:00Z"}],
            "has_more": false, "first_id": "strict-1", "last_id": "strict-1",
        }),
        Wire::OpenAi => {
            json!({"object": "list", "data": [{"id": "strict-1", "object": "model", "created": 0, "owned_by": "us"}]})
        }
    }
}

/// A whole JSON answer.
fn json_response(status: u16, body: &Value, retry_after: Option<&str>) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("tests plan real statuses");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().expect("a constant"));
    if let Some(value) = retry_after {
        headers.insert(header::RETRY_AFTER, value.parse().expect("tests plan real headers"));
    }
    response
}
