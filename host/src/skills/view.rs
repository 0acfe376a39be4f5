//! What one session sees of the skills: their order, which of them a file brought out, which it has loaded, and what its
//! model has been told. It is on record with the session, so that a resumed one goes on with it.
//!
//! Activation belongs to the session and outlives every reload. An author's explicit setting always wins: a skill with
//! `disable-model-invocation: true` is never offered, whatever is touched.

mod kept;
mod load;
mod news;
mod touch;

pub use load::{Asker, Loading, Refusal, Restorable};

use super::registry::{Live, Registry};
use crate::prompt::segments::{order, own};
use crate::prompt::{Language, Segment, Stability, Texts, reminder};
use crate::skill::{self, listing, score};
use crate::store::{Store, StoreError};
use jiff::Timestamp;
use kept::View;
use std::collections::HashMap;
use std::path::PathBuf;
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
    /// What is said to a model.
    pub texts: Texts,
}

/// The skills of one conversation.
pub struct SkillSession {
    parts: Parts,
    view: Mutex<View>,
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

    /// Layer 1 as a segment of the prompt.
    pub fn segment(&self, texts: &Texts, window: u64) -> Segment {
        let list = self.layer_one(texts, window);
        let text = if list.is_empty() { list } else { reminder(&list) };
        own("skills", order::SKILLS, Stability::Session, 3, text)
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

/// The scores of all skills that were ever used, by key.
pub fn scores(store: &Store, now: Timestamp) -> Result<HashMap<String, f64>, StoreError> {
    let uses = store.skill_uses()?.into_iter().map(|used| {
        let age = used.last.map_or(0.0, |last| now.duration_since(last).as_secs_f64() / 3_600.0);
        (used.key, score::score(used.uses, age))
    });
    Ok(uses.collect())
}
