//! Loading a skill: who may, what comes of it, and which bodies stand in the conversation.

use super::super::fork::Fork;
use super::super::registry::{Live, Snapshot};
use super::kept::{Loaded, View};
use super::{NAMED, SkillSession};
use crate::plain::one_line;
use crate::prompt::{Language, Texts, contained};
use crate::skill::variables::{Variables, fill};
use crate::skill::{self, Mode, listing};
use crate::store::StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who wants a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker<'a> {
    /// The model, by this call.
    Model(&'a str),
    /// A person, by a slash command.
    Person,
}

/// A skill that may be used now.
#[derive(Debug, Clone)]
pub enum Loading {
    /// Its text goes into the conversation.
    Inline {
        /// The skill.
        live: Arc<Live>,
        /// Its body with the variables filled in; none where the same body stands there already.
        text: Option<String>,
    },
    /// An agent of its own is to follow it.
    Fork(Fork),
}

/// Why a skill is not loaded. The text is for whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is none of that name.
    #[error("there is no skill {0}")]
    Unknown(String),
    /// Its author or its globs forbid it now.
    #[error("{0}")]
    Withheld(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A loaded body, for what stands in the conversation after a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restorable {
    /// Name of the skill.
    pub name: String,
    /// Its text as it was loaded, variables filled in.
    pub text: String,
    /// The call whose result holds it; none where a person asked for it.
    pub call: Option<String>,
}

impl SkillSession {
    /// Loads a skill, and counts its use.
    pub fn load(
        &self,
        name: &str,
        arguments: Option<&str>,
        max_steps: Option<u32>,
        asker: Asker<'_>,
    ) -> Result<Loading, Refusal> {
        let snapshot = self.parts.registry.snapshot();
        let mut view = self.lock();
        let live = snapshot.get(name).ok_or_else(|| Refusal::Unknown(unknown(name, &view, &snapshot)))?.clone();
        view.permit(&live, asker)?;
        self.parts.store.count_skill_use(&live.key, (self.parts.clock)())?;
        let arguments = arguments.map(str::trim).filter(|text| !text.is_empty());
        let text = self.text(&live, arguments);
        if live.skill.context == Mode::Fork {
            if view.called.remove(&live.key) {
                self.keep(&view)?;
            }
            return Ok(Loading::Fork(Fork::new(live, text, arguments, max_steps)));
        }
        if view.loaded.get(&live.key).is_some_and(|loaded| loaded.hash == live.hash) {
            return Ok(Loading::Inline { live, text: None });
        }
        let number = view.loaded.values().map(|loaded| loaded.number + 1).max().unwrap_or_default();
        let call = match asker {
            Asker::Model(call) => call.to_owned(),
            Asker::Person => String::new(),
        };
        let loaded = Loaded { hash: live.hash.clone(), arguments: arguments.map(str::to_owned), call, number };
        view.loaded.insert(live.key.clone(), loaded);
        self.keep(&view)?;
        Ok(Loading::Inline { live, text: Some(text) })
    }

    /// Loads a skill that a person called by its name: the text of the message that this becomes. One that forks is left to the
    /// model to load, which may do so this once even where its author keeps it for people.
    pub fn called(&self, name: &str, arguments: &str, texts: &Texts) -> Result<String, Refusal> {
        if let Some(live) = self.fork_called(name)? {
            return Ok(texts.fill("skill-fork", &[("name", &live.skill.name), ("arguments", arguments)]));
        }
        let Loading::Inline { live, text } = self.load(name, Some(arguments), None, Asker::Person)? else {
            // It was edited this very moment.
            return self.called(name, arguments, texts);
        };
        let Some(body) = text else { return Ok(texts.fill("skill-again", &[("name", &live.skill.name)])) };
        let description = listing::described(&live.skill, texts.language());
        let folder = live.folder().display().to_string();
        let values =
            [("name", &*live.skill.name), ("description", &*description), ("folder", &folder), ("body", body.trim())];
        Ok(texts.fill("skill-called", &values))
    }

    /// The skill of this name, where it forks and a person may call it; the model may load it once from now on.
    fn fork_called(&self, name: &str) -> Result<Option<Arc<Live>>, Refusal> {
        let snapshot = self.parts.registry.snapshot();
        let Some(live) = snapshot.get(name).filter(|live| live.skill.context == Mode::Fork) else { return Ok(None) };
        let mut view = self.lock();
        view.permit(live, Asker::Person)?;
        view.called.insert(live.key.clone());
        self.keep(&view)?;
        Ok(Some(live.clone()))
    }

    /// Bodies that stand in the conversation, most recent first, for a compaction that may cut them away.
    pub fn restorable(&self) -> Vec<Restorable> {
        let snapshot = self.parts.registry.snapshot();
        let view = self.lock();
        let mut loaded: Vec<(&String, &Loaded)> = view.loaded.iter().collect();
        loaded.sort_by_key(|(_, loaded)| std::cmp::Reverse(loaded.number));
        let restorable = loaded.into_iter().filter_map(|(key, loaded)| {
            let live = snapshot.get(key)?;
            let text = self.text(live, loaded.arguments.as_deref());
            let call = (!loaded.call.is_empty()).then(|| loaded.call.clone());
            // A message of the user's holds it as `called` put it there.
            let text = if call.is_none() { contained(&text) } else { text };
            Some(Restorable { name: live.skill.name.clone(), text, call })
        });
        restorable.collect()
    }

    /// Looks again which bodies stand in the conversation as a whole, by what `stands` says. The skills whose bodies do not
    /// may be loaded again. One whose file has changed since stays, for the news to tell.
    pub fn look_again(&self, stands: impl Fn(&Restorable) -> bool) -> Result<(), StoreError> {
        let standing: BTreeSet<String> = self
            .restorable()
            .into_iter()
            .filter(|loaded| stands(loaded))
            .map(|loaded| skill::folded(&loaded.name))
            .collect();
        let snapshot = self.parts.registry.snapshot();
        let mut view = self.lock();
        let before = view.loaded.len();
        view.loaded.retain(|key, loaded| match snapshot.get(key) {
            // What stands is what the file holds now.
            Some(live) if standing.contains(key) => {
                loaded.hash.clone_from(&live.hash);
                true
            }
            live => live.is_some_and(|live| live.hash != loaded.hash),
        });
        if before == 0 { Ok(()) } else { self.keep(&view) }
    }

    fn text(&self, live: &Live, arguments: Option<&str>) -> String {
        let folder = live.folder().display().to_string();
        let text = fill(&live.skill.body, Variables { folder: &folder, session: &self.parts.session, arguments });
        let Some(effort) = live.skill.effort else { return text };
        let effort = self.parts.texts.fill("skill-effort", &[("effort", effort.word())]);
        format!("{}\n\n{}", text.trim_end(), effort.trim_end())
    }
}

impl View {
    fn permit(&self, live: &Live, asker: Asker<'_>) -> Result<(), Refusal> {
        let name = &live.skill.name;
        let withheld = |text: String| Err(Refusal::Withheld(text));
        match asker {
            Asker::Model(_) if self.called.contains(&live.key) => Ok(()),
            _ if live.skill.disable_model_invocation && !live.skill.user_invocable => withheld(format!(
                "the skill {name} is for nobody: its author set both disable-model-invocation: true and user-invocable: \
                 false; do not retry"
            )),
            Asker::Person if !live.skill.user_invocable => {
                withheld(format!("the skill {name} is for the model only: its author set user-invocable: false"))
            }
            Asker::Model(_) if live.skill.disable_model_invocation => withheld(format!(
                "the skill {name} is for people only, its author set disable-model-invocation: true; do not retry, the user \
                 can ask for it with /{}",
                live.key
            )),
            Asker::Model(_) if !self.is_offered(live) => withheld(format!(
                "the skill {name} comes out when a file is read, searched or listed that fits {}; do not retry before",
                one_line(&live.skill.paths.globs().join(", "), 200)
            )),
            _ => Ok(()),
        }
    }
}

fn unknown(name: &str, view: &View, snapshot: &Snapshot) -> String {
    let shown = one_line(name, 80);
    let offered: Vec<&str> =
        view.in_order(snapshot).filter(|live| view.is_offered(live)).map(|live| live.skill.name.as_str()).collect();
    let key = skill::folded(name);
    let nearest = offered.iter().max_by(|a, b| strsim::jaro_winkler(a, &key).total_cmp(&strsim::jaro_winkler(b, &key)));
    match nearest {
        None => format!("{shown:?}; there are none now"),
        Some(nearest) => {
            let (named, more) = offered.split_at(offered.len().min(NAMED));
            let all = listing::and_more(named, more.len(), Language::En);
            format!("{shown:?}; the nearest is {nearest}; there are: {all}")
        }
    }
}
