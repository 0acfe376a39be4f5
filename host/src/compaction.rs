//! Room in a full window: when a compaction is due, who is asked for a summary, and what takes the conversation's place.
//!
//! The plan is `compact`'s, which is pure; here a model is asked, hooks are told, and the outcome goes on record. Until that
//! moment nothing has changed, so a compaction that is cancelled or fails leaves the conversation as it was. Nothing is taken
//! off the transcript.

use crate::compact::{self, Compacted, Input, Layer, Stuck, Thrash, Trigger};
use crate::event::{Event, Sink};
use crate::runtime::CompactFigures;
use crate::session::Session;
use crate::store::{CompactionRecord, StoreError};
use crate::transcript::{Message, Usage};
use tokio_util::sync::CancellationToken;

mod restore;
mod summary;

/// Where a compaction runs.
pub struct Work<'a> {
    /// Step of the turn; 0 outside one.
    pub step: u32,
    /// Where events go.
    pub sink: &'a Sink<'a>,
    /// Cancels it.
    pub cancel: &'a CancellationToken,
}

/// Why a compaction changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user cancelled it.
    #[error("cancelled; the conversation is as it was")]
    Cancelled,
    /// There is nothing to plan.
    #[error("{0}")]
    Stuck(#[from] Stuck),
    /// No layer made the conversation smaller.
    #[error("the conversation could not be compacted: {0}")]
    Failed(String),
    /// The window is full again at once, each time.
    #[error(
        "the window of {window} tokens is full again right after each compaction, so the turn ends here; ask for less at \
         once, or name the model's true window (context_window in the config, or ASTRARIUM_CONTEXT_WINDOW)"
    )]
    Thrash {
        /// Tokens of the window.
        window: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Compacts if the window is full to its share. What only failed to help is told and no reason to stop.
pub async fn make_room(
    session: &mut Session,
    thrash: &mut Thrash,
    spent: &mut Usage,
    work: &Work<'_>,
) -> Result<(), Failure> {
    let (tokens, window) = (session.next_tokens()?, session.window());
    if tokens < window.due() || session.breaker().go(Trigger::Auto, tokens, window.tokens) != compact::Go::Run {
        return Ok(());
    }
    if thrash.full(work.step) {
        return Err(thrashed(session, Trigger::Auto)?);
    }
    match compact(session, Trigger::Auto, "", spent, work).await {
        Err(failure @ (Failure::Stuck(_) | Failure::Failed(_))) => {
            (work.sink)(Event::Notice { text: failure.to_string() });
            Ok(())
        }
        done => done.map(|_| ()),
    }
}

/// The window is full again right after each compaction: why the turn ends, on record too.
pub fn thrashed(session: &mut Session, trigger: Trigger) -> Result<Failure, StoreError> {
    let failure = Failure::Thrash { window: session.window().tokens };
    let tokens = session.next_tokens()?;
    let record = begun(session, trigger, tokens);
    session.record_failure(CompactionRecord { reason: Some(failure.to_string()), ..record })?;
    Ok(failure)
}

/// The record of a compaction that has come to nothing yet.
fn begun(session: &Session, trigger: Trigger, tokens: u64) -> CompactionRecord {
    CompactionRecord {
        number: 0,
        created: String::new(),
        trigger,
        layer: None,
        first: 0,
        messages: 0,
        messages_before: session.conversation().len() as u64,
        tokens_before: tokens,
        tokens_after: None,
        window: session.window().tokens,
        model: session.model.name().to_owned(),
        reason: None,
    }
}

/// Compacts the conversation, at a point where no call waits for its result. `spent` takes in what summaries cost.
pub async fn compact(
    session: &mut Session,
    trigger: Trigger,
    instructions: &str,
    spent: &mut Usage,
    work: &Work<'_>,
) -> Result<CompactionRecord, Failure> {
    let tokens = session.next_tokens()?;
    let front = session.front_tokens()?;
    let restore = restore::gather(session)?;
    let messages: Vec<Message> = session.conversation().iter().map(|message| (**message).clone()).collect();
    let sizes = session.sizes().to_vec();
    let texts = session.setup.persona.compact.clone();
    let input = Input {
        messages: &messages,
        sizes: &sizes,
        front,
        scale: session.scale(),
        tokenizer: session.tokenizer(),
        window: session.window(),
        trigger,
        asks: session.breaker().asks(trigger),
        restore: &restore,
        texts: &texts,
    };
    let record = begun(session, trigger, tokens);
    let plan = match compact::plan(&input) {
        Ok(plan) => plan,
        Err(stuck) => {
            session.record_failure(CompactionRecord { reason: Some(stuck.to_string()), ..record })?;
            return Err(stuck.into());
        }
    };
    let context = session.context(work.step);
    let hooks = session.hooks.clone();
    let mut extra = vec![instructions.to_owned()];
    extra.extend(hooks.pre_compact(&context, work.cancel, messages.len() as u32, tokens, trigger.as_str()).await);
    let mut reasons = Vec::new();
    let mut made: Option<(Compacted, Option<Usage>)> = None;
    for layer in &plan.layers {
        let summary = match layer {
            Layer::Summary => match summary::ask(session, &input, &extra, tokens, (&mut *spent, work)).await? {
                Ok(written) => Some(written),
                Err(reason) => {
                    reasons.push(format!("{}: {reason}", layer.as_str()));
                    continue;
                }
            },
            _ => None,
        };
        let (text, usage) = summary.unzip();
        match plan.apply(&input, *layer, text.as_deref().unwrap_or_default()) {
            Ok(compacted) => {
                made = Some((compacted, usage));
                break;
            }
            Err(refused) => reasons.push(format!("{}: {refused}", layer.as_str())),
        }
    }
    if work.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    let Some((compacted, usage)) = made else {
        let reason = if reasons.is_empty() { "no layer would help".to_owned() } else { reasons.join("; ") };
        session.record_failure(CompactionRecord { reason: Some(reason.clone()), ..record })?;
        return Err(Failure::Failed(reason));
    };
    let layer = compacted.layer;
    let after = left(tokens, front + sizes.iter().sum::<u64>(), front + compacted.tokens);
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    let record = CompactionRecord { layer: Some(layer), tokens_after: Some(after), reason, ..record };
    let record = session.replace(record, compacted, usage)?;
    session.skills.look_again(|loaded| session.stands(loaded.text.trim()))?;
    let figures = CompactFigures {
        messages: (record.messages_before as u32, record.messages as u32),
        tokens: (tokens, after),
        method: layer.as_str(),
    };
    (work.sink)(Event::Compacted {
        trigger: trigger.as_str(),
        layer: layer.as_str(),
        messages: figures.messages,
        tokens: figures.tokens,
        reason: record.reason.clone(),
    });
    hooks.post_compact(&context, work.cancel, &figures).await;
    Ok(record)
}

/// Tokens after, in the measure of those before: the provider's count of all the conversation was is shared out by estimate,
/// so that less is told as less, however far the estimates are off.
fn left(counted: u64, estimate_before: u64, estimate_after: u64) -> u64 {
    (u128::from(counted) * u128::from(estimate_after) / u128::from(estimate_before.max(1)))
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::left;

    #[test]
    fn what_is_left_is_told_in_the_measure_of_what_was() {
        // A provider that counts a fifth of what is estimated, and one that counts five times as much.
        assert_eq!((left(200, 1_000, 900), left(5_000, 1_000, 900)), (180, 4_500));
        assert_eq!((left(0, 0, 0), left(u64::MAX, 1, 2)), (0, u64::MAX));
    }
}
