//! From lines of frontmatter to entries: by YAML as a whole, else entry by entry, else line by line.

use super::Finding;
use super::lines::{self, Loose};
use super::source::Front;
use crate::yaml::tree::{self, Kind, Node};
use serde_json::Value;

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The key as spelled.
    pub key: String,
    /// Its line in the file.
    pub line: usize,
    /// What the value looks like.
    pub shape: Shape,
    /// The value as it was written.
    pub raw: String,
    /// The value as JSON.
    pub json: Value,
    /// Whether YAML took what follows a `#` for a comment.
    pub comment: bool,
    /// Whether YAML refused it, which its author has been told.
    pub repaired: bool,
}

/// What a value looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nothing, `~` or `null`.
    Nothing,
    /// A text, a number or a word.
    Text(String),
    /// A list, its items as texts.
    List(Vec<String>),
    /// A mapping, its keys.
    Keys(Vec<String>),
}

/// Bytes of frontmatter that are given to YAML; longer ones are read line by line.
const YAML_LIMIT: usize = 64 << 10;

/// The entries, or none where there is no key at all.
pub(super) fn read(front: &Front<'_>, findings: &mut Vec<Finding>) -> Option<Vec<Entry>> {
    let mistake = match whole(front.text, front.line) {
        Ok(entries) => return Some(entries),
        Err(mistake) => mistake,
    };
    if let Some(line) = front.text.lines().position(has_tab) {
        let text = spaced(front.text);
        if let Ok(entries) = whole(&text, front.line) {
            findings
                .push(Finding::warning(front.line + line, "a line begins with a tab, which YAML forbids; use spaces"));
            return Some(entries);
        }
    }
    let found = lines::entries(front.text);
    if found.is_empty() {
        findings
            .push(Finding::warning(front.line, "between the --- lines is no key: value; all was taken for the body"));
        return None;
    }
    let mut broken = false;
    let entries = found.into_iter().map(|(key, number, text)| {
        let line = front.line + number;
        match one(text, line) {
            Ok(entry) => entry,
            Err(reason) => {
                broken = true;
                findings.push(Finding::warning(
                    line,
                    format!("{key} is no YAML ({reason}) and was read as plain text; put the value in double quotes"),
                ));
                loose(key, text, line)
            }
        }
    });
    let entries: Vec<Entry> = entries.collect();
    if !broken {
        let at = front.line + mistake.line.saturating_sub(1);
        findings
            .push(Finding::warning(at, format!("the frontmatter is no YAML ({}); correct this line", mistake.reason)));
    }
    Some(entries)
}

/// Reads all entries of a YAML mapping.
fn whole(text: &str, line: usize) -> Result<Vec<Entry>, tree::Mistake> {
    if text.len() > YAML_LIMIT {
        return Err(tree::Mistake { line: 1, reason: format!("longer than {YAML_LIMIT} bytes") });
    }
    let tree = tree::read(text)?;
    match tree.root {
        None => Ok(Vec::new()),
        Some(Node { kind: Kind::Map(pairs), .. }) => {
            Ok(pairs.iter().map(|(key, value)| entry(text, line, key, value)).collect())
        }
        Some(root) => Err(tree::Mistake { line: root.line, reason: "no key: value".into() }),
    }
}

/// Reads one entry that stands alone.
fn one(text: &str, line: usize) -> Result<Entry, String> {
    let spaced = spaced(text);
    let mut entries = whole(&spaced, line).map_err(|mistake| mistake.reason)?;
    match (entries.pop(), entries.is_empty()) {
        (Some(entry), true) => Ok(entry),
        _ => Err("not one key and its value".into()),
    }
}

fn entry(source: &str, line: usize, key: &Node, value: &Node) -> Entry {
    let slice = source.get(key.span.end..value.span.end).unwrap_or_default().trim_start();
    let raw = slice.strip_prefix(':').unwrap_or(slice).trim();
    let rest = source.get(value.span.end..).unwrap_or_default().lines().next().unwrap_or_default();
    let shape = match &value.kind {
        // A tag or an anchor is hardly ever meant: `description: &c. is …`.
        Kind::Scalar { .. } if raw.starts_with(['!', '&']) => Shape::Text(raw.to_owned()),
        Kind::Scalar { .. } => value.text().map_or(Shape::Nothing, |text| Shape::Text(text.to_owned())),
        Kind::List(items) if items.is_empty() => Shape::Nothing,
        Kind::Map(pairs) if pairs.is_empty() => Shape::Nothing,
        Kind::List(items) => {
            Shape::List(items.iter().filter(|item| !item.is_null()).map(|item| spelled(source, item)).collect())
        }
        Kind::Map(pairs) => Shape::Keys(pairs.iter().map(|(key, _)| key.key()).collect()),
    };
    Entry {
        key: key.key(),
        line: line + key.line.saturating_sub(1),
        shape,
        raw: raw.split_whitespace().collect::<Vec<_>>().join(" "),
        json: value.to_json(),
        repaired: false,
        comment: matches!(&value.kind, Kind::Scalar { plain: true, .. }) && rest.trim_start().starts_with('#'),
    }
}

/// An item of a list as a text.
fn spelled(source: &str, item: &Node) -> String {
    match item.text() {
        Some(text) => text.to_owned(),
        None => source.get(item.span.clone()).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn loose(key: &str, text: &str, line: usize) -> Entry {
    let rest = lines::key_line(text).map_or(text, |(_, rest)| rest);
    let value = lines::value(text);
    let (shape, json) = match value {
        Loose::Text(text) if text.is_empty() => (Shape::Nothing, Value::Null),
        Loose::Text(text) => (Shape::Text(text.clone()), Value::from(text)),
        Loose::List(items) => (Shape::List(items.clone()), Value::from(items)),
    };
    let raw = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    Entry { key: key.to_owned(), line, shape, raw, json, comment: false, repaired: true }
}

fn has_tab(line: &str) -> bool {
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).any(|c| c == '\t')
}

/// The text with two spaces for each tab that indents.
fn spaced(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let body = line.trim_start_matches([' ', '\t']);
        let indent = line[..line.len() - body.len()].replace('\t', "  ");
        indent + body
    });
    lines.collect()
}
