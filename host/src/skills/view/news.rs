//! What a model is told when the skills change under it: a line a change, once.

use super::super::registry::Snapshot;
use super::kept::View;
use super::{NAMED, SkillSession};
use crate::prompt::{Language, Texts};
use crate::skill::listing;
use crate::store::StoreError;
use std::sync::Arc;

impl SkillSession {
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
}

impl View {
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
