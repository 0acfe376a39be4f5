//! The prompt assembler: named, ordered segments become the system prompt. Pure and total.
//!
//! Within an epoch no byte before the newest message changes, so a segment says how long its text holds: `static` and
//! `session` ones are rendered once an epoch, a `turn` one never stands in the system prompt and is handed back apart. Blank segments are left out; with none left there is no system prompt at all. What does not fit the budget is
//! dropped by rank and named.

pub mod effective;
pub mod marks;
pub mod nudge;
pub mod render;
pub mod segments;
pub mod tasks;
pub mod texts;

use serde::{Deserialize, Serialize};
pub use texts::{Language, Texts, contained, reminder};

/// How long the text of a segment holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stability {
    /// Until the persona or the program changes.
    Static,
    /// Until the epoch ends.
    Session,
    /// Rendered each turn, for this reason. Never part of the system prompt.
    Turn(String),
}

/// A named piece of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Unique name; a later segment of the same name replaces an earlier one.
    pub name: String,
    /// Place; gaps of ten leave room for others.
    pub order: i32,
    /// How long the text holds.
    pub stability: Stability,
    /// What is dropped first when the budget is short: higher ranks before lower ones, 0 never.
    pub rank: u8,
    /// Where the text comes from: a file, a plugin, or `built in`.
    pub source: String,
    /// Text.
    pub text: String,
}

/// A segment that was left out, or cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Its name.
    pub name: String,
    /// Its tokens, as estimated.
    pub tokens: u64,
    /// Why.
    pub reason: String,
}

/// What the assembler makes of all segments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembly {
    /// The system prompt, in order.
    pub segments: Vec<Segment>,
    /// Segments that belong to a turn, in order.
    pub turn: Vec<Segment>,
    /// What was dropped or cut.
    pub dropped: Vec<Dropped>,
}

/// Bytes that one segment may have, whoever renders it: a book is no segment.
pub const SEGMENT_BYTES: usize = 64 << 10;

/// Orders and cuts the segments, and drops by rank what is over `budget`, in tokens as `tokens` counts them.
pub fn assemble(segments: Vec<Segment>, budget: u64, tokens: impl Fn(&str) -> u64) -> Assembly {
    let mut assembly = Assembly::default();
    let mut kept: Vec<Segment> = Vec::with_capacity(segments.len());
    for mut segment in segments {
        if segment.text.len() > SEGMENT_BYTES {
            let reason = format!("cut: {} bytes, and a segment has at most {SEGMENT_BYTES}", segment.text.len());
            segment.text.truncate(segment.text.floor_char_boundary(SEGMENT_BYTES));
            // Counted on what is kept: the rest may be of any size.
            assembly.dropped.push(Dropped { name: segment.name.clone(), tokens: tokens(&segment.text), reason });
        }
        match kept.iter_mut().find(|other| other.name == segment.name) {
            Some(other) => *other = segment,
            None => kept.push(segment),
        }
    }
    kept.retain(|segment| !segment.text.trim().is_empty());
    kept.sort_by_key(|segment| segment.order);
    let (turn, mut kept): (Vec<_>, Vec<_>) =
        kept.into_iter().partition(|segment| matches!(segment.stability, Stability::Turn(_)));
    let mut sizes: Vec<u64> = kept.iter().map(|segment| tokens(&segment.text)).collect();
    while sizes.iter().sum::<u64>() > budget {
        // Of equal ranks the later one goes first.
        let Some(last) = (0..kept.len()).filter(|at| kept[*at].rank > 0).max_by_key(|at| (kept[*at].rank, *at)) else {
            break;
        };
        let (segment, size) = (kept.remove(last), sizes.remove(last));
        let reason = format!(
            "dropped: the prompt is over its budget of {budget} tokens (prompt: {{ tokens: N }} in the config)"
        );
        assembly.dropped.push(Dropped { name: segment.name, tokens: size, reason });
    }
    assembly.segments = kept;
    assembly.turn = turn;
    assembly
}

#[cfg(test)]
mod tests;
