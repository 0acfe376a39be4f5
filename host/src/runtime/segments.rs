//! Pieces of the prompt, as a plugin contributes them: one call lists and renders those that are wanted.

use super::contract::exports::astrarium::plugin::prompt_segment::SegmentStability;
use super::{Answer, Guest, Runtime};
use crate::manifest::is_plugin_name;
use crate::prompt::Stability;
use std::sync::Arc;

/// Segments of one plugin.
const SEGMENTS: usize = 8;

/// What a plugin contributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// Name within the plugin.
    pub name: String,
    /// Place among the others.
    pub order: i32,
    /// How long the text holds.
    pub stability: Stability,
    /// The text, if there is something to say, or why there is none.
    pub text: Result<Option<String>, String>,
}

impl Runtime {
    /// The segments of a plugin: those of a turn, or those of the system prompt.
    pub async fn segments(self: &Arc<Self>, guest: Guest<'_>, of_turn: bool) -> Answer<Vec<Contribution>> {
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                let guest = super::invoke::present(&exports.prompt_segment)?.load(&mut *store, instance)?;
                let listed = guest.call_list_segments(&mut *store).await?;
                if listed.len() > SEGMENTS {
                    return Ok(Err(format!("it lists {} segments; at most {SEGMENTS}", listed.len())));
                }
                let mut contributions = Vec::new();
                for definition in listed {
                    let stability = match definition.stability {
                        SegmentStability::Static => Stability::Static,
                        SegmentStability::Session => Stability::Session,
                        SegmentStability::Turn(reason) => Stability::Turn(reason),
                    };
                    if matches!(stability, Stability::Turn(_)) != of_turn {
                        continue;
                    }
                    let (name, order) = (definition.name, definition.order);
                    let text = match fault(&name, order) {
                        Some(fault) => Err(fault),
                        None => guest.call_render_segment(&mut *store, &context, &name).await?,
                    };
                    contributions.push(Contribution { name, order, stability, text });
                }
                Ok(Ok(contributions))
            })
        });
        answer.await
    }
}

fn fault(name: &str, order: i32) -> Option<String> {
    if !is_plugin_name(name) {
        return Some("its name is none; use a to z, 0 to 9 and -, beginning with a letter, 64 at most".into());
    }
    (!(1..80).contains(&order)).then(|| format!("its order is {order}; use 1 to 79"))
}
