//! `http`: the one door by which requests leave, for `astrarium:host/http` and wasi:http alike.
//!
//! What may leave is judged by the egress room; this one acts on its judgement and adds nothing to it. For each hop: the
//! rule, the headers, the name's addresses, each judged; then the secrets of the rule, then a connection to an address
//! that was judged. No proxy, no cookie, no cache, no connection kept. Secrets are taken out of all that comes back.

mod connect;
mod exchange;
mod names;
mod secrets;
mod wasi;

pub use names::{Names, Resolve};
pub(crate) use wasi::Hooks;

use super::Recorder;
use crate::audit::Trail;
use crate::context::CallContext;
use crate::egress::{Bounds, Refusal, Scrub};
use crate::limits::Limits;
use crate::runtime::contract::astrarium::host::http;
use crate::runtime::contract::astrarium::host::types::Error;
use crate::runtime::{GuestEnv, GuestState, Services};
use bytes::Bytes;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// What all guests' requests share: how names are resolved, TLS, and secrets that a program told. Made once by the host.
pub struct Web {
    names: Names,
    tls: connect::Tls,
    told: secrets::Told,
}

impl Web {
    /// A door that resolves names by `names`.
    pub fn new(names: Names) -> Self {
        Self { names, tls: connect::Tls::default(), told: secrets::Told::default() }
    }
}

/// The door as one call of a guest stands before it.
#[derive(Clone)]
pub(crate) struct Caller {
    env: Arc<GuestEnv>,
    web: Arc<Web>,
    sizes: Sizes,
    /// Where what leaves is recorded first; none for a guest that may send nothing.
    recorder: Option<Recorder>,
    /// Where refusals go.
    trail: Arc<Trail>,
    /// Secrets that went out on behalf of this call.
    scrub: Arc<Mutex<Scrub>>,
    /// What all requests of this call take together.
    together: Arc<Together>,
}

/// What all requests of one call take together: each answer waits in the host until its guest reads it.
struct Together {
    /// Requests that may be under way at once; further ones wait.
    under_way: Semaphore,
    /// Bytes of answers so far.
    bytes: AtomicU64,
}

/// Requests of one call at once: a browser has six to a host.
const AT_ONCE: usize = 16;

/// Answers of the largest size that one call may have.
const ANSWERS: u64 = 16;

/// Limits of one exchange.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    bounds: Bounds,
    total: Duration,
    request: u64,
    response: u64,
    redirects: u64,
}

/// A request as a guest made it.
struct Request {
    method: String,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Bytes>,
    times: Times,
    /// Whether redirects are followed; wasi:http leaves that to the guest, whose next request comes here again.
    follow: bool,
}

/// How long a guest wants to wait; none of them is longer than the rule's and the limits' own time.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    total: Option<Duration>,
    connect: Option<Duration>,
    first_byte: Option<Duration>,
    between_bytes: Option<Duration>,
}

/// An answer, without the secrets that were sent.
struct Answer {
    status: u16,
    headers: ::http::HeaderMap,
    body: Vec<u8>,
    /// Whether the body was longer.
    truncated: bool,
    /// Where it came from in the end.
    url: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// It was not allowed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It took too long.
    #[error("http: {0}")]
    Time(String),
    /// The name does not resolve.
    #[error("http: {0}")]
    Name(String),
    /// Nobody answers at the address.
    #[error("http: {0}")]
    Connect(String),
    /// TLS does not come about.
    #[error("http: {0}")]
    Tls(String),
    /// The server does not speak HTTP, or broke off.
    #[error("http: {0}")]
    Broken(String),
    /// It cannot be recorded, so it did not leave.
    #[error("{0}")]
    Unrecorded(String),
    /// A secret of the rule cannot be had.
    #[error("http: {0}")]
    Secret(String),
}

impl Caller {
    pub(crate) fn new(
        env: &Arc<GuestEnv>,
        services: &Services,
        context: &CallContext,
        trail: &Arc<Trail>,
        limits: &Limits,
    ) -> Self {
        let sizes = Sizes {
            bounds: Bounds { url: limits.http_url_bytes as usize, headers: limits.http_header_bytes as usize },
            total: Duration::from_millis(limits.http_ms),
            request: limits.http_request_bytes,
            response: limits.http_response_bytes,
            redirects: limits.http_redirects,
        };
        let recorder = (!env.effective.http.is_empty()).then(|| Recorder {
            audit: services.audit.clone(),
            context: context.clone(),
            env: env.clone(),
        });
        let (env, web, trail) = (env.clone(), services.web.clone(), trail.clone());
        let together = Arc::new(Together { under_way: Semaphore::new(AT_ONCE), bytes: AtomicU64::new(0) });
        Self { env, web, sizes, recorder, trail, scrub: Arc::default(), together }
    }

    fn scrub(&self) -> MutexGuard<'_, Scrub> {
        self.scrub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a secret went out on behalf of this call.
    pub(crate) fn has_injected(&self) -> bool {
        !self.scrub().is_empty()
    }

    /// A text as it may be seen by a guest, a model or a person: without the secrets that went out.
    pub(crate) fn scrubbed(&self, text: String) -> String {
        let scrub = self.scrub();
        if scrub.is_empty() { text } else { scrub.text(&text) }
    }

    /// Puts a hop on record before it leaves.
    fn record_first(&self, target: &str, rule: &str) -> Result<(), Failure> {
        match &self.recorder {
            Some(recorder) => recorder.record_first("http", target, rule).map_err(Failure::Unrecorded),
            // Nothing is granted, and the judgement has let nothing through to here.
            None => Err(Failure::Unrecorded("http: nothing is granted".into())),
        }
    }

    /// Puts a refusal on the call's trail. What left is on record already, and how the server answered is no decision.
    fn note(&self, outcome: &Result<Answer, Failure>, shown: &str) {
        if let Err(Failure::Refused(refusal)) = outcome {
            let rule = match refusal {
                Refusal::Denied(_) => "no rule allows it",
                Refusal::Address(_) => "no rule reaches its address",
                Refusal::Invalid(_) => "requests make sense",
                Refusal::TooLarge(_) => "limits",
            };
            self.trail.refused("http", rule, &crate::plain::one_line(shown, 200), &refusal.to_string());
        }
    }
}

impl http::Host for GuestState {
    async fn send(&mut self, request: http::Request) -> Result<http::Response, Error> {
        let request = Request {
            method: request.method,
            url: request.url,
            headers: request.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
            body: request.body.map(Bytes::from),
            times: Times { total: request.timeout_ms.map(|ms| Duration::from_millis(ms.into())), ..Times::default() },
            follow: true,
        };
        let answer = self.web().send(request).await.map_err(|failure| {
            let said = self.web().scrubbed(failure.to_string());
            match failure {
                Failure::Refused(Refusal::Denied(_) | Refusal::Address(_)) => Error::Denied(said),
                Failure::Refused(Refusal::Invalid(_)) => Error::Invalid(said),
                Failure::Refused(Refusal::TooLarge(_)) => Error::LimitExceeded(said),
                _ => Error::Failed(said),
            }
        })?;
        let headers = answer
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Ok(http::Response {
            status: answer.status,
            headers: headers.collect(),
            body: answer.body,
            truncated: answer.truncated,
            url: answer.url,
        })
    }
}
