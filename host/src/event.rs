//! What happens in a turn, as it happens: the one stream that every street (terminal, JSON, later HTTP) shows.

use crate::context::AgentKind;
use crate::transcript::CallStatus;
use crate::transcript::Usage;
use serde::Serialize;
use serde_json::Value;

/// One thing that happened. Serialised as a line of `--output stream-json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A run begins.
    Started {
        /// Session id.
        session: String,
        /// Whether an earlier session goes on.
        resumed: bool,
        /// The model that answers.
        model: String,
    },
    /// More text of the answer.
    Text {
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning.
    Thinking {
        /// The piece.
        text: String,
    },
    /// What was shown of the answer since the last step does not count: it broke off and is asked for again.
    Withdrawn,
    /// The model is asked again after a wait; told each second.
    Waiting {
        /// Which try comes next, from 2.
        attempt: u32,
        /// Seconds that are left, rounded up.
        seconds: u64,
        /// What went wrong.
        reason: String,
    },
    /// A call is about to run.
    CallStarted {
        /// Id of the call.
        id: String,
        /// Tool name.
        tool: String,
        /// Arguments as the model wrote them.
        input: Value,
    },
    /// A call has ended.
    CallFinished(Finished),
    /// A guest says how far it is.
    Progress {
        /// Plugin name.
        plugin: String,
        /// From 0 to 1, where it is known.
        fraction: Option<f32>,
        /// In a few words.
        message: String,
    },
    /// A step has ended.
    Step {
        /// Its number, from 1.
        step: u32,
        /// What its answer cost.
        usage: Usage,
    },
    /// The conversation was compacted.
    Compacted {
        /// What started it.
        trigger: &'static str,
        /// What it did.
        layer: &'static str,
        /// Messages before and after.
        messages: (u32, u32),
        /// Tokens before and after, as well as they are known.
        tokens: (u64, u64),
        /// Why it is no other layer, where another was tried first.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Something the user should know.
    Notice {
        /// One line.
        text: String,
    },
    /// Another agent that works for this one: something happened in its own turn.
    Agent {
        /// Session id of that agent.
        session: String,
        /// Name of its definition; empty for the default one.
        agent: String,
        /// What happened.
        event: Box<Event>,
    },
    /// The run has ended.
    Done(Outcome),
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finished {
    /// Id of the call.
    pub id: String,
    /// Tool name.
    pub tool: String,
    /// Plugin that answered; empty when none did.
    pub plugin: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// How it ended.
    pub status: CallStatus,
    /// Why, when it was refused or failed: one line.
    pub reason: Option<String>,
    /// Wall time of the guest's call, in microseconds.
    pub duration_us: u64,
    /// What the model reads of it.
    pub output: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Session id.
    pub session: String,
    /// The model that answered, as `wire:name`.
    pub model: String,
    /// Why it ended.
    pub reason: EndReason,
    /// The answer; empty when there is none.
    pub answer: String,
    /// Steps it took.
    pub steps: u32,
    /// Tool calls it made.
    pub tool_calls: u32,
    /// How many of them were refused by a hook or a rule.
    pub refused_calls: u32,
    /// What all its answers cost, with those of the agents that worked for it.
    pub usage: Usage,
    /// The money for it by the operator's price table; none where the table does not have a model that answered.
    pub cost: Option<f64>,
    /// What went wrong, when it failed.
    pub error: Option<String>,
    /// The agents that worked for it, in the order in which they ended.
    pub agents: Vec<AgentOutcome>,
}

/// How another agent ended that worked for a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentOutcome {
    /// Kind of agent.
    pub kind: AgentKind,
    /// Name of its definition; empty for the default one.
    pub agent: String,
    /// The call that it worked for.
    pub call: String,
    /// How its own run ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The model answered.
    Done,
    /// The step limit was reached; there is an answer that says so.
    StepLimit,
    /// The user cancelled it.
    Cancelled,
    /// Something failed.
    Failed,
}

impl EndReason {
    /// In the contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            EndReason::Done => "done",
            EndReason::StepLimit => "step-limit",
            EndReason::Cancelled => "cancelled",
            EndReason::Failed => "failed",
        }
    }
}

/// Where events go. Called from the turn's own task, in order; progress may come from a guest's thread.
pub type Sink<'a> = dyn Fn(Event) + Send + Sync + 'a;
