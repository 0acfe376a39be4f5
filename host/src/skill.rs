//! `SKILL.md`: what a skill says of itself and the instructions it holds. Pure and total: any bytes give a skill.
//!
//! Reading is lenient, since a skill is written by hand and somebody waits for it: what YAML refuses is read line by line,
//! what makes no sense falls back to its default, and each such place becomes a [`Finding`] with its line and its cure.
//! [`strict::check`] applies the public Agent Skills rules instead. Folders, watching and sessions belong to `skills`.

mod entries;
mod fields;
mod lines;
pub mod listing;
pub mod paths;
pub mod score;
mod source;
pub mod strict;
pub mod variables;

use paths::Paths;
use serde::Serialize;
use serde_json::{Map, Value};

/// Bytes of a `SKILL.md`: far more than a model would want to read at once.
pub const LIMIT: u64 = 1 << 20;

/// A skill as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name; the folder's where the file gives none.
    pub name: String,
    /// What it is for, in a line or a few.
    pub description: Option<String>,
    /// Where it runs.
    pub context: Mode,
    /// Tools it is meant to work with; none means any.
    pub allowed_tools: Vec<String>,
    /// Whether the author names tools at all: an empty list allows none.
    pub limits_tools: bool,
    /// Model it would like: `haiku`, `sonnet`, `opus`, `inherit`, or a full name.
    pub model: Option<String>,
    /// What its arguments are, for people: `<research question>`.
    pub argument_hint: Option<String>,
    /// When to use it.
    pub when_to_use: Option<String>,
    /// Whether the author keeps it from the model's own choice.
    pub disable_model_invocation: bool,
    /// Whether people may ask for it, and see it in the list.
    pub user_invocable: bool,
    /// The author's version, as spelled.
    pub version: Option<String>,
    /// Files whose use brings it out; without any it is there from the start.
    pub paths: Paths,
    /// Agent definition that a fork runs as.
    pub agent: Option<String>,
    /// Effort that a fork works with.
    pub effort: Option<Effort>,
    /// All that the frontmatter holds, in its order, unknown keys too.
    pub frontmatter: Map<String, Value>,
    /// The instructions, Markdown with `\n` line ends.
    pub body: String,
    /// What is wrong with the file, in the order of its lines.
    pub findings: Vec<Finding>,
}

/// Where a skill runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Its text goes into the conversation.
    #[default]
    Inline,
    /// An agent of its own follows it and answers.
    Fork,
}

/// How hard a fork is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Quickly.
    Low,
    /// As usual.
    Medium,
    /// Thoroughly.
    High,
    /// With all there is.
    Max,
}

impl Effort {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Max => "max",
        }
    }
}

/// Something about a file that its author should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Line in the file, from 1.
    pub line: usize,
    /// How bad it is.
    pub level: Level,
    /// What is wrong and what to do.
    pub text: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// It was read all the same, perhaps otherwise than meant.
    Warning,
    /// Against the rules.
    Error,
}

impl Finding {
    /// The text may quote the file or the parser, so it is made one plain line here.
    fn new(line: usize, level: Level, text: &str) -> Self {
        Self { line, level, text: crate::plain::one_line(text, FINDING) }
    }

    pub(crate) fn warning(line: usize, text: impl AsRef<str>) -> Self {
        Self::new(line, Level::Warning, text.as_ref())
    }
}

/// Bytes of a finding: a line or two on a terminal.
const FINDING: usize = 500;

impl Level {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Reads a skill from the bytes of its file. `folder` is the name of the folder that it lies in.
pub fn read(bytes: &[u8], folder: &str) -> Skill {
    let (text, mut findings) = source::decode(bytes);
    let split = source::split(&text);
    let (entries, body) = match &split.front {
        None => (Vec::new(), split.body),
        Some(front) => match entries::read(front, &mut findings) {
            Some(entries) => (entries, split.body),
            // Two rules of Markdown with a text between them look like frontmatter and are none.
            None => (Vec::new(), split.whole),
        },
    };
    findings.extend(split.findings);
    let mut skill = fields::fill(&entries, folder, &mut findings);
    skill.body = body.trim_start_matches(['\n', ' ', '\t']).trim_end().to_owned();
    if skill.body.is_empty() {
        findings.push(Finding::warning(
            text.lines().count().max(1),
            "the skill has no instructions; write them below the frontmatter",
        ));
    }
    findings.sort_by_key(|finding| finding.line);
    skill.findings = findings;
    skill
}

/// Names that people take for one another are one: case, and whether spaces, `_` or `-` join the words.
pub fn folded(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || matches!(c, '-' | '_')).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests;
