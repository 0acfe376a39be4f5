//! The stop rule: what a turn does after an answer of the model. Pure.

use crate::transcript::{Block, StopReason};

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Run the calls and ask again.
    RunCalls,
    /// Run the calls, then ask for a last word without tools: the step limit is reached.
    LastWord,
    /// The server paused a long answer: ask again as it is.
    GoOn,
    /// The answer is whole.
    Done,
}

/// Decides after step `step` (from 1) of at most `max_steps`. A model that asks for tools gets its results whatever
/// stop reason its server reported; one that asks for none is done.
pub fn next(content: &[Block], stop: &StopReason, step: u32, max_steps: u32) -> Next {
    let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    match (calls, stop) {
        (true, _) if step >= max_steps => Next::LastWord,
        (true, _) => Next::RunCalls,
        (false, StopReason::Pause) if step < max_steps => Next::GoOn,
        (false, _) => Next::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_limit_still_ends_in_an_answer() {
        let call = [Block::ToolUse { id: "1".into(), name: "t".into(), input: json!({}), malformed: None }];
        let text = [Block::Text { text: "hi".into() }];
        assert_eq!(next(&call, &StopReason::ToolUse, 1, 2), Next::RunCalls);
        assert_eq!(next(&call, &StopReason::EndTurn, 1, 2), Next::RunCalls, "some servers say stop with tool calls");
        assert_eq!(next(&call, &StopReason::ToolUse, 2, 2), Next::LastWord);
        assert_eq!(next(&text, &StopReason::EndTurn, 2, 2), Next::Done);
        assert_eq!(next(&text, &StopReason::Pause, 1, 2), Next::GoOn);
        assert_eq!(next(&text, &StopReason::Pause, 2, 2), Next::Done);
        assert_eq!(next(&[], &StopReason::EndTurn, 1, 2), Next::Done);
    }
}
