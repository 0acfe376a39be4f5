//! Where a conversation may be cut: never between a call and its result, at neither end (SPEC 4.6).

use crate::transcript::{Block, Message, Origin};

/// Messages at the front that a cut leaves (SPEC 4.1).
pub(super) const HEAD: usize = 3;
/// Messages at the end that `snip` leaves (SPEC 4.1).
pub(super) const TAIL: usize = 47;

/// Whether the conversation may be cut before the message `at`: its results would lose their calls otherwise.
pub(super) fn safe(messages: &[Message], at: usize) -> bool {
    !messages.get(at).is_some_and(answers)
}

fn answers(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

/// The end of the front that stays: at most [`HEAD`] messages of at most `budget` tokens, none of them the work of an
/// earlier compaction, which would stay for ever.
pub(super) fn head(messages: &[Message], sizes: &[u64], budget: u64) -> usize {
    let mut taken = 0;
    let fits = messages.iter().zip(sizes).take(HEAD).take_while(|(message, size)| {
        taken += **size;
        taken <= budget && message.origin != Origin::Compaction
    });
    let mut end = fits.count().min(messages.len());
    while !safe(messages, end) {
        end -= 1;
    }
    end
}

/// The start of the end that stays: at most `most` messages of at most `budget` tokens, all after `from`.
pub(super) fn tail(messages: &[Message], sizes: &[u64], from: usize, budget: u64, most: usize) -> usize {
    let mut taken = 0;
    let mut start = messages.len();
    while start > from && messages.len() - start < most && taken + sizes[start - 1] <= budget {
        start -= 1;
        taken += sizes[start];
    }
    while !safe(messages, start) {
        start += 1;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Role;
    use serde_json::json;

    fn call(id: &str) -> Message {
        let content = vec![Block::ToolUse { id: id.into(), name: "t".into(), input: json!({}), malformed: None }];
        Message { role: Role::Assistant, origin: Origin::Model, content }
    }

    fn result(id: &str) -> Message {
        let content = vec![Block::ToolResult { id: id.into(), parts: vec![], is_error: false }];
        Message { role: Role::User, origin: Origin::Tools, content }
    }

    #[test]
    fn neither_end_parts_a_call_from_its_result() {
        let messages = [Message::user("q"), Message::host("h"), call("1"), result("1"), call("2"), result("2")];
        let sizes = [10; 6];
        assert_eq!(head(&messages, &sizes, 100), 2, "the third message is a call whose result would go");
        assert_eq!(head(&messages, &sizes, 15), 1);
        assert_eq!(head(&messages, &sizes, 5), 0);
        let again = [Message::user("q"), Message::compaction("c"), Message::user("q")];
        assert_eq!(head(&again, &sizes[..3], 100), 1, "an earlier summary is no part of the front");
        assert_eq!(tail(&messages, &sizes, 0, 30, 47), 4, "a result whose call does not fit goes too");
        assert_eq!(tail(&messages, &sizes, 0, 10, 47), 6);
        assert_eq!(tail(&messages, &sizes, 2, 1_000, 47), 2);
        assert_eq!(tail(&messages, &sizes, 0, 1_000, 3), 4);
    }
}
