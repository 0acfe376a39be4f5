//! A skill that an agent of its own follows: what it is to do, and who runs it. The runner is the conductor's.

use super::registry::Live;
use crate::context::CallContext;
use serde_json::Value;
use std::sync::Arc;

/// Steps of a fork that names none.
pub const STEPS: u32 = 5;

/// Steps that a fork may have.
pub const MOST_STEPS: u32 = 10;

/// Work for an agent of its own.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The skill; its model, effort, agent and tools are wishes of its author, and its tools a limit.
    pub live: Arc<Live>,
    /// Its body with the variables filled in.
    pub instructions: String,
    /// What it was called with; the skill's description where that is nothing.
    pub task: String,
    /// Steps it may take.
    pub max_steps: u32,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkReport {
    /// The answer.
    pub answer: String,
    /// `done`, `step-limit`, `cancelled` or `failed`.
    pub reason: String,
    /// A line for each thing it did.
    pub activity: Vec<String>,
    /// Calls by tool, steps, tokens, cost.
    pub statistics: Value,
}

/// Runs forks. Asked from a guest's call, which waits; the tools of [`Fork::live`] are the only ones that the agent may use,
/// where it names any. The error is one line for the model.
#[async_trait::async_trait]
pub trait ForkRunner: Send + Sync {
    /// Runs one to its end.
    async fn run(&self, fork: Fork, context: CallContext) -> Result<ForkReport, String>;
}

impl Fork {
    pub(super) fn new(live: Arc<Live>, instructions: String, arguments: Option<&str>, max_steps: Option<u32>) -> Self {
        let task = arguments.or(live.skill.description.as_deref()).unwrap_or(&live.skill.name).to_owned();
        let max_steps = max_steps.unwrap_or(STEPS).clamp(1, MOST_STEPS);
        Self { live, instructions, task, max_steps }
    }
}
