//! One memory and its file: a few lines of YAML between `---`, then Markdown.
//!
//! Read leniently, since people edit these files: a byte order mark, CRLF, blank lines in front and keys of their own are
//! fine, and keys of their own are kept. Written the same way each time.

use super::slug::slug;
use crate::prompt::Language;
use crate::yaml;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// What a memory is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What the user likes.
    User,
    /// What the user said about the work.
    Feedback,
    /// What the project is.
    Project,
    /// Where something is to be found.
    Reference,
}

/// One memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name on the shelf.
    pub slug: String,
    /// The name it was given, where that says more than the slug.
    pub name: Option<String>,
    /// What it is about.
    pub kind: Kind,
    /// One line.
    pub description: String,
    /// Markdown.
    pub content: String,
    /// The entry whose place it took.
    pub supersedes: Option<String>,
    /// The entry that took its place.
    pub superseded_by: Option<String>,
    /// Its number in the archive, if it lies there.
    pub archived: Option<u32>,
    /// Whether it was forgotten on purpose.
    pub forgotten: bool,
    /// Keys of the file's head that are the user's own.
    pub own: Map<String, Value>,
    /// When its file was last written.
    pub updated: Timestamp,
    /// Fingerprint of the file's bytes: equal where nothing changed.
    pub version: String,
    /// Name of its file.
    pub file: String,
}

impl Kind {
    /// All of them, in the order people read them in.
    pub const ALL: [Kind; 4] = [Kind::User, Kind::Feedback, Kind::Project, Kind::Reference];

    /// Its word in files and arguments.
    pub fn word(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Feedback => "feedback",
            Kind::Project => "project",
            Kind::Reference => "reference",
        }
    }

    /// Its word for a reader of this language.
    pub fn shown(self, language: Language) -> &'static str {
        match (language, self) {
            (Language::En, _) => self.word(),
            (Language::Zh, Kind::User) => "偏好",
            (Language::Zh, Kind::Feedback) => "反馈",
            (Language::Zh, Kind::Project) => "项目",
            (Language::Zh, Kind::Reference) => "参考",
        }
    }

    /// Reads either word.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        Self::ALL.into_iter().find(|kind| kind.word() == text || kind.shown(Language::Zh) == text)
    }
}

impl Entry {
    /// Reads a file's text. What the text cannot say, the caller fills in: file, time, fingerprint, archive. The error
    /// says what is wrong, where, and what to do.
    pub fn parse(slug: &str, text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let (head, body) = yaml::frontmatter(&text)?;
        let mut own: Map<String, Value> = match head {
            Some((line, head)) if !head.trim().is_empty() => {
                // The parser counts from the head's own first line; people count from the file's.
                let padded = format!("{}{head}", "\n".repeat(line));
                yaml::from_str::<Option<Map<String, Value>>>(&padded)?.unwrap_or_default()
            }
            _ => Map::new(),
        };
        let mut take = |key: &str| own.shift_remove(key).map(plain_text).filter(|text| !text.is_empty());
        let kind = match take("type") {
            None => Kind::Project,
            Some(word) => Kind::parse(&word).ok_or_else(|| {
                format!("type: {word:?} is none of user, feedback, project, reference; write one of them")
            })?,
        };
        let content = body.trim().to_owned();
        let first_line = || content.lines().next().unwrap_or_default().trim_start_matches('#').trim().to_owned();
        let description = take("description").map_or_else(first_line, |text| one_line(&text));
        let reference = |text: Option<String>| text.and_then(|name| self::slug(&name)).filter(|name| name != slug);
        let name = take("name").map(|name| one_line(&name));
        let supersedes = reference(take("supersedes"));
        // An older version names its own entry, so this one may.
        let superseded_by = take("superseded_by").and_then(|name| self::slug(&name));
        let forgotten = take("forgotten").is_some_and(|word| word == "true");
        Ok(Self {
            slug: slug.to_owned(),
            name,
            kind,
            description,
            content,
            supersedes,
            superseded_by,
            archived: None,
            forgotten,
            own,
            updated: Timestamp::UNIX_EPOCH,
            version: String::new(),
            file: format!("{slug}.md"),
        })
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut text = String::from("---\n");
        let mut line = |key: &str, value: &str| text.push_str(&format!("{key}: {value}\n"));
        if let Some(name) = &self.name {
            line("name", &scalar(name));
        }
        line("type", self.kind.word());
        line("description", &scalar(&self.description));
        if let Some(slug) = &self.supersedes {
            line("supersedes", &scalar(slug));
        }
        if let Some(slug) = &self.superseded_by {
            line("superseded_by", &scalar(slug));
        }
        if self.forgotten {
            line("forgotten", "true");
        }
        for (key, value) in &self.own {
            let value = value.as_str().map_or_else(|| value.to_string(), scalar);
            line(&scalar(key), &value);
        }
        text.push_str(&format!("---\n\n{}\n", self.content.trim()));
        text
    }
}

fn plain_text(value: Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The same text without line ends.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A YAML scalar: as it stands where nobody could read it as something else, else in quotes, as JSON writes them.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_alphabetic())
        && text.chars().all(|c| {
            c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | '(' | ')' | ';' | '。' | '，' | '、')
        })
        && !text.ends_with(' ')
        && !matches!(text.to_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// An entry of this name, for tests: written `at` days after the beginning of 2026.
#[cfg(test)]
pub(super) fn sample(slug: &str, at: i64) -> Entry {
    let text = format!("---\ntype: project\ndescription: about {slug}\n---\n\nbody of {slug}\n");
    let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let updated = begin + jiff::SignedDuration::from_hours(24 * at);
    Entry { updated, version: format!("{slug}@{at}"), ..Entry::parse(slug, &text).unwrap() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&match Entry::parse("here", text) {
            Ok(entry) => format!(
                "{} | {} | {:?} | {:?}\n{}",
                entry.kind.word(),
                entry.description,
                entry.supersedes,
                entry.own,
                entry.content
            ),
            Err(reason) => reason,
        });
    }

    #[test]
    fn a_file_as_we_write_it() {
        check(
            "---\ntype: user\ndescription: \"AB: always\"\nsupersedes: old\n---\n\n# Title\n\n---\nbelow a rule\n",
            expect![[r##"
                user | AB: always | Some("old") | {}
                # Title

                ---
                below a rule"##]],
        );
    }

    #[test]
    fn a_file_as_an_editor_on_another_system_leaves_it() {
        check(
            "\u{feff}\r\n\r\n---\r\ntype: 反馈\r\ntags: [a, b]\r\n---\r\n短一些\r\n第二行\r\n",
            expect![[r#"
                feedback | 短一些 | None | {"tags": Array [String("a"), String("b")]}
                短一些
                第二行"#]],
        );
    }

    #[test]
    fn a_file_without_a_head_is_a_project_note_named_by_its_first_line() {
        check(
            "# Pipeline\n\nruns nightly\n",
            expect![[r##"
            project | Pipeline | None | {}
            # Pipeline

            runs nightly"##]],
        );
        check(
            "",
            expect![[r#"
            project |  | None | {}
        "#]],
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        check(
            "---\ntype: user\n",
            expect!["line 1: the head that begins with --- has no closing ---; write one before the text"],
        );
        check(
            "---\ntype: opinion\n---\n",
            expect![[r#"type: "opinion" is none of user, feedback, project, reference; write one of them"#]],
        );
        check("---\ntype: user\ndescription: [a\n---\nx\n", expect!["line 3, column 14: unclosed bracket '['"]);
        check(
            "---\n- a\n---\nx\n",
            expect!["line 2, column 1: a table is expected here; write KEY: VALUE lines, or { KEY: VALUE }"],
        );
    }

    fn word() -> impl Strategy<Value = String> {
        "\\PC{0,40}"
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(name in word(), description in word(), content in "(\\PC|\n){0,200}", key in "[a-z]{9}") {
            let mut own = Map::new();
            own.insert(key, Value::from(description.clone()));
            let entry = Entry {
                name: Some(one_line(&name)).filter(|name| !name.is_empty()),
                description: format!("x{}", one_line(&description)),
                content: content.trim().to_owned(),
                own,
                ..sample("here", 1)
            };
            let read = Entry::parse("here", &entry.to_text()).unwrap();
            let read = Entry { updated: entry.updated, version: entry.version.clone(), ..read };
            prop_assert_eq!(read, entry);
        }

        #[test]
        fn no_text_makes_the_reader_fall(text in "(---\n)?(\\PC|\n|: |- |\\[|\\{|\"|&a|\\*a|\t){0,200}(---\n)?") {
            let _ = Entry::parse("here", &text);
        }
    }
}
