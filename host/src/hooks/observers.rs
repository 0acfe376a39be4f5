//! The observers: what each of the seven hooks that neither judges nor changes a call is told, and what is made of its answers.
//! They fail alone: an error is logged and the work goes on; three failures in a session retire a plugin for that session.

use super::witness::Witness;
use super::{FAILURES, Hooks, context_text, failure};
use crate::audit::Entry;
use crate::context::CallContext;
use crate::event::EndReason;
use crate::plugin::Plugin;
use crate::runtime::{AgentBegins, AgentEnded, Answer, CallError, CompactFigures, StepFigures};
use tokio_util::sync::CancellationToken;

/// Calls one hook of all plugins that export it, one after another in their order, puts on record what came of each, and
/// answers with what they answered. A macro, since each hook is a function of its own in the contract.
macro_rules! ask_all {
    ($hooks:ident, $hook:ident, $name:literal, $context:expr, $cancel:expr $(, $argument:expr)*) => {{
        let snapshot = $hooks.registry.snapshot();
        let (mut answers, mut entries) = (Vec::new(), Vec::new());
        for (plugin, loaded, env) in snapshot.hooks(|exports| exports.$hook.is_some()) {
            let witness = Witness::new($name, plugin, $context);
            let trail = witness.trail.clone();
            let guest = $hooks.guest(loaded, env, $context, &trail, $cancel);
            let answer = $hooks.registry.runtime().$hook(guest $(, $argument)*);
            answers.extend($hooks.observe(witness, plugin, answer, &mut entries).await);
        }
        $hooks.put(entries);
        answers
    }};
}

impl Hooks {
    /// Texts for the model, in hook order, and whether unfinished tasks are to be recalled.
    pub async fn session_start(
        &self,
        context: &CallContext,
        cancel: &CancellationToken,
        resumed: bool,
        model: &str,
        open_tasks: u32,
    ) -> (Vec<String>, bool) {
        let answers = ask_all!(self, session_start, "session-start", context, cancel, resumed, model, open_tasks);
        let recovery = answers.iter().all(|answer| answer.task_recovery);
        (texts(answers.into_iter().map(|answer| answer.context)), recovery)
    }

    /// Tells the observers of a step.
    pub async fn step_complete(&self, context: &CallContext, cancel: &CancellationToken, figures: StepFigures) {
        ask_all!(self, step_complete, "step-complete", context, cancel, figures);
    }

    /// What the hooks want a summary to mind, in hook order, before a compaction.
    pub async fn pre_compact(
        &self,
        context: &CallContext,
        cancel: &CancellationToken,
        messages: u32,
        tokens: u64,
        trigger: &str,
    ) -> Vec<String> {
        texts(ask_all!(self, pre_compact, "pre-compact", context, cancel, messages, tokens, trigger))
    }

    /// Tells the observers of a compaction that has changed the conversation.
    pub async fn post_compact(&self, context: &CallContext, cancel: &CancellationToken, figures: &CompactFigures) {
        ask_all!(self, post_compact, "post-compact", context, cancel, figures);
    }

    /// What the hooks want said to another agent before its task, in hook order.
    pub async fn subagent_start(
        &self,
        context: &CallContext,
        cancel: &CancellationToken,
        begins: &AgentBegins<'_>,
    ) -> Vec<String> {
        texts(ask_all!(self, subagent_start, "subagent-start", context, cancel, begins))
    }

    /// Tells the observers that another agent has ended.
    pub async fn subagent_stop(&self, context: &CallContext, ended: &AgentEnded<'_>) {
        // Of its own: a cancelled agent still stops in order.
        let cancel = CancellationToken::new();
        ask_all!(self, subagent_stop, "subagent-stop", context, &cancel, ended);
    }

    /// Tells the observers that a run has ended.
    pub async fn session_stop(&self, context: &CallContext, reason: EndReason, steps: u32, tool_calls: u32) {
        // Of its own: a cancelled run still stops in order.
        let cancel = CancellationToken::new();
        ask_all!(self, session_stop, "session-stop", context, &cancel, reason, steps, tool_calls);
    }

    /// Puts the answers of an event's observers on record. They have run, so a failure is for the log.
    pub(super) fn put(&self, entries: Vec<Entry>) {
        if let Err(error) = self.services.audit.put(entries) {
            tracing::warn!("what the hooks answered is not on the audit: {error}");
        }
    }

    /// Runs an observer unless it has retired; its failure is logged and counted.
    pub(super) async fn observe<T>(
        &self,
        witness: Witness<'_>,
        plugin: &Plugin,
        call: impl Future<Output = Answer<T>>,
        entries: &mut Vec<Entry>,
    ) -> Option<T> {
        let hook = witness.hook;
        let key = plugin.name.clone();
        let so_far = self.failures().get(&key).copied().unwrap_or(0);
        if so_far >= FAILURES {
            return None;
        }
        match call.await {
            Ok((Ok(value), _)) => {
                entries.extend(witness.tells("ok", ""));
                Some(value)
            }
            // The user cancelled; that is no fault of the hook.
            Err(CallError::Cancelled) => {
                entries.extend(witness.tells("cancelled", ""));
                None
            }
            failed => {
                let reason = failure(failed);
                let outcome = if so_far + 1 == FAILURES { "retired" } else { "failed" };
                entries.extend(witness.tells(outcome, &reason));
                tracing::warn!(plugin = plugin.name, hook, "the hook failed: {reason}");
                if so_far + 1 == FAILURES {
                    self.news().push(format!(
                        "the plugin {} has failed {FAILURES} times, the last time at {hook} ({reason}); it observes nothing more \
                         in this session",
                        plugin.name
                    ));
                }
                self.failures().insert(key, so_far + 1);
                None
            }
        }
    }
}

/// What hooks want said, without what says nothing.
fn texts(answers: impl IntoIterator<Item = Option<String>>) -> Vec<String> {
    let said = answers.into_iter().flatten().filter(|text| !text.trim().is_empty());
    said.map(|text| context_text(&text)).collect()
}
