//! What the host says about the call: conveniences on the generated `call-context` record.

use serde_json::Value;

use crate::{AgentKind, Context};

impl Context {
    /// A value of the `extra` object, which is where the context grows.
    pub fn extra(&self, key: &str) -> Option<Value> {
        let mut extra: Value = serde_json::from_str(&self.extra).ok()?;
        extra.get_mut(key).map(Value::take)
    }

    /// The workspace folder as the user and the model know it. A guest with a grant sees that folder as `/workspace`.
    pub fn workspace(&self) -> Option<String> {
        match self.extra("workspace")? {
            Value::String(path) => Some(path),
            _ => None,
        }
    }
}

impl AgentKind {
    /// Its name in the contract: `main`, `subagent`, `teammate`, `background` or `skill-fork`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Teammate => "teammate",
            Self::Background => "background",
            Self::SkillFork => "skill-fork",
        }
    }
}
