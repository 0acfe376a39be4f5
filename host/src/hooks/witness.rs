//! What a hook did, as it goes on the audit: its answer, behind what its guest was allowed and refused.

use crate::audit::{Entry, Kind, Trail};
use crate::context::CallContext;
use crate::fold::Judgement;
use crate::plugin::Plugin;
use std::sync::Arc;
use std::time::Instant;

/// One hook at work; made before its guest runs.
pub(super) struct Witness<'a> {
    pub(super) hook: &'static str,
    plugin: &'a Plugin,
    context: &'a CallContext,
    /// Tool that it judges or whose result it sees; empty for others.
    tool: &'a str,
    /// Digest of the arguments that it is shown.
    arguments: String,
    pub(super) trail: Arc<Trail>,
    started: Instant,
}

impl<'a> Witness<'a> {
    pub(super) fn new(hook: &'static str, plugin: &'a Plugin, context: &'a CallContext) -> Self {
        let (trail, started) = (Arc::default(), Instant::now());
        Self { hook, plugin, context, tool: "", arguments: String::new(), trail, started }
    }

    /// The same for a hook that works on a call.
    pub(super) fn on(self, tool: &'a str, arguments: &str) -> Self {
        Self { tool, arguments: arguments.to_owned(), ..self }
    }

    /// The entries, once the hook has answered.
    pub(super) fn tells(self, outcome: &str, reason: &str) -> Vec<Entry> {
        let Self { hook, plugin, context, tool, arguments, trail, started } = self;
        let mut entries = trail.entries(context, &plugin.name, plugin.digest());
        let entry = Entry::of(context, Kind::Hook, hook).by(&plugin.name, plugin.digest()).came_to(outcome, reason);
        entries.push(Entry { target: tool.to_owned(), arguments, ..entry }.took(started.elapsed(), trail.memory()));
        entries
    }
}

/// A judgement in the audit's words: the decision, and why.
pub(super) fn words(judgement: &Judgement) -> (&'static str, String) {
    match judgement {
        Judgement::Proceed => ("proceed", String::new()),
        Judgement::Mutate { .. } => ("mutate", String::new()),
        Judgement::Ask(reason) => ("ask", reason.clone()),
        Judgement::Block(reason) => ("block", reason.clone()),
    }
}
