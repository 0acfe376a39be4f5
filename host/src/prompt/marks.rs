//! Where a request's cached prefixes end: at most four marks, so that a growing conversation is always read from its
//! longest prefix.
//!
//! The provider looks for an earlier entry at each mark and at most 20 blocks before it, so a step that adds more than that
//! would lose the prefix. One mark therefore stays where the request before ended, and one goes to the new end.

use crate::request::Breakpoint;

/// A request's parts, as far as marks need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Tokens of all tools; 0 without any.
    pub tools: u64,
    /// Tokens of the system prompt.
    pub system: u64,
    /// Segments of the system prompt.
    pub segments: usize,
    /// Messages.
    pub messages: usize,
    /// Messages of the request before in this epoch, which this one begins with; 0 for the first.
    pub before: usize,
}

/// Tokens below which a provider caches nothing, where the model is not known better: Anthropic's figure for most models.
pub const MINIMUM: u64 = 1_024;

/// Tokens below which this model's prefixes are not cached (Anthropic's prompt caching page).
pub fn minimum(model: &str) -> u64 {
    let model = model.to_lowercase();
    match () {
        () if model.contains("haiku-4-5") || model.contains("opus-4-5") || model.contains("opus-4-6") => 4_096,
        () if model.contains("haiku") => 2_048,
        () => MINIMUM,
    }
}

/// The marks, in render order.
pub fn marks(parts: Parts, minimum: u64) -> Vec<Breakpoint> {
    let mut marks = Vec::with_capacity(4);
    // A mark on a prefix that is too short to be cached is a mark wasted; the next one covers it.
    if parts.tools >= minimum {
        marks.push(Breakpoint::Tools);
    }
    if let Some(last) = parts.segments.checked_sub(1).filter(|_| parts.tools + parts.system >= minimum) {
        marks.push(Breakpoint::System(last));
    }
    if let Some(last) = parts.before.checked_sub(1).filter(|_| parts.before < parts.messages) {
        marks.push(Breakpoint::Message(last));
    }
    if let Some(last) = parts.messages.checked_sub(1) {
        marks.push(Breakpoint::Message(last));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use Breakpoint::{Message, System, Tools};

    #[test]
    fn every_request_is_marked_where_the_one_before_ended_and_at_its_own_end() {
        let parts = Parts { tools: 3_000, system: 900, segments: 5, messages: 1, before: 0 };
        assert_eq!(marks(parts, MINIMUM), [Tools, System(4), Message(0)]);
        assert_eq!(
            marks(Parts { messages: 41, before: 1, ..parts }, MINIMUM),
            [Tools, System(4), Message(0), Message(40)]
        );
        assert_eq!(marks(Parts { messages: 41, before: 41, ..parts }, MINIMUM), [Tools, System(4), Message(40)]);
    }

    #[test]
    fn prefixes_too_short_to_be_cached_are_not_marked() {
        let parts = Parts { tools: 1_000, system: 100, segments: 2, messages: 1, before: 0 };
        assert_eq!(marks(parts, MINIMUM), [System(1), Message(0)]);
        assert_eq!(marks(Parts { system: 10, ..parts }, MINIMUM), [Message(0)]);
        assert_eq!(marks(Parts::default(), MINIMUM), []);
    }

    #[test]
    fn there_are_never_more_than_four() {
        for (tools, segments, messages, before) in
            [(0, 0, 0, 0), (9_000, 9, 9, 3), (9_000, 0, 2, 1), (0, 9, 2, 2), (9_000, 1, 1, 7)]
        {
            let parts = Parts { tools, system: 9_000, segments, messages, before };
            assert!(marks(parts, MINIMUM).len() <= 4, "{parts:?}");
        }
    }
}
