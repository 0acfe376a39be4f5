//! The pipeline of hooks: those of one event run one after another in their order, and their answers are folded.
//!
//! Gates and mutators, which stand here, fail closed: an error, a trap or a time-out refuses the call or withholds the result.
//! Observers (`observers`) and segments fail alone.
//! Each function is called exactly once for its event, by `turn` or `tool_call`, and from nowhere else. Every answer goes on
//! the audit: those about a call with the call, by `tool_call`; those of observers here, when all of an event have answered.

mod observers;
mod probe;
mod segments;
mod witness;

use crate::audit::{self, Entry, Kind, Trail};
use crate::context::CallContext;
use crate::fold::{Judgement, Verdict};
use crate::plain;
use crate::plugin::{Registry, Snapshot};
use crate::runtime::{Answer, CallError, Guest, GuestEnv, Loaded, Services, ToolAnswer};
use crate::transcript::Part;
pub use probe::Probed;
pub use segments::Contributed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use witness::{Witness, words};

/// Characters of a reason that the model sees: short and plain.
const REASON: usize = 600;

/// Characters of a text that a hook adds to the conversation: a page, not a book.
const CONTEXT: usize = 16_000;

/// Failures in a session after which an observer is left out for its rest.
const FAILURES: u32 = 3;

/// The hooks of one session.
pub struct Hooks {
    registry: Arc<Registry>,
    services: Services,
    /// Failures so far by plugin, counted for the session and all of its agents.
    failures: Arc<Mutex<BTreeMap<String, u32>>>,
    /// What the user has not been told yet.
    news: Arc<Mutex<Vec<String>>>,
}

/// When and for whom hooks of a call run.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The plugins that the call captured.
    pub snapshot: &'a Snapshot,
    /// Where in the work it stands.
    pub context: &'a CallContext,
    /// Cancels it.
    pub cancel: &'a CancellationToken,
}

/// The call that hooks judge.
pub struct Judged<'a> {
    /// Tool name.
    pub tool: &'a str,
    /// Whether a call changes nothing.
    pub read_only: bool,
    /// Plugin that answers it.
    pub plugin: &'a str,
    /// SHA-256 of its component.
    pub digest: &'a str,
    /// Digest of the arguments, where there is an audit.
    pub arguments: &'a str,
}

/// The call whose result hooks see.
#[derive(Clone, Copy)]
pub struct Answered<'a> {
    /// Tool name.
    pub tool: &'a str,
    /// Arguments that it was run with.
    pub input: &'a Value,
    /// Digest of them, where there is an audit.
    pub arguments: &'a str,
    /// How long the call took.
    pub duration: Duration,
}

impl Hooks {
    /// Hooks of the plugins in `registry`, for one session.
    pub fn new(registry: Arc<Registry>, services: Services) -> Self {
        Self { registry, services, failures: Arc::default(), news: Arc::default() }
    }

    /// The same that count failures with those of `other`, whose agents they are for, and tell them by it.
    pub fn beside(self, other: &Hooks) -> Self {
        Self { failures: other.failures.clone(), news: other.news.clone(), ..self }
    }

    /// The verdict of all gates on a call, and the entries of their answers. A gate that cannot judge refuses.
    pub async fn pre_tool_use<'a>(
        &self,
        at: Moment<'_>,
        call: &Judged<'_>,
        input: &'a Value,
    ) -> (Verdict<'a>, Vec<Entry>) {
        let Moment { snapshot, context, cancel } = at;
        let (mut verdict, mut entries) = (Verdict::new(input), Vec::new());
        let mut arguments = call.arguments.to_owned();
        if let Some((gate, reason)) = snapshot.broken_gates.first() {
            verdict.block = Some((
                gate.clone(),
                bounded(&format!(
                    "it cannot judge calls, and all are refused until an operator mends or disables it; do not retry: \
                     {reason}"
                )),
            ));
            let digest = snapshot.plugin(gate).map(|plugin| plugin.digest()).unwrap_or_default();
            let entry = Entry::of(context, Kind::Hook, "pre-tool-use").by(gate, digest).came_to("broken", reason);
            entries.push(Entry { target: call.tool.to_owned(), arguments, ..entry });
            return (verdict, entries);
        }
        for (plugin, loaded, env) in snapshot.hooks(|exports| exports.pre_tool_use.is_some()) {
            let witness = Witness::new("pre-tool-use", plugin, context).on(call.tool, &arguments);
            let trail = witness.trail.clone();
            let guest = self.guest(loaded, env, context, &trail, cancel);
            let target = (call.plugin, call.digest);
            let answer =
                self.registry.runtime().pre_tool_use(guest, call.tool, &verdict.input, call.read_only, target).await;
            let goes_on = match answer {
                Ok((Ok(judgement), _)) => {
                    let (outcome, reason) = words(&judgement);
                    entries.extend(witness.tells(outcome, &reason));
                    let mutates = matches!(judgement, Judgement::Mutate { .. });
                    let goes_on = verdict.fold(&plugin.name, judgement);
                    if mutates && self.services.audit.is_kept() {
                        arguments = audit::digest(&verdict.input);
                    }
                    goes_on
                }
                // Nobody's fault, so nothing is to be mended; the call does not run all the same.
                Err(CallError::Cancelled) => {
                    entries.extend(witness.tells("cancelled", ""));
                    verdict.block = Some((plugin.name.clone(), "the user cancelled before it had judged".into()));
                    false
                }
                failed => {
                    let told = plainly(&failed);
                    let reason = failure(failed);
                    entries.extend(witness.tells("failed", &reason));
                    tracing::info!(
                        plugin = plugin.name,
                        hook = "pre-tool-use",
                        "the gate failed, the call is refused: {reason}"
                    );
                    let told =
                        format!("it cannot judge calls ({told}); do not retry, an operator has to mend or disable it");
                    verdict.block = Some((plugin.name.clone(), told));
                    false
                }
            };
            if !goes_on {
                break;
            }
        }
        for text in &mut verdict.contexts {
            *text = context_text(text);
        }
        if let Some((_, reason)) = &mut verdict.block {
            *reason = bounded(reason);
        }
        (verdict, entries)
    }

    /// The result as the model will see it, and the entries of the hooks' answers. A mutator that fails withholds it.
    pub async fn post_tool_use(
        &self,
        at: Moment<'_>,
        call: Answered<'_>,
        mut result: ToolAnswer,
    ) -> (ToolAnswer, Vec<Entry>) {
        let Moment { snapshot, context, cancel } = at;
        let Answered { tool, input, arguments, duration } = call;
        let mut entries = Vec::new();
        for (plugin, loaded, env) in snapshot.hooks(|exports| exports.post_tool_use.is_some()) {
            let witness = Witness::new("post-tool-use", plugin, context).on(tool, arguments);
            let trail = witness.trail.clone();
            let guest = self.guest(loaded, env, context, &trail, cancel);
            match self.registry.runtime().post_tool_use(guest, tool, input, &result, duration).await {
                Ok((Ok(None), _)) => entries.extend(witness.tells("keep", "")),
                Ok((Ok(Some(other)), _)) => {
                    entries.extend(witness.tells("mutate", ""));
                    result = other;
                }
                // Nobody's fault, so nothing is to be mended; the result stays unseen all the same.
                Err(CallError::Cancelled) => {
                    entries.extend(witness.tells("cancelled", ""));
                    let text = format!(
                        "the user cancelled while the call ran, and what it answered is withheld, since {} had not looked at it \
                         yet; it may have taken effect",
                        plugin.name
                    );
                    return (ToolAnswer { parts: vec![Part::Text { text }], is_error: true }, entries);
                }
                failed => {
                    let told = plainly(&failed);
                    let reason = failure(failed);
                    entries.extend(witness.tells("failed", &reason));
                    tracing::info!(plugin = plugin.name, hook = "post-tool-use", "the result is withheld: {reason}");
                    let text = bounded(&format!(
                        "the call ran, but its result is withheld: {} cannot look at it ({told}); do not retry, an \
                         operator has to mend or disable it",
                        plugin.name
                    ));
                    return (ToolAnswer { parts: vec![Part::Text { text }], is_error: true }, entries);
                }
            }
        }
        (result, entries)
    }

    fn guest<'a>(
        &'a self,
        loaded: &'a Arc<Loaded>,
        env: &'a Arc<GuestEnv>,
        context: &'a CallContext,
        trail: &'a Arc<Trail>,
        cancel: &'a CancellationToken,
    ) -> Guest<'a> {
        Guest { loaded, env, context, services: &self.services, trail, read_only: false, cancel }
    }

    /// What the user should know since this was asked last.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut *self.news())
    }

    fn news(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a hook did not answer, as the model is told: the rest is for the audit and the log.
fn plainly<T>(answer: &Answer<T>) -> String {
    match answer {
        Ok((Err(reason), _)) => reason.clone(),
        Err(CallError::Timeout(_) | CallError::Stuck(_)) => "it took too long".into(),
        Err(CallError::Cancelled) => "the user cancelled".into(),
        Err(CallError::Trap(_)) => "it crashed".into(),
        Err(CallError::Start(_)) => "it does not start".into(),
        Ok((Ok(_), _)) => String::new(),
    }
}

fn failure<T>(answer: Answer<T>) -> String {
    match answer {
        Ok((Err(reason), _)) => bounded(&reason),
        Err(error) => bounded(&error.to_string()),
        Ok((Ok(_), _)) => String::new(),
    }
}

/// A reason as the model may see it: one line, short and plain.
pub(crate) fn bounded(reason: &str) -> String {
    plain::one_line(&cut(reason, REASON), usize::MAX)
}

/// A text of a hook as it may stand in the conversation.
fn context_text(text: &str) -> String {
    plain::lines(&cut(text, CONTEXT))
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
