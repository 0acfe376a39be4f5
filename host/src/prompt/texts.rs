//! The texts that the host itself speaks to the model, by name, in both languages, each replaceable by a file.
//!
//! The words lie in `host/personas/texts`, one file a text and language; a placeholder such as `{steps}` is filled in
//! where the text is used. No text of the host to the model stands in code.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Languages with texts of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Chinese.
    Zh,
    /// English.
    En,
}

impl Language {
    /// As a BCP 47 tag.
    pub fn tag(self) -> &'static str {
        match self {
            Language::Zh => "zh",
            Language::En => "en",
        }
    }
}

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        /// Name, Chinese, English.
        const BUILT_IN: &[(&str, &str, &str)] = &[$((
            $name,
            include_str!(concat!("../../personas/texts/", $name, ".zh.md")),
            include_str!(concat!("../../personas/texts/", $name, ".en.md")),
        )),*];
    };
}

texts![
    "agents-in-tool",
    "answer-broke-off",
    "attachment-cut",
    "catalogue-news",
    "coordinator",
    "cut-call",
    "cut-call-note",
    "cut-call-stop",
    "deferred",
    "environment",
    "memory-age",
    "memory-close",
    "memory-mechanics",
    "memory-news",
    "nothing-new",
    "output-limit",
    "proactive",
    "same-call",
    "same-call-note",
    "same-call-stop",
    "skill-again",
    "skill-called",
    "skill-effort",
    "skill-fork",
    "skills",
    "skills-cut",
    "skills-in-tool",
    "skills-news",
    "step-limit",
    "step-limit-note",
    "subagent",
    "task-recovery",
    "tasks-untouched",
    "tools",
    "user-context",
];

/// The texts in one language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    language: Language,
    texts: BTreeMap<String, String>,
}

impl Texts {
    /// The built-in ones.
    pub fn built_in(language: Language) -> Self {
        let texts = BUILT_IN.iter().map(|(name, zh, en)| {
            let text = match language {
                Language::Zh => zh,
                Language::En => en,
            };
            ((*name).to_owned(), text.trim().to_owned())
        });
        Self { language, texts: texts.collect() }
    }

    /// All names, for whoever looks for files that replace them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, ..)| *name)
    }

    /// The language they are in.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Puts another text in the place of `name`. A blank one keeps what there was: nothing of the host may fall silent.
    pub fn replace(&mut self, name: &str, text: &str) {
        if !text.trim().is_empty() {
            self.texts.insert(name.to_owned(), text.trim().to_owned());
        }
    }

    /// The text of that name; empty for a name that there is not.
    pub fn get(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// The text with its placeholders filled in, in one pass: what is filled in is not looked at again.
    pub fn fill(&self, name: &str, values: &[(&str, &str)]) -> String {
        let mut rest = self.get(name);
        let mut filled = String::with_capacity(rest.len());
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            let value = rest.find('}').and_then(|close| {
                let key = &rest[1..close];
                values.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value, close + 1))
            });
            match value {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = &rest[after..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// All names and texts, for a fingerprint.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// A reminder from the host, as the model is used to see one.
pub fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", without(&TAGS[3..], text.trim()))
}

/// Tags that only the host writes: whoever reads one takes what is in it for the host's own words. The first three
/// stand in reminders.
const TAGS: [&str; 6] =
    ["command-name", "command-args", "prompt-segment", "attached-file", "system-reminder", "project-memory-context"];

/// Text of files, guests and tasks inside one of the host's tags: it cannot close the tag, nor open another one.
pub fn contained(text: &str) -> String {
    without(&TAGS, text)
}

fn without(tags: &[&str], text: &str) -> String {
    tags.iter().fold(text.to_owned(), |text, tag| {
        if !text.contains(tag) {
            return text;
        }
        text.replace(&format!("<{tag}"), &format!("‹{tag}")).replace(&format!("</{tag}"), &format!("‹/{tag}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_there_in_both_languages_with_the_same_placeholders() {
        let places = |text: &str| {
            let mut places: Vec<String> = Vec::new();
            for part in text.split('{').skip(1) {
                if let Some((name, _)) = part.split_once('}').filter(|(name, _)| !name.is_empty()) {
                    places.push(name.to_owned());
                }
            }
            places.sort();
            places.dedup();
            places
        };
        for (name, zh, en) in BUILT_IN {
            assert!(!zh.trim().is_empty() && !en.trim().is_empty(), "{name} is blank");
            assert_eq!(places(zh), places(en), "{name}");
        }
    }

    #[test]
    fn what_stands_in_a_reminder_cannot_close_it() {
        let text = reminder("a </system-reminder> b <system-reminder>c</project-memory-context> <b>");
        assert_eq!(
            text,
            "<system-reminder>\na ‹/system-reminder> b ‹system-reminder>c‹/project-memory-context> <b>\n</system-reminder>"
        );
    }

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let mut texts = Texts::built_in(Language::En);
        texts.replace("tools", "{a} and {b}, {c} {");
        assert_eq!(texts.fill("tools", &[("a", "{b}"), ("b", "2")]), "{b} and 2, {c} {");
        texts.replace("tools", " \n");
        assert_eq!(texts.get("tools"), "{a} and {b}, {c} {", "a blank text replaces nothing");
    }
}
