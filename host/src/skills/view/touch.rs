//! Skills that a file brings out (SPEC 2.6): the globs of `paths` against what a session's tools touch.

use super::super::registry::Live;
use super::SkillSession;
use crate::store::StoreError;
use std::path::Path;
use std::sync::Arc;

impl SkillSession {
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
}
