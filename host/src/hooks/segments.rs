//! What plugins contribute to the prompt. They fail alone, as observers do: a segment that cannot be rendered is left out
//! and named, and the prompt is assembled without it.

use super::witness::Witness;
use super::{Hooks, bounded};
use crate::context::CallContext;
use crate::plain::one_line;
use crate::prompt::segments::order::PLUGIN_RANK;
use crate::prompt::{Dropped, Segment, contained};
use tokio_util::sync::CancellationToken;

/// Segments of plugins, and those that there should have been.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contributed {
    /// Rendered.
    pub segments: Vec<Segment>,
    /// Left out, with the reason.
    pub left_out: Vec<Dropped>,
}

impl Hooks {
    /// The segments of all plugins: those of a turn, or those of the system prompt.
    pub async fn segments(&self, context: &CallContext, cancel: &CancellationToken, of_turn: bool) -> Contributed {
        let snapshot = self.registry.snapshot();
        let (mut all, mut entries) = (Contributed::default(), Vec::new());
        for (plugin, loaded, env) in snapshot.hooks(|exports| exports.prompt_segment.is_some()) {
            let witness = Witness::new("prompt-segment", plugin, context);
            let trail = witness.trail.clone();
            let guest = self.guest(loaded, env, context, &trail, cancel);
            let answer = self.registry.runtime().segments(guest, of_turn);
            let Some(contributions) = self.observe(witness, plugin, answer, &mut entries).await else {
                all.leave_out(&plugin.name, "its plugin failed; the log and the audit say how");
                continue;
            };
            for contribution in contributions {
                let name = format!("{}/{}", plugin.name, one_line(&contribution.name, 64));
                match contribution.text {
                    Ok(text) => all.segments.push(Segment {
                        name,
                        order: contribution.order,
                        stability: contribution.stability,
                        rank: PLUGIN_RANK,
                        source: format!("plugin {}", plugin.name),
                        text: contained(text.as_deref().unwrap_or_default()),
                    }),
                    Err(reason) => all.leave_out(&name, &reason),
                }
            }
        }
        self.put(entries);
        all
    }
}

impl Contributed {
    fn leave_out(&mut self, name: &str, reason: &str) {
        tracing::warn!("the prompt segment {name} is left out: {reason}");
        let reason = format!("left out: {}", one_line(&bounded(reason), 600));
        self.left_out.push(Dropped { name: name.into(), tokens: 0, reason });
    }
}
