//! What one session sees of the skills: their order, which of them a file brought out, which it has loaded, and what its
//! model has been told. It is on record with the session, so that a resumed one goes on with it.
//!
//! Activation belongs to the session and outlives every reload. An author's explicit setting always wins: a skill with
//! `disable-model-invocation: true` is never offered, whatever is touched.

use super::fork::Fork;
use super::registry::{Live, Registry, Snapshot};
use crate::plain::one_line;
use crate::prompt::{Language, Texts};
use crate::skill::variables::{Variables, fill};
use crate::skill::{self, Mode, listing, score};
use crate::store::{Store, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tells the time; tests move it by hand.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a view is made of.
#[derive(Clone)]
pub struct Parts {
    /// Where skills are.
    pub registry: Arc<Registry>,
    /// Where it is recorded.
    pub store: Arc<Store>,
    /// The session; empty outside of one, and nothing is kept then but the counts of use.
    pub session: String,
    /// What globs are relative to.
    pub workspace: PathBuf,
    /// What time it is.
    pub clock: Clock,
}

/// The skills of one conversation.
pub struct SkillSession {
    parts: Parts,
    view: Mutex<View>,
}

/// What is kept of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct View {
    /// Keys in the order of the epoch.
    order: Vec<String>,
    /// The lines that the model knows, by key.
    told: BTreeMap<String, String>,
    /// Skills that a file brought out.
    active: BTreeSet<String>,
    /// Bodies in the conversation, by key.
    loaded: BTreeMap<String, Loaded>,
    /// What was looked at when there was last no news.
    #[serde(skip)]
    quiet: Option<(Arc<Snapshot>, usize)>,
}

/// A body that stands in the conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Loaded {
    /// Of its file.
    hash: String,
    arguments: Option<String>,
    /// The call whose result it is; empty where a person asked for it.
    call: String,
    /// Which of the loads it was.
    number: u64,
}

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

/// Changes that one reminder names; the rest is counted.
const NAMED: usize = 20;

impl SkillSession {
    /// Opens the view of a session, as it was left.
    pub fn open(parts: Parts) -> Result<Self, StoreError> {
        let kept = match parts.session.as_str() {
            "" => None,
            session => parts.store.skill_view(session)?,
        };
        // What an older version wrote may not read; the session then only begins its view anew.
        let view: View = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Self { parts, view: Mutex::new(view) })
    }

    /// The view of an agent that works beside this conversation: the same skills, in its own conversation.
    pub fn for_agent(&self) -> Self {
        let view = View { loaded: BTreeMap::new(), ..self.lock().clone() };
        let parts = Parts { session: String::new(), ..self.parts.clone() };
        Self { parts, view: Mutex::new(view) }
    }

    /// Puts the skills in the order of their use, for the epoch that begins: a later re-sort would change the prompt. What
    /// stands in its front counts as told.
    pub fn begin_epoch(&self, language: Language) -> Result<(), StoreError> {
        let snapshot = self.parts.registry.snapshot();
        let scores = scores(&self.parts.store, (self.parts.clock)())?;
        let mut order: Vec<(String, f64)> = snapshot
            .skills()
            .map(|live| (live.key.clone(), scores.get(&live.key).copied().unwrap_or_default()))
            .collect();
        score::sort(&mut order, |(key, score)| (key, *score));
        let mut view = self.lock();
        view.order = order.into_iter().map(|(key, _)| key).collect();
        view.told = view.lines(&snapshot, language);
        view.quiet = None;
        self.keep(&view)
    }

    /// Layer 1: the list of skills for the prompt, in at most a hundredth of the window. Empty where there is none.
    pub fn layer_one(&self, texts: &Texts, window: u64) -> String {
        let snapshot = self.parts.registry.snapshot();
        let view = self.lock();
        let listed: Vec<&skill::Skill> =
            view.in_order(&snapshot).filter(|live| view.is_listed(live)).map(|live| &*live.skill).collect();
        let list = listing::list(&listed, texts, window / 100);
        if list.is_empty() { list } else { texts.fill("skills", &[("skills", &list)]) }
    }

    /// Names of the skills that the model may load, in their order.
    pub fn names(&self) -> Vec<String> {
        self.offered().iter().map(|live| live.skill.name.clone()).collect()
    }

    /// The skills that the model may load, in their order.
    pub fn offered(&self) -> Vec<Arc<Live>> {
        let snapshot = self.parts.registry.snapshot();
        let view = self.lock();
        view.in_order(&snapshot).filter(|live| view.is_offered(live)).cloned().collect()
    }

    /// What the model has not been told of yet: skills that came, changed, went, or were brought out by a file.
    pub fn news(&self, texts: &Texts) -> Result<Vec<String>, StoreError> {
        let snapshot = self.parts.registry.snapshot();
        let mut view = self.lock();
        let active = view.active.len();
        let quiet = |(seen, count): &(Arc<Snapshot>, usize)| Arc::ptr_eq(seen, &snapshot) && *count == active;
        if view.quiet.as_ref().is_some_and(quiet) {
            return Ok(Vec::new());
        }
        let lines = view.news(&snapshot, texts.language());
        view.quiet = Some((snapshot, active));
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        self.keep(&view)?;
        Ok(vec![texts.fill("skills-news", &[("changes", &lines.join("\n"))])])
    }

    /// A file of the workspace was read, searched, listed or written: skills whose globs fit come out. Answers with their
    /// names; the model learns of them by the news.
    pub fn touched(&self, path: &str) -> Result<Vec<String>, StoreError> {
        let Some(path) = self.inside(path) else { return Ok(Vec::new()) };
        let snapshot = self.parts.registry.snapshot();
        let mut view = self.lock();
        let fits = |live: &&Arc<Live>| {
            let skill = &live.skill;
            !skill.disable_model_invocation && skill.paths.matches(&path) && !view.active.contains(&live.key)
        };
        let brought: Vec<Arc<Live>> = snapshot.skills().filter(fits).cloned().collect();
        if brought.is_empty() {
            return Ok(Vec::new());
        }
        view.active.extend(brought.iter().map(|live| live.key.clone()));
        self.keep(&view)?;
        Ok(brought.into_iter().map(|live| live.skill.name.clone()).collect())
    }

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
            Some(Restorable { name: live.skill.name.clone(), text, call })
        });
        restorable.collect()
    }

    /// After a compaction: which of the loaded bodies still stand in the conversation, by name. The others may be loaded
    /// again.
    pub fn compacted(&self, kept: &[&str]) -> Result<(), StoreError> {
        let kept: BTreeSet<String> = kept.iter().map(|name| skill::folded(name)).collect();
        let mut view = self.lock();
        view.loaded.retain(|key, _| kept.contains(key));
        self.keep(&view)
    }

    fn text(&self, live: &Live, arguments: Option<&str>) -> String {
        let folder = live.folder().display().to_string();
        fill(&live.skill.body, Variables { folder: &folder, session: &self.parts.session, arguments })
    }

    /// The path relative to the workspace, as globs see it; none for what lies elsewhere.
    fn inside(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        let inside = match path.is_absolute() {
            true => path.strip_prefix(&self.parts.workspace).ok()?,
            false => path,
        };
        let mut parts = Vec::new();
        for part in inside.components() {
            match part {
                std::path::Component::Normal(name) => parts.push(name.to_str()?),
                std::path::Component::CurDir => {}
                _ => return None,
            }
        }
        Some(parts.join("/"))
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, view: &View) -> Result<(), StoreError> {
        if self.parts.session.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string(view).map_err(|error| StoreError::Invalid(error.to_string()))?;
        self.parts.store.set_skill_view(&self.parts.session, &text)
    }
}

impl View {
    /// All skills of a snapshot: those of the epoch in its order, later ones by name.
    fn in_order<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<Live>> {
        let known: BTreeSet<&str> = self.order.iter().map(String::as_str).collect();
        let later = snapshot.skills().filter(move |live| !known.contains(live.key.as_str()));
        self.order.iter().filter_map(|key| snapshot.get(key)).chain(later)
    }

    /// Whether the model may load it.
    fn is_offered(&self, live: &Live) -> bool {
        let hidden = !live.skill.paths.is_empty() && !self.active.contains(&live.key);
        !live.skill.disable_model_invocation && !hidden
    }

    /// Whether it stands in the list.
    fn is_listed(&self, live: &Live) -> bool {
        live.skill.user_invocable && self.is_offered(live)
    }

    fn permit(&self, live: &Live, asker: Asker<'_>) -> Result<(), Refusal> {
        let name = &live.skill.name;
        let withheld = |text: String| Err(Refusal::Withheld(text));
        match asker {
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

    fn lines(&self, snapshot: &Snapshot, language: Language) -> BTreeMap<String, String> {
        let listed = snapshot.skills().filter(|live| self.is_listed(live));
        listed.map(|live| (live.key.clone(), listing::line(&live.skill, language))).collect()
    }

    /// A line for each change; they count as told from now on.
    fn news(&mut self, snapshot: &Snapshot, language: Language) -> Vec<String> {
        let word = |zh: &'static str, en: &'static str| match language {
            Language::Zh => zh,
            Language::En => en,
        };
        let now = self.lines(snapshot, language);
        let mut lines: Vec<String> = Vec::new();
        for (key, line) in &now {
            let word = match self.told.get(key) {
                None if snapshot.get(key).is_some_and(|live| !live.skill.paths.is_empty()) => {
                    word("已激活", "brought out by a file")
                }
                None => word("新增", "new"),
                Some(before) if before != line => word("已修改", "changed"),
                Some(_) => continue,
            };
            lines.push(format!("- [{word}] {}", line.trim_start_matches("- ")));
        }
        for key in self.told.keys().filter(|key| !now.contains_key(*key)) {
            let name = snapshot.get(key).map_or(key.as_str(), |live| &live.skill.name);
            lines.push(format!("- [{}] {name}", word("不再可用", "gone")));
        }
        for (key, loaded) in &mut self.loaded {
            if let Some(live) = snapshot.get(key).filter(|live| live.hash != loaded.hash) {
                let text = word(
                    "已加载的内容有更新，需要时请重新加载",
                    "its loaded text has changed; load it again when you need it",
                );
                lines.push(format!("- {}: {text}", live.skill.name));
            }
        }
        // What is out of date may be loaded again, and is said once.
        self.loaded.retain(|key, loaded| snapshot.get(key).is_none_or(|live| live.hash == loaded.hash));
        self.told = now;
        let more = lines.len().saturating_sub(NAMED);
        lines.truncate(NAMED);
        if more > 0 {
            lines.push(format!("- {}", listing::and_more(&[], more, language)));
        }
        lines
    }
}

/// The scores of all skills that were ever used, by key.
pub fn scores(store: &Store, now: Timestamp) -> Result<HashMap<String, f64>, StoreError> {
    let uses = store.skill_uses()?.into_iter().map(|used| {
        let age = used.last.map_or(0.0, |last| now.duration_since(last).as_secs_f64() / 3_600.0);
        (used.key, score::score(used.uses, age))
    });
    Ok(uses.collect())
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
