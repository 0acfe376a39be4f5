//! The breaker: when automatic compactions that do not help are left out, and when a turn that only compacts is ended.
//!
//! It counts tokens freed and errors, not messages (SPEC 4.7). Open, it keeps automatic compactions from running until the
//! conversation has grown, then lets one try. It never stands in the way of the conversation: what the user, a tool or the
//! server's refusal asks for always runs.

use super::Trigger;
use std::fmt;

/// A compaction that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Tokens before.
    pub before: u64,
    /// Tokens after; none when it failed and nothing changed.
    pub after: Option<u64>,
}

/// Whether a compaction may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// It may.
    Run,
    /// It is left out until the conversation holds this many tokens.
    Wait {
        /// Tokens at which one is tried again.
        until: u64,
    },
}

/// The state of a session's breaker; made anew from its recorded attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaker {
    failures: u32,
    /// Tokens of the conversation when it opened, or when a try after that failed.
    opened: Option<u64>,
}

/// Failures in a row that open it (SPEC 4.7).
const FAILURES: u32 = 3;
/// A compaction that frees less than this part of the tokens did not help.
const FREED: u64 = 20;
/// Growth, as a part of the window, after which another try is worth its cost.
const GROWTH: u64 = 20;

impl Breaker {
    /// Whether a compaction may run now, at `tokens` in a window of `window`.
    pub fn go(&self, trigger: Trigger, tokens: u64, window: u64) -> Go {
        match (trigger, self.opened) {
            (Trigger::Auto, Some(opened)) if tokens < opened + window / GROWTH => {
                Go::Wait { until: opened + window / GROWTH }
            }
            _ => Go::Run,
        }
    }

    /// Whether a model is to be asked for a summary: not where summaries have just failed again and again.
    pub fn asks(&self, trigger: Trigger) -> bool {
        self.opened.is_none() || trigger != Trigger::Overflow
    }

    /// Takes in what came of a compaction.
    pub fn record(&mut self, attempt: Attempt) {
        let helped = attempt.after.is_some_and(|after| after <= attempt.before - attempt.before / FREED);
        if helped {
            *self = Self::default();
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.opened = Some(attempt.before);
        }
    }
}

impl fmt::Display for Breaker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.opened, self.failures) {
            (Some(opened), failures) => write!(
                out,
                "open after {failures} compactions that did not help; automatic ones wait until the conversation has \
                 grown past {opened} tokens, `/compact` runs at once"
            ),
            (None, 0) => write!(out, "closed"),
            (None, failures) => write!(out, "closed; {failures} of {FAILURES} compactions in a row did not help"),
        }
    }
}

/// Ends a turn in which the window is full again right after each compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thrash {
    last: Option<u32>,
    refills: u32,
}

/// Refills at once that end a turn.
const REFILLS: u32 = 3;

impl Thrash {
    /// Notes that the window is full in `step` of the turn; true when it was so at once after each of the last
    /// compactions and another will not help.
    pub fn full(&mut self, step: u32) -> bool {
        let at_once = self.last.is_some_and(|last| step.saturating_sub(last) <= 1);
        self.refills = if at_once { self.refills + 1 } else { 0 };
        self.last = Some(step);
        self.refills >= REFILLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(breaker: &mut Breaker, before: u64, after: impl Into<Option<u64>>) {
        breaker.record(Attempt { before, after: after.into() });
    }

    #[test]
    fn three_that_do_not_help_open_it_and_growth_lets_one_try() {
        let mut breaker = Breaker::default();
        tried(&mut breaker, 1_000, None);
        tried(&mut breaker, 1_000, 990);
        assert_eq!(breaker.go(Trigger::Auto, 1_000, 2_000), Go::Run);
        assert_eq!(breaker.to_string(), "closed; 2 of 3 compactions in a row did not help");
        tried(&mut breaker, 1_000, None);
        assert_eq!(breaker.go(Trigger::Auto, 1_099, 2_000), Go::Wait { until: 1_100 });
        assert_eq!(breaker.go(Trigger::Auto, 1_100, 2_000), Go::Run, "half open after growth");
        for trigger in [Trigger::Manual, Trigger::Tool, Trigger::Overflow] {
            assert_eq!(breaker.go(trigger, 1_000, 2_000), Go::Run, "{trigger:?} always runs");
        }
        assert!(!breaker.asks(Trigger::Overflow) && breaker.asks(Trigger::Manual));
        // The try fails: it waits for more growth. The next one helps: closed.
        tried(&mut breaker, 1_100, None);
        assert_eq!(breaker.go(Trigger::Auto, 1_150, 2_000), Go::Wait { until: 1_200 });
        tried(&mut breaker, 1_200, 500);
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn one_that_helps_in_between_starts_the_count_anew() {
        let mut breaker = Breaker::default();
        for after in [None, None, Some(500), None, None] {
            tried(&mut breaker, 1_000, after);
        }
        assert_eq!(breaker.go(Trigger::Auto, 1_000, 2_000), Go::Run);
    }

    #[test]
    fn three_refills_at_once_end_a_turn_and_others_do_not() {
        let mut thrash = Thrash::default();
        assert_eq!([1, 2, 3, 4].map(|step| thrash.full(step)), [false, false, false, true]);
        let mut thrash = Thrash::default();
        assert_eq!([1, 2, 9, 10, 11, 20].map(|step| thrash.full(step)), [false; 6]);
        let mut thrash = Thrash::default();
        assert_eq!([5, 5, 5, 5].map(|step| thrash.full(step)), [false, false, false, true], "the server refused each");
    }
}
