//! The built-in segments: identity 0, tools 10, skills 20, memory 30, principles 40, with room between, the operator's
//! own after them, and the system context at the tail.

use super::{Segment, Stability, Texts};

/// Where a segment stands among the others.
pub mod order {
    /// Who the agent is.
    pub const IDENTITY: i32 = 0;
    /// What it can call.
    pub const TOOLS: i32 = 10;
    /// What it can load.
    pub const SKILLS: i32 = 20;
    /// What it remembers.
    pub const MEMORY: i32 = 30;
    /// How it works.
    pub const PRINCIPLES: i32 = 40;
    /// The operator's notes, from here on.
    pub const NOTES: i32 = 50;
    /// The text of `--append-system-prompt`.
    pub const APPEND: i32 = 80;
    /// What plugins contribute is dropped before anything of the host's own.
    pub const PLUGIN_RANK: u8 = 9;
    /// The system context: behind everything (SPEC 1.10).
    pub const ENVIRONMENT: i32 = 90;
}

/// A tool, as the tools segment lists it.
#[derive(Debug, Clone, Copy)]
pub struct ToolLine<'a> {
    /// Name.
    pub name: &'a str,
    /// The plugin's own summary, which wins.
    pub summary: Option<&'a str>,
    /// Whole description.
    pub description: &'a str,
}

/// Characters of a summary that is taken from a description (SPEC 1.5).
const SUMMARY: usize = 80;

/// A segment of the host's own.
pub fn own(name: &str, order: i32, stability: Stability, rank: u8, text: String) -> Segment {
    Segment { name: name.into(), order, stability, rank, source: "built in".into(), text }
}

/// The tools segment: the frozen catalogue a line each, and the names of what is found by searching.
pub fn tools(texts: &Texts, tools: &[ToolLine<'_>], deferred: &[String]) -> Segment {
    let mut text = String::new();
    if !tools.is_empty() {
        text.push_str(texts.get("tools"));
        for tool in tools {
            let summary = tool.summary.map(str::trim).filter(|summary| !summary.is_empty());
            let summary = summary.map(str::to_owned).unwrap_or_else(|| first_sentence(tool.description));
            text.push_str(&format!("\n- {}: {summary}", tool.name));
        }
    }
    if !deferred.is_empty() {
        text.push_str("\n\n");
        text.push_str(&texts.fill("deferred", &[("names", &deferred.join(", "))]));
    }
    own("tools", order::TOOLS, Stability::Session, 1, text.trim().to_owned())
}

/// The system context, at the tail (SPEC 1.10).
pub fn environment(texts: &Texts, platform: &str, workspace: &str, version_control: &str) -> Segment {
    let values = [("platform", platform), ("workspace", workspace), ("version_control", version_control)];
    own("environment", order::ENVIRONMENT, Stability::Session, 5, texts.fill("environment", &values))
}

/// The first sentence, at most 80 characters of it. A `.` ends one only before a space or the end: not in `file.rs`.
pub fn first_sentence(description: &str) -> String {
    let text = description.trim();
    let mut end = text.len();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '\n' | '\r' => {
                end = at;
                break;
            }
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            end = at;
            break;
        }
    }
    text[..end].chars().take(SUMMARY).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Language;

    #[test]
    fn the_first_sentence_ends_where_a_reader_says_it_does() {
        assert_eq!(first_sentence("Reads src/main.rs and more. Then stops."), "Reads src/main.rs and more");
        assert_eq!(first_sentence("读取文件。然后停止"), "读取文件");
        assert_eq!(first_sentence("One line\nanother"), "One line");
        assert_eq!(first_sentence(&"星".repeat(100)).chars().count(), 80);
    }

    #[test]
    fn a_summary_of_the_plugin_wins_and_deferred_tools_are_names_only() {
        let texts = Texts::built_in(Language::En);
        let line = |summary| ToolLine { name: "dig", summary, description: "Digs. Deeply." };
        let text = |summary, deferred: &[String]| tools(&texts, &[line(summary)], deferred).text;
        assert_eq!(text(Some("Own words"), &[]), "You can use these tools:\n- dig: Own words");
        assert_eq!(text(Some(" "), &[]), "You can use these tools:\n- dig: Digs");
        assert!(text(None, &["far".into(), "away".into()]).ends_with("call them through call_tool: far, away"));
        assert_eq!(tools(&texts, &[], &[]).text, "");
    }
}
