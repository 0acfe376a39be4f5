//! Whether the gates can judge, found out before a call depends on it: what `doctor` asks.
//!
//! Each gate is shown a call that nothing will run, of the kind that may change something, and a result that no tool gave.
//! Whatever it decides is an answer; only one that fails is told. Asked alone and not in line, so that one gate's block
//! hides no other's failure.

use super::witness::{Witness, words};
use super::{Hooks, failure};
use crate::audit::{self, Entry};
use crate::context::CallContext;
use crate::plugin::Snapshot;
use crate::runtime::ToolAnswer;
use crate::transcript::Part;
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the gates are shown; it is no tool of anyone.
const TOOL: &str = "doctor_probe";

/// What the gates said.
#[derive(Debug, Default)]
pub struct Probed {
    /// How many were asked.
    pub asked: usize,
    /// Those that cannot judge, with the reason.
    pub broken: Vec<(String, String)>,
}

impl Hooks {
    /// Asks every gate that is enabled. The answers are on record as those of any call.
    pub async fn probe(&self, snapshot: &Snapshot, context: &CallContext, cancel: &CancellationToken) -> Probed {
        let mut probed = Probed { asked: 0, broken: snapshot.broken_gates.clone() };
        let (mut entries, input) = (Vec::new(), Value::Object(serde_json::Map::new()));
        let arguments = audit::digest(&input);
        for (plugin, loaded, env) in snapshot.hooks(|exports| exports.pre_tool_use.is_some()) {
            let witness = Witness::new("pre-tool-use", plugin, context).on(TOOL, &arguments);
            let trail = witness.trail.clone();
            let guest = self.guest(loaded, env, context, &trail, cancel);
            let answer = self.registry.runtime().pre_tool_use(guest, TOOL, &input, false, ("", "")).await;
            match answer {
                Ok((Ok(judgement), _)) => {
                    let (outcome, reason) = words(&judgement);
                    entries.extend(witness.tells(outcome, &reason));
                }
                failed => probed.note(&plugin.name, failure(failed), witness, &mut entries),
            }
            probed.asked += 1;
        }
        let result = ToolAnswer { parts: vec![Part::Text { text: "nothing".into() }], is_error: false };
        for (plugin, loaded, env) in snapshot.hooks(|exports| exports.post_tool_use.is_some()) {
            let witness = Witness::new("post-tool-use", plugin, context).on(TOOL, &arguments);
            let trail = witness.trail.clone();
            let guest = self.guest(loaded, env, context, &trail, cancel);
            match self.registry.runtime().post_tool_use(guest, TOOL, &input, &result, Duration::ZERO).await {
                Ok((Ok(other), _)) => {
                    entries.extend(witness.tells(if other.is_some() { "mutate" } else { "keep" }, ""));
                }
                failed => probed.note(&plugin.name, failure(failed), witness, &mut entries),
            }
            probed.asked += 1;
        }
        self.put(entries);
        probed
    }
}

impl Probed {
    fn note(&mut self, plugin: &str, reason: String, witness: Witness<'_>, entries: &mut Vec<Entry>) {
        entries.extend(witness.tells("failed", &reason));
        self.broken.push((plugin.to_owned(), reason));
    }
}
