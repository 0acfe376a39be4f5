//! What is kept of a session's view of the skills, and what follows from it for one skill.

use super::super::registry::{Live, Snapshot};
use crate::prompt::Language;
use crate::skill::listing;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is kept of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct View {
    /// Keys in the order of the epoch.
    pub order: Vec<String>,
    /// The lines that the model knows, by key.
    pub told: BTreeMap<String, String>,
    /// Skills that a file brought out.
    pub active: BTreeSet<String>,
    /// Bodies in the conversation, by key.
    pub loaded: BTreeMap<String, Loaded>,
    /// Skills that fork and that a person called: the model may load each of them once.
    #[serde(default)]
    pub called: BTreeSet<String>,
    /// What was looked at when there was last no news.
    #[serde(skip)]
    pub quiet: Option<(Arc<Snapshot>, usize)>,
}

/// A body that stands in the conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Loaded {
    /// Of its file.
    pub hash: String,
    pub arguments: Option<String>,
    /// The call whose result it is; empty where a person asked for it.
    pub call: String,
    /// Which of the loads it was.
    pub number: u64,
}

impl View {
    /// All skills of a snapshot: those of the epoch in its order, later ones by name.
    pub fn in_order<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<Live>> {
        let known: BTreeSet<&str> = self.order.iter().map(String::as_str).collect();
        let later = snapshot.skills().filter(move |live| !known.contains(live.key.as_str()));
        self.order.iter().filter_map(|key| snapshot.get(key)).chain(later)
    }

    /// Whether the model may load it.
    pub fn is_offered(&self, live: &Live) -> bool {
        let hidden = !live.skill.paths.is_empty() && !self.active.contains(&live.key);
        !live.skill.disable_model_invocation && !hidden
    }

    /// Whether it stands in the list.
    pub fn is_listed(&self, live: &Live) -> bool {
        live.skill.user_invocable && self.is_offered(live)
    }

    /// A line for each skill that the model may load, those too that stand in no list: it must hear of what comes and goes.
    pub fn lines(&self, snapshot: &Snapshot, language: Language) -> BTreeMap<String, String> {
        let offered = snapshot.skills().filter(|live| self.is_offered(live));
        offered.map(|live| (live.key.clone(), listing::line(&live.skill, language))).collect()
    }
}
