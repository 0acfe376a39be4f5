//! The stop rule: what a turn does after an answer of the model. Pure.

use crate::transcript::{Block, Reply, StopReason};

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Run the calls and ask again.
    RunCalls,
    /// Run the calls, then ask for a last word without tools: the step limit is reached.
    LastWord,
    /// The server paused a long answer: ask again as it is.
    GoOn,
    /// The answer was cut at its output limit: let it be continued.
    Continue,
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
        (false, StopReason::MaxTokens) if step < max_steps => Next::Continue,
        (false, _) => Next::Done,
    }
}

/// Whether the last call of an answer was cut off with it at the output limit. One of which not even a letter of the
/// arguments came is marked as malformed, or it would run with none.
pub fn cuts_a_call(reply: &mut Reply) -> bool {
    match (&reply.stop, reply.content.last_mut()) {
        (StopReason::MaxTokens, Some(Block::ToolUse { input, malformed, .. })) => {
            if malformed.is_none() && input.as_object().is_some_and(|object| object.is_empty()) {
                *malformed = Some(String::new());
            }
            malformed.is_some()
        }
        _ => false,
    }
}

/// A model that makes the same calls with the same results, step after step.
#[derive(Debug, Default)]
pub struct Repeats {
    last: Option<u64>,
    times: u32,
}

/// What is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// Nothing: it does not go round in circles.
    No,
    /// It is told, having repeated itself this many times in a row.
    Nudge(u32),
    /// It was told and did not stop.
    Stop,
}

/// Times in a row after which it is told.
const TOLD: u32 = 5;
/// Times in a row after which its tools are taken away.
const STOPPED: u32 = 7;

impl Repeats {
    /// Takes in a step; `step` stands for its calls and results.
    pub fn step(&mut self, step: u64) -> Repeated {
        self.times = if self.last == Some(step) { self.times + 1 } else { 1 };
        self.last = Some(step);
        match self.times {
            TOLD => Repeated::Nudge(TOLD),
            STOPPED.. => Repeated::Stop,
            _ => Repeated::No,
        }
    }
}

/// How an answer that is cut at its output limit is helped: the limit is raised once, then it is continued a few times.
#[derive(Debug, Default)]
pub struct OutputLimit {
    raised: Option<u32>,
    continued: u32,
}

/// Times that an answer is continued once its limit was raised.
const CONTINUED: u32 = 3;
/// A raised limit is this many times the usual one, and at most [`HIGHEST`].
const RAISED: u32 = 4;
const HIGHEST: u32 = 64_000;

impl OutputLimit {
    /// The limit in force, where `usual` is the one of the config.
    pub fn limit(&self, usual: u32) -> u32 {
        self.raised.unwrap_or(usual)
    }

    /// Notes that an answer was cut; whether it is to be continued. `window` is the model's.
    pub fn cut(&mut self, usual: u32, window: u64) -> bool {
        if self.raised.is_none() {
            let most = HIGHEST.min(u32::try_from(window / 4).unwrap_or(HIGHEST));
            self.raised = Some(usual.saturating_mul(RAISED).min(most).max(usual));
            return true;
        }
        self.continued += 1;
        self.continued <= CONTINUED
    }

    /// Notes an answer that came whole: what is cut after it is another one.
    pub fn whole(&mut self) {
        self.continued = 0;
    }

    /// The server does not take the raised limit: back to the usual one. True where it was raised.
    pub fn refused(&mut self, usual: u32) -> bool {
        let raised = self.raised.is_some_and(|raised| raised > usual);
        self.raised = self.raised.map(|_| usual);
        raised
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
        assert_eq!(next(&text, &StopReason::MaxTokens, 1, 2), Next::Continue);
        assert_eq!(next(&text, &StopReason::MaxTokens, 2, 2), Next::Done);
    }

    #[test]
    fn a_call_that_is_cut_at_the_limit_is_not_taken_for_one_without_arguments() {
        let cut = |stop: StopReason, input: serde_json::Value, malformed: Option<&str>| {
            let call = Block::ToolUse { id: "1".into(), name: "t".into(), input, malformed: malformed.map(Into::into) };
            let content = vec![Block::Text { text: "so".into() }, call];
            let mut reply = Reply { content, stop, usage: Default::default(), model: String::new() };
            let cut = cuts_a_call(&mut reply);
            let Some(Block::ToolUse { malformed, .. }) = reply.content.pop() else { unreachable!("it is there") };
            (cut, malformed)
        };
        assert_eq!(cut(StopReason::MaxTokens, json!({}), None), (true, Some(String::new())));
        assert_eq!(cut(StopReason::MaxTokens, json!({}), Some("{\"a")), (true, Some("{\"a".into())));
        assert_eq!(cut(StopReason::MaxTokens, json!({"a": 1}), None), (false, None), "half an object is none");
        assert_eq!(cut(StopReason::ToolUse, json!({}), None), (false, None));
    }

    #[test]
    fn the_same_step_again_and_again_is_told_then_stopped() {
        let mut repeats = Repeats::default();
        let steps: Vec<_> = [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2].map(|step| repeats.step(step)).into();
        assert!(steps[..8].iter().all(|step| *step == Repeated::No), "{steps:?}");
        assert_eq!(steps[8..], [Repeated::Nudge(5), Repeated::No, Repeated::Stop]);
    }

    #[test]
    fn a_limit_is_raised_once_and_an_answer_continued_three_times_more() {
        let mut limit = OutputLimit::default();
        assert_eq!(limit.limit(8_192), 8_192);
        assert!(limit.cut(8_192, 200_000));
        assert_eq!(limit.limit(8_192), 32_768);
        assert_eq!([(); 4].map(|()| limit.cut(8_192, 200_000)), [true, true, true, false]);
        limit.whole();
        assert!(limit.cut(8_192, 200_000), "another answer is continued as often");
        assert_eq!(limit.limit(8_192), 32_768, "and the limit is not raised again");
        assert!(
            limit.refused(8_192) && !limit.refused(8_192),
            "a server that takes no more is asked with the usual one"
        );
        assert_eq!(limit.limit(8_192), 8_192);
        let mut small = OutputLimit::default();
        assert!(small.cut(8_192, 8_000));
        assert_eq!(small.limit(8_192), 8_192, "never less than the usual one");
    }
}
