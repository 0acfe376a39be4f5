//! A person's consent to a call: the question as it is put, the answer, and who can be asked.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Tool name.
    pub tool: String,
    /// Plugin that would run.
    pub plugin: String,
    /// Arguments, as they would be run with.
    pub input: Value,
    /// Who wants it asked (a hook's plugin, or a rule), and why, where there is more to say.
    pub reasons: Vec<(String, String)>,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This call, and no other.
    Once,
    /// This tool for as long as the session is open, whenever the same rule or hook asks.
    Always,
    /// No; perhaps with a word for the model.
    No(String),
    /// Neither: the run is to be cancelled.
    Cancel,
}

/// Whoever can put a question to a person. Called while a call waits, one question at a time; the street hands it to a
/// session, and a session without one refuses what it would have to ask.
#[async_trait::async_trait]
pub trait Asker: Send + Sync {
    /// Asks and waits for as long as it takes, or until `cancel`; none when nobody can be asked after all.
    async fn ask(&self, question: &Question, cancel: &CancellationToken) -> Option<Answer>;
}
