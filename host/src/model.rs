//! The door to the models: what is asked, what comes back while it streams, and what can go wrong.
//!
//! A wire translates [`Request`] into a vendor's shape and the vendor's stream into [`ModelEvent`]s and one [`Reply`].
//! It does not retry ([`recover`] does, before it), keeps no conversation and runs no tool. Dropping the future of
//! [`Model::ask`] cancels the request.

pub use crate::request::{Breakpoint, CacheLife, Request, ToolChoice, ToolSpec};
use crate::transcript::Reply;
use async_trait::async_trait;
use std::time::Duration;

pub mod anthropic;
mod ids;
mod merge;
pub mod openai;
pub mod recover;
pub mod scripted;
pub mod select;
mod sse;
pub mod windows;
pub mod wire;

/// What a model says while it answers. The whole [`Reply`] follows from [`Model::ask`].
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text of the answer.
    Text(String),
    /// More of its reasoning.
    Thinking(String),
    /// A tool call begins.
    ToolUse {
        /// Tool name.
        name: String,
    },
    /// What was said since the question was asked does not count: the answer broke off and is asked for again.
    Withdrawn,
    /// The question is asked again after a wait; told each second.
    Waiting {
        /// Which try comes next, from 2.
        attempt: u32,
        /// How long still.
        left: Duration,
        /// What went wrong.
        reason: String,
    },
    /// Another model answers in the place of one that is overloaded.
    Fallback {
        /// The one that was asked.
        from: String,
        /// The one that is asked now.
        to: String,
    },
}

/// What went wrong between us and a model. Each message says what, where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No connection, or it broke before the answer began.
    #[error("cannot reach {url}: {reason}; check ANTHROPIC_BASE_URL or OPENAI_BASE_URL, and the network")]
    Unreachable {
        /// What was called.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{url} answered {status}{}: {message}; {cure}", kind.as_deref().map(|k| format!(" ({k})")).unwrap_or_default())]
    Status {
        /// What was called.
        url: String,
        /// HTTP status; for an error event inside a stream, the status that the vendor documents for its type.
        status: u16,
        /// The vendor's error type.
        kind: Option<String>,
        /// The vendor's words, bounded.
        message: String,
        /// What to do.
        cure: &'static str,
        /// When to try again, in seconds, if the server said so.
        retry_after: Option<f64>,
    },
    /// What came is no stream of an answer at all, so the address is wrong.
    #[error("the answer of {url} is none: {reason}")]
    Unfit {
        /// What was called.
        url: String,
        /// What came.
        reason: String,
    },
    /// The stream broke, or said something that is no answer.
    #[error("the answer of {url} broke off: {reason}; nothing of it was kept, ask again")]
    Broken {
        /// What was called.
        url: String,
        /// Where it broke.
        reason: String,
    },
    /// It failed each time it was tried.
    #[error("{error} (after {tries} tries)")]
    GaveUp {
        /// Times that it was tried.
        tries: u32,
        /// What went wrong the last time.
        error: Box<ModelError>,
    },
    /// The script has no further step.
    #[error("the script {name} has no step {step}; add one, or ask less of it")]
    ScriptEnded {
        /// Script name.
        name: String,
        /// The step that was asked for, from 1.
        step: usize,
    },
    /// The model cannot be used as it was named.
    #[error("{0}")]
    Config(String),
}

/// Something that answers. Called by `turn`, once for each step, one call at a time for a session.
#[async_trait]
pub trait Model: Send + Sync {
    /// How the user names it: `anthropic:NAME`, `openai:NAME`, `scripted:FILE`.
    fn name(&self) -> &str;

    /// Asks, tells `on_event` what streams in, and answers with the whole reply.
    async fn ask(&self, request: &Request, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError>;

    /// Whether the model can be reached and the key is accepted, without spending tokens; a line for `doctor`.
    async fn check(&self) -> Result<String, ModelError>;
}
