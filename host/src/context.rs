//! Where in the work a call stands: which session, step and call, and on whose behalf.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which kind of agent is at work, as in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// The agent a person talks to.
    Main,
    /// An agent started by another one.
    Subagent,
    /// A named agent beside the lead.
    Teammate,
    /// Work in the background.
    Background,
    /// A skill in a conversation of its own.
    SkillFork,
}

/// The context that a guest is told, filled in by the host alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    /// Session id.
    pub session: String,
    /// Tool call id; empty where no call is under way.
    pub call: String,
    /// Step of the turn, from 1; 0 before the first.
    pub step: u32,
    /// Kind of agent.
    pub agent: AgentKind,
    /// BCP 47 language tag.
    pub language: String,
    /// The workspace as the user knows it.
    pub workspace: PathBuf,
}
