//! What comes back after a compaction beside the summary: standing instructions, tasks, skills, tools, files, within a
//! budget and by rank. What does not fit is cut or named.

use super::clip::clip;
use super::texts::{Labels, fill};
use crate::tokens::{Tokenizer, text};
use std::collections::HashSet;

/// What the session has loaded and found, as plain data (SPEC 4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restore {
    /// The persona in a sentence, for the identity block.
    pub identity: String,
    /// Standing instructions of the user, word for word, oldest first.
    pub instructions: Vec<String>,
    /// The task list as a block of text; blank where nothing is open.
    pub tasks: String,
    /// Skills that were loaded, most recent first.
    pub skills: Vec<Item>,
    /// Tools that were found and are not in the frozen catalogue, with their schemas.
    pub tools: Vec<Item>,
    /// Files in which results are kept, a line each, most recent first.
    pub outputs: Vec<String>,
    /// Files that were read, most recent first; the first five count.
    pub files: Vec<Item>,
}

/// Something that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name or path.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The call whose result holds the text, or none where a message of the user does; while that stays in view, nothing is
    /// restored.
    pub call: Option<String>,
}

/// Files that come back at most (SPEC 4.9).
const FILES: usize = 5;
/// Tokens below which a cut text says too little to be worth its place; its name is given instead.
const WORTH: u64 = 64;

impl Restore {
    /// Tokens of all that comes back when results are emptied, with room for titles.
    pub(super) fn of_results(&self, tokenizer: Tokenizer) -> u64 {
        let items = self.skills.iter().chain(self.files.iter().take(FILES));
        items.map(|item| text(&item.name, tokenizer) + text(&item.text, tokenizer) + 32).sum()
    }
}

/// Which parts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Messages were cut away.
    All,
    /// Only results were emptied, so only their texts come back.
    Results,
}

/// The restored sections, each with its title, in at most `budget` tokens; empty where there is nothing. `seen` are calls
/// whose results stay in view, `said` tells whether a text of the user stays in view.
pub(super) fn compose(
    restore: &Restore,
    scope: Scope,
    budget: u64,
    seen: &HashSet<&str>,
    said: &dyn Fn(&str) -> bool,
    labels: &Labels,
    tokenizer: Tokenizer,
) -> String {
    let mut writer = Writer { text: String::new(), left: budget, labels, tokenizer };
    let unseen = |items: &'_ [Item], most: usize| -> Vec<Item> {
        let stands = |item: &&Item| match item.call.as_deref() {
            Some(call) => seen.contains(call),
            None => said(item.text.trim()),
        };
        let whole = items.iter().filter(|item| !item.text.trim().is_empty()).take(most);
        whole.filter(|item| !stands(item)).cloned().collect()
    };
    if scope == Scope::All {
        writer.instructions(&restore.instructions, said, budget / 2);
        if !restore.tasks.trim().is_empty() {
            let share = writer.left / 2;
            writer.section(&labels.tasks, &restore.tasks, share);
        }
    }
    writer.items(&labels.skills, &unseen(&restore.skills, usize::MAX), 2);
    if scope == Scope::All {
        writer.items(&labels.tools, &unseen(&restore.tools, usize::MAX), 2);
    }
    if scope == Scope::All {
        writer.lines(&labels.outputs, &restore.outputs, 4);
    }
    writer.items(&labels.files, &unseen(&restore.files, FILES), 1);
    writer.text
}

struct Writer<'a> {
    text: String,
    left: u64,
    labels: &'a Labels,
    tokenizer: Tokenizer,
}

impl Writer<'_> {
    /// Adds a section cut to `share` tokens.
    fn section(&mut self, title: &str, body: &str, share: u64) {
        let title_size = text(title, self.tokenizer) + 4;
        let share = share.min(self.left);
        if share < title_size + WORTH.min(text(body, self.tokenizer)) {
            return;
        }
        let body = clip(body.trim(), share - title_size, &self.labels.clipped, self.tokenizer);
        let section = format!("{title}\n{body}");
        self.left = self.left.saturating_sub(text(&section, self.tokenizer) + 2);
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&section);
    }

    /// The newest instructions that fit, in the order in which they were given.
    fn instructions(&mut self, instructions: &[String], said: &dyn Fn(&str) -> bool, share: u64) {
        let mut left = share.saturating_sub(text(&self.labels.instructions, self.tokenizer) + 8);
        let mut lines: Vec<String> = Vec::new();
        for instruction in instructions.iter().rev().filter(|text| !text.trim().is_empty() && !said(text)) {
            let line = format!("- {}", instruction.trim());
            let size = text(&line, self.tokenizer) + 1;
            // A long one hides no shorter one that is older.
            if size > left {
                continue;
            }
            left -= size;
            lines.push(line);
        }
        lines.reverse();
        if !lines.is_empty() {
            let title = self.labels.instructions.clone();
            self.section(&title, &lines.join("\n"), share);
        }
    }

    /// The first lines that fit in a part of what is left.
    fn lines(&mut self, title: &str, lines: &[String], share: u64) {
        let share = self.left / share;
        let mut left = share.saturating_sub(text(title, self.tokenizer) + 8);
        let fits = lines.iter().take_while(|line| {
            let size = text(line, self.tokenizer) + 4;
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        });
        let body: Vec<String> = fits.map(|line| format!("- {line}")).collect();
        if !body.is_empty() {
            self.section(title, &body.join("\n"), share);
        }
    }

    /// Items under one title: each gets an equal part of what is left over `share`, and names stand for those that get none.
    fn items(&mut self, title: &str, items: &[Item], share: u64) {
        if items.is_empty() {
            return;
        }
        let mut left = (self.left / share).saturating_sub(text(title, self.tokenizer) + 16);
        let mut bodies = Vec::new();
        let mut named = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let head = format!("## {}\n", item.name);
            let head_size = text(&head, self.tokenizer) + 2;
            let part = left / (items.len() - at) as u64;
            let whole = text(&item.text, self.tokenizer);
            if part < head_size + WORTH.min(whole) {
                named.push(item.name.as_str());
                continue;
            }
            let body = clip(item.text.trim(), part - head_size, &self.labels.clipped, self.tokenizer);
            left = left.saturating_sub(head_size + text(&body, self.tokenizer));
            bodies.push(format!("{head}{body}"));
        }
        if !named.is_empty() {
            let names = clip(&named.join(", "), left.min(200), "…", self.tokenizer);
            bodies.push(fill(&self.labels.more, "names", &names));
        }
        let share = self.left / share;
        self.section(title, &bodies.join("\n\n"), share);
    }
}
