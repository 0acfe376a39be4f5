//! The audit of one call: what was decided and that it begins are on record before a guest runs, how it ended right after.
//!
//! Fails closed: a call that cannot be recorded is refused, and a result that cannot be recorded is withheld.

use super::{Asked, Calls, Finished, Ready, addressed, failed, refused};
use crate::audit::{self, Entry, Kind, Trail};
use crate::context::CallContext;
use crate::store::StoreError;
use crate::transcript::CallStatus;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What is to be recorded of a call so far.
#[derive(Default)]
pub(super) struct Note {
    /// Decisions of hooks and rules, in order.
    pub(super) entries: Vec<Entry>,
    /// Digest of the arguments as they stand.
    pub(super) arguments: String,
    /// The permission rule that decided.
    pub(super) rule: String,
    /// What the guest is allowed and refused.
    pub(super) trail: Arc<Trail>,
}

impl Calls {
    /// Judges a call and puts the judgement on record. An error is the call's result.
    pub async fn prepare<'a>(
        &self,
        asked: Asked<'a>,
        context: &CallContext,
        cancel: &CancellationToken,
    ) -> Result<Ready<'a>, Finished> {
        let mut note = Note::default();
        let meant = addressed(asked).unwrap_or(asked);
        if self.services.audit.is_kept() {
            note.arguments = audit::digest(meant.input);
        }
        let judged = self.judge(asked, context, cancel, &mut note).await;
        let Note { mut entries, arguments, rule, .. } = note;
        let entry = Entry { arguments, rule, ..Entry::of(context, Kind::Call, meant.tool) };
        entries.push(match &judged {
            Ok(ready) => entry.by(&ready.plugin, &ready.digest).came_to("begun", ""),
            Err(finished) => ended(entry, finished),
        });
        match (self.services.audit.put(entries), judged) {
            (Ok(()), judged) => judged,
            (Err(error), judged) => {
                let (plugin, digest) = match judged {
                    Ok(ready) => (ready.plugin, ready.digest),
                    Err(finished) => (finished.plugin, finished.digest),
                };
                Err(Finished { plugin, digest, ..unrecorded(&error) })
            }
        }
    }

    /// Runs a call, shows the result to the hooks, bounds it and puts it on record.
    pub async fn run(&self, ready: &Ready<'_>, context: &CallContext, cancel: &CancellationToken) -> Finished {
        let mut note = Note { arguments: ready.arguments.clone(), ..Note::default() };
        let finished = self.answer(ready, context, cancel, &mut note).await;
        if !self.services.audit.is_kept() {
            return finished;
        }
        let Note { entries: hooks, arguments, trail, .. } = note;
        let mut entries = trail.entries(context, &ready.plugin, &ready.digest);
        entries.extend(hooks);
        let entry = Entry { arguments, ..Entry::of(context, Kind::Call, ready.tool) };
        entries.push(ended(entry, &finished).took(finished.duration, trail.memory()));
        match self.services.audit.put(entries) {
            Ok(()) => finished,
            Err(error) => {
                let reason = format!("the call ran, but its outcome cannot be recorded, so it is withheld: {error}");
                let Finished { plugin, digest, duration, .. } = finished;
                Finished { plugin, digest, duration, ..failed(&reason, None) }
            }
        }
    }
}

fn ended(entry: Entry, finished: &Finished) -> Entry {
    let outcome = match finished.status {
        CallStatus::Ok => "ok",
        CallStatus::Failed => "failed",
        CallStatus::Refused => "refused",
    };
    entry.by(&finished.plugin, &finished.digest).came_to(outcome, finished.reason.as_deref().unwrap_or_default())
}

fn unrecorded(error: &StoreError) -> Finished {
    refused(
        &format!("every call must be recorded, and this one cannot be, so it did not run: {error}; do not retry"),
        None,
    )
}
