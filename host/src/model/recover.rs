//! A model that tries again: the same question, after a wait, when a server was busy, away, or broke off its answer.
//!
//! It stands before another [`Model`] and asks it as often as `rules` allow. What was shown of an answer that broke off
//! is withdrawn by an event before the question is asked again, so nobody takes half an answer for a whole one. It runs no
//! tool and keeps no conversation, so nothing runs twice. Dropping the future cancels the wait, too.

use super::{Model, ModelError, ModelEvent, Request};
use crate::transcript::Reply;
use async_trait::async_trait;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

mod rules;

pub use rules::Policy;
use rules::{Next, Tries};

/// Overloads in a row after which another model is asked, where the config names one.
const OVERLOADS: u32 = 3;
/// How long the other model goes on answering before the first one is tried again.
const REST: Duration = Duration::from_secs(300);

/// A model, and what answers in its place while it is overloaded.
pub struct Recovering {
    model: Arc<dyn Model>,
    fallback: Option<Arc<dyn Model>>,
    policy: Policy,
    /// Until when the fallback answers.
    resting: Mutex<Option<Instant>>,
}

impl Recovering {
    /// Puts the policy before `model`.
    pub fn new(model: Arc<dyn Model>, fallback: Option<Arc<dyn Model>>, policy: Policy) -> Self {
        Self { model, fallback, policy, resting: Mutex::new(None) }
    }

    /// Who is asked now, and whether that is the fallback.
    fn current(&self) -> (&Arc<dyn Model>, bool) {
        let resting = *self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        match (&self.fallback, resting) {
            (Some(fallback), Some(until)) if Instant::now() < until => (fallback, true),
            _ => (&self.model, false),
        }
    }

    fn wake(&self) {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn rest(&self) {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + REST);
    }
}

#[async_trait]
impl Model for Recovering {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn ask(&self, request: &Request, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError> {
        let mut tries = Tries::default();
        loop {
            let (model, fallen) = self.current();
            let mut shown = false;
            let mut watched = |event: ModelEvent| {
                shown = true;
                on_event(event);
            };
            let error = match model.ask(request, &mut watched).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            tries.note(&error);
            if let (Some(fallback), false) = (&self.fallback, fallen)
                && tries.overloads >= OVERLOADS
            {
                withdraw(shown, on_event);
                self.rest();
                let (from, to) = (model.name().to_owned(), fallback.name().to_owned());
                on_event(ModelEvent::Fallback { from, to });
                tries = Tries::default();
                continue;
            }
            let next = rules::next(&error, &tries, &self.policy, random());
            if fallen && next == Next::GiveUp {
                // Who stands in and cannot answer is of no use to the next question.
                self.wake();
            }
            let wait = match next {
                Next::GiveUp if tries.failed > 1 => {
                    return Err(ModelError::GaveUp { tries: tries.failed, error: Box::new(error) });
                }
                Next::GiveUp => return Err(error),
                Next::After(wait) => wait,
            };
            withdraw(shown, on_event);
            count_down(wait, tries.failed + 1, &error, on_event).await;
        }
    }

    async fn check(&self) -> Result<String, ModelError> {
        self.model.check().await
    }
}

fn withdraw(shown: bool, on_event: &mut (dyn FnMut(ModelEvent) + Send)) {
    if shown {
        on_event(ModelEvent::Withdrawn);
    }
}

/// Waits, and says each second how long still. The end is fixed first, so that a slow listener makes it no longer.
async fn count_down(wait: Duration, attempt: u32, error: &ModelError, on_event: &mut (dyn FnMut(ModelEvent) + Send)) {
    let end = Instant::now() + wait;
    let reason = error.to_string();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        on_event(ModelEvent::Waiting { attempt, left, reason: reason.clone() });
        if left.is_zero() {
            return;
        }
        // Whole seconds are left after each pause.
        let part = Duration::from_nanos(u64::from(left.subsec_nanos()));
        let pause = if part.is_zero() { Duration::from_secs(1) } else { part };
        sleep_until((Instant::now() + pause).min(end)).await;
        if Instant::now() >= end {
            return;
        }
    }
}

/// A number from 0 to 1, so that clients who failed together do not come back together. The hasher's keys are random.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
