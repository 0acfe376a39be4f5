//! Every text that a compaction writes, by name, each a file in Chinese and in English that an operator can replace.

use crate::prompt::Language;
use crate::yaml;
use serde::Deserialize;

/// The texts of one language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// System prompt of a summary that is asked outside the conversation.
    pub summary_system: String,
    /// The question for a summary.
    pub summary_request: String,
    /// The block for a conversation of which little is left; `{identity}` is filled in.
    pub identity: String,
    /// Titles and markers.
    pub labels: Labels,
}

/// Titles and markers; names in braces are filled in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each is a line of the labels file, which says what it is")]
pub struct Labels {
    pub summary: String,
    pub left_out: String,
    pub clipped: String,
    pub image: String,
    pub extra: String,
    pub instructions: String,
    pub tasks: String,
    pub skills: String,
    pub tools: String,
    pub files: String,
    pub outputs: String,
    pub more: String,
    pub question: String,
    pub user: String,
    pub assistant: String,
    pub tool: String,
    pub call: String,
    pub dropped: String,
    pub transcript: String,
}

/// The name, the Chinese and the English text of each file.
const BUILT_IN: [(&str, &str, &str); 4] = [
    (
        "summary-system",
        include_str!("../../personas/compact/summary-system.zh.md"),
        include_str!("../../personas/compact/summary-system.en.md"),
    ),
    (
        "summary-request",
        include_str!("../../personas/compact/summary-request.zh.md"),
        include_str!("../../personas/compact/summary-request.en.md"),
    ),
    (
        "identity",
        include_str!("../../personas/compact/identity.zh.md"),
        include_str!("../../personas/compact/identity.en.md"),
    ),
    (
        "labels",
        include_str!("../../personas/compact/labels.zh.yaml"),
        include_str!("../../personas/compact/labels.en.yaml"),
    ),
];

impl Texts {
    /// Names and endings of the files.
    pub const FILES: [(&'static str, &'static str); 4] =
        [("summary-system", "md"), ("summary-request", "md"), ("identity", "md"), ("labels", "yaml")];

    /// The texts that ship.
    pub fn built_in(language: Language) -> Self {
        // Both label files are read by a test, so there is nothing to warn of.
        Self::with(language, &|_| None).0
    }

    /// The texts that ship, those replaced for which `replaced` knows another. A replacement that is blank or does not
    /// read is not used, and said so, a line each.
    pub fn with(language: Language, replaced: &dyn Fn(&str) -> Option<String>) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let [summary_system, summary_request, identity, labels] = BUILT_IN.map(|(name, zh, en)| {
            let shipped = match language {
                Language::Zh => zh,
                Language::En => en,
            };
            let text = match replaced(name) {
                Some(text) if text.trim().is_empty() => {
                    warnings.push(format!("the text {name} is empty; the one that ships is used"));
                    shipped.to_owned()
                }
                Some(text) => text,
                None => shipped.to_owned(),
            };
            (text.trim().to_owned(), shipped)
        });
        let parsed = yaml::from_str(&labels.0).unwrap_or_else(|reason| {
            warnings.push(format!("the text labels does not read ({reason}); the one that ships is used"));
            yaml::from_str(labels.1).expect("the labels that ship read, which a test checks")
        });
        let texts = Self {
            summary_system: summary_system.0,
            summary_request: summary_request.0,
            identity: identity.0,
            labels: parsed,
        };
        (texts, warnings)
    }
}

/// What stands for the result of a call that is no longer shown (SPEC 4.2).
pub(super) fn placeholder(tool: &str) -> String {
    format!("[Previous: used {tool}]")
}

/// `text` with `{name}` replaced.
pub(super) fn fill(text: &str, name: &str, value: &str) -> String {
    text.replace(&format!("{{{name}}}"), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_that_ship_are_whole_in_both_languages() {
        for language in [Language::Zh, Language::En] {
            let (texts, warnings) = Texts::with(language, &|_| None);
            assert!(warnings.is_empty(), "{warnings:?}");
            assert!(texts.identity.starts_with("[身份确认]") && texts.identity.contains("{identity}"));
            assert!(texts.labels.summary.starts_with("[历史对话摘要]"));
            assert!(texts.labels.left_out.contains("{count}") && texts.labels.clipped.contains("{tokens}"));
            assert!(texts.labels.more.contains("{names}") && texts.labels.dropped.contains("{count}"));
        }
    }

    #[test]
    fn a_replacement_that_is_empty_or_broken_is_not_used_and_said_so() {
        let replaced = |name: &str| match name {
            "summary-request" => Some(" \n".to_owned()),
            "labels" => Some("summary: [".to_owned()),
            "identity" => Some("[身份确认] mine\n".to_owned()),
            _ => None,
        };
        let (texts, warnings) = Texts::with(Language::En, &replaced);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert_eq!(texts, Texts { identity: "[身份确认] mine".into(), ..Texts::built_in(Language::En) });
    }
}
