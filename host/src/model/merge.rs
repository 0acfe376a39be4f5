//! The conversation in turns that alternate, as both vendors want it. Pure; what a block becomes on the wire is not its
//! matter.
//!
//! Invariants: no turn is empty, two turns of one role never meet, and the results of a user turn come before its words
//! (both vendors want the answer to a call directly after it).

use crate::transcript::{Block, Message, Role};
use std::sync::Arc;

/// Blocks of one role that were said in a row.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said; never empty.
    pub blocks: Vec<Placed<'a>>,
}

/// A block and the message that it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    /// Index into the request's messages.
    pub message: usize,
    /// The block.
    pub block: &'a Block,
}

/// `messages` without the blocks that `keep` refuses and without messages that are left with reasoning only (a model
/// that was cut off while it thought; Anthropic refuses such a message), neighbours of one role merged.
pub(super) fn merge(messages: &[Arc<Message>], keep: impl Fn(&Block) -> bool) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let blocks: Vec<Placed<'_>> =
            message.content.iter().filter(|block| keep(block)).map(|block| Placed { message: index, block }).collect();
        if blocks.iter().all(|placed| matches!(placed.block, Block::Thinking { .. })) {
            continue;
        }
        match turns.last_mut() {
            Some(turn) if turn.role == message.role => turn.blocks.extend(blocks),
            _ => turns.push(Turn { role: message.role, blocks }),
        }
    }
    for turn in turns.iter_mut().filter(|turn| turn.role == Role::User) {
        turn.blocks.sort_by_key(|placed| !matches!(placed.block, Block::ToolResult { .. }));
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Origin;
    use expect_test::{Expect, expect};

    fn message(role: Role, content: Vec<Block>) -> Message {
        Message { role, origin: Origin::Host, content }
    }

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    fn thinking() -> Block {
        Block::Thinking { text: "hm".to_owned(), signature: Some("s".to_owned()), redacted: None }
    }

    fn result(id: &str) -> Block {
        Block::ToolResult { id: id.to_owned(), parts: Vec::new(), is_error: false }
    }

    #[track_caller]
    fn check(messages: &[Message], expected: Expect) {
        let messages: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
        let turns = merge(&messages, |block| !matches!(block, Block::Text { text } if text.is_empty()));
        let lines: Vec<String> = turns
            .iter()
            .map(|turn| {
                let blocks: Vec<String> = turn
                    .blocks
                    .iter()
                    .map(|placed| match placed.block {
                        Block::Text { text } => format!("{}:{text}", placed.message),
                        Block::ToolResult { id, .. } => format!("{}:result {id}", placed.message),
                        _ => format!("{}:thinking", placed.message),
                    })
                    .collect();
                format!("{:?} {}\n", turn.role, blocks.join(", "))
            })
            .collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn neighbours_become_one_turn_with_results_first() {
        check(
            &[
                message(Role::User, vec![text("a")]),
                message(Role::User, vec![text("b")]),
                message(Role::Assistant, vec![thinking(), text("c")]),
                message(Role::User, vec![text("reminder"), result("1"), result("2")]),
                message(Role::User, vec![text("d"), result("3")]),
            ],
            expect![[r#"
                User 0:a, 1:b
                Assistant 2:thinking, 2:c
                User 3:result 1, 3:result 2, 4:result 3, 3:reminder, 4:d
            "#]],
        );
    }

    #[test]
    fn what_says_nothing_leaves_and_its_neighbours_meet() {
        check(
            &[
                message(Role::User, vec![text("a")]),
                message(Role::Assistant, vec![thinking()]),
                message(Role::User, vec![text("")]),
                message(Role::User, vec![text("b")]),
            ],
            expect![[r#"
                User 0:a, 3:b
            "#]],
        );
    }
}
