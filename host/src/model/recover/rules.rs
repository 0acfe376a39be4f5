//! What is tried again, how often, and after how long. Pure.

use crate::model::ModelError;
use crate::model::windows::too_long;
use serde::Deserialize;
use std::time::Duration;

/// How patient we are with a server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Times that a question is asked while the server says it is busy; at least 1.
    pub attempts: u32,
    /// The first wait, in milliseconds; each further one is twice as long.
    pub first_wait_ms: u64,
    /// The longest wait of ours, in milliseconds.
    pub longest_wait_ms: u64,
    /// The longest wait that a server may ask for, in seconds; one that asks for more is told to the user.
    pub retry_after_s: u64,
    /// How long a server may say nothing at all, before its answer or in the middle, in seconds.
    pub silence_s: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { attempts: 10, first_wait_ms: 500, longest_wait_ms: 30_000, retry_after_s: 300, silence_s: 120 }
    }
}

impl Policy {
    /// What is wrong with it, if something is.
    pub fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let outside = |value: u64, most: u64| value == 0 || value > most;
        match self {
            policy if outside(policy.attempts.into(), 100) => Some(("attempts", "must be from 1 to 100")),
            policy if outside(policy.silence_s, 86_400) => Some(("silence_s", "must be from 1 to 86400")),
            _ => None,
        }
    }
}

/// Times that a question is asked where nobody answers or an answer breaks off. A mistyped address looks the same, so it
/// is told after some seconds and not after minutes.
const SILENT: u32 = 5;

/// What has been tried so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// Questions that failed.
    pub failed: u32,
    /// Overloads in a row.
    pub overloads: u32,
}

impl Tries {
    /// Counts a failure.
    pub fn note(&mut self, error: &ModelError) {
        self.failed += 1;
        self.overloads = if overloaded(error) { self.overloads + 1 } else { 0 };
    }
}

/// What comes after a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// Ask again after this wait.
    After(Duration),
    /// The error stands.
    GiveUp,
}

fn overloaded(error: &ModelError) -> bool {
    match error {
        ModelError::Status { status, kind, .. } => {
            matches!(status, 503 | 529) || kind.as_deref().is_some_and(|kind| kind.contains("overloaded"))
        }
        _ => false,
    }
}

/// How often a question may be asked that fails like this; once where asking again changes nothing.
fn most(error: &ModelError, policy: &Policy) -> u32 {
    match error {
        // No wait brings money back.
        ModelError::Status { kind: Some(kind), .. }
            if kind.contains("insufficient_quota") || kind.contains("billing") =>
        {
            1
        }
        // Nor does one make it shorter.
        error if too_long(error).is_some() => 1,
        ModelError::Status { status: 408 | 409 | 425 | 429 | 500..=599, .. } => policy.attempts,
        ModelError::Unreachable { .. } | ModelError::Broken { .. } => policy.attempts.min(SILENT),
        _ => 1,
    }
}

/// Decides after a failure; `random` is from 0 to 1.
pub(super) fn next(error: &ModelError, tries: &Tries, policy: &Policy, random: f64) -> Next {
    if tries.failed >= most(error, policy) {
        return Next::GiveUp;
    }
    let doubled = policy.first_wait_ms.saturating_mul(1 << (tries.failed - 1).min(20));
    let ours = doubled.min(policy.longest_wait_ms) as f64;
    // Half of it is fixed and half is drawn.
    let ours = Duration::from_millis((ours * (0.5 + random / 2.0)) as u64);
    match error {
        ModelError::Status { retry_after: Some(seconds), .. } if *seconds > policy.retry_after_s as f64 => Next::GiveUp,
        // Never before the server said, and not all at once at that moment.
        ModelError::Status { retry_after: Some(seconds), .. } => {
            Next::After(Duration::from_secs_f64(*seconds) + ours.min(Duration::from_secs(1)))
        }
        _ => Next::After(ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, kind: Option<&str>, retry_after: Option<f64>) -> ModelError {
        let kind = kind.map(str::to_owned);
        ModelError::Status { url: "u".into(), status, kind, message: "m".into(), cure: "c", retry_after }
    }

    fn after(error: &ModelError, failed: u32) -> Option<u64> {
        match next(error, &Tries { failed, overloads: 0 }, &Policy::default(), 1.0) {
            Next::After(wait) => Some(wait.as_millis() as u64),
            Next::GiveUp => None,
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for code in [408, 409, 425, 429, 500, 502, 503, 504, 529, 599] {
            assert_eq!(after(&status(code, None, None), 1), Some(500), "{code}");
        }
        for code in [301, 400, 401, 402, 403, 404, 413, 422] {
            assert_eq!(after(&status(code, None, None), 1), None, "{code}");
        }
        assert_eq!(after(&status(429, Some("insufficient_quota"), None), 1), None, "no wait brings money back");
        let long = ModelError::Status {
            url: "u".into(),
            status: 500,
            kind: None,
            message: "prompt is too long: 208310 tokens > 200000 maximum".into(),
            cure: "c",
            retry_after: None,
        };
        assert_eq!(after(&long, 1), None, "no wait makes it shorter");
        assert_eq!(after(&ModelError::Config("c".into()), 1), None);
    }

    #[test]
    fn waits_double_up_to_a_ceiling_and_end() {
        let busy = status(503, None, None);
        let waits: Vec<_> = (1..=10).map(|failed| after(&busy, failed)).collect();
        let ms = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000].map(Some);
        assert_eq!(waits, [ms.as_slice(), &[None]].concat());
        let silent = ModelError::Unreachable { url: "u".into(), reason: "r".into() };
        assert_eq!((after(&silent, 4), after(&silent, 5)), (Some(4_000), None));
        let drawn = next(&busy, &Tries { failed: 1, overloads: 0 }, &Policy::default(), 0.0);
        assert_eq!(drawn, Next::After(Duration::from_millis(250)), "half of a wait is drawn");
    }

    #[test]
    fn a_server_that_says_when_is_obeyed_up_to_a_bound() {
        assert_eq!(after(&status(429, None, Some(7.0)), 1), Some(7_500));
        assert_eq!(after(&status(429, None, Some(0.0)), 4), Some(1_000));
        assert_eq!(after(&status(429, None, Some(301.0)), 1), None);
    }
}
