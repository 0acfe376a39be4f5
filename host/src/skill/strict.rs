//! The public Agent Skills rules (agentskills.io), for skills that other hosts shall read as well.
//!
//! Where the rules and their reference validator differ the narrower one counts, so what passes here passes there; but the
//! fields that this host has beyond the rules are noted and no mistake, since other hosts only pass over them.

use super::{Finding, Level, fields, source};
use crate::tokens::{self, Tokenizer};
use crate::yaml::tree::{self, Kind, Node};

/// Characters of a name.
const NAME: usize = 64;

/// Characters of a description.
const DESCRIPTION: usize = 1024;

/// Characters of `compatibility`.
const COMPATIBILITY: usize = 500;

/// Lines of a body that the rules advise.
const BODY_LINES: usize = 500;

/// Tokens of a body that the rules advise.
const BODY_TOKENS: u64 = 5_000;

/// Fields of the rules.
const FIELDS: [&str; 6] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// Whether a text is a name by the rules: 1 to 64 of a to z, 0 to 9 and single inner hyphens.
pub fn is_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// What the rules say of a file that lies in a folder of this name: errors, and notes.
pub fn check(bytes: &[u8], folder: &str) -> Vec<Finding> {
    let mut found = Found(Vec::new());
    if bytes.starts_with(b"\xef\xbb\xbf") {
        found.error(1, "the file begins with a byte-order mark; save it as UTF-8 without one");
    }
    if let Err(error) = std::str::from_utf8(bytes) {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        found.error(line, "the file is not UTF-8; save it as UTF-8");
        return found.0;
    }
    let (text, _) = source::decode(bytes);
    if !text.starts_with("---") {
        found.error(1, "the file must begin with a line ---");
    }
    let split = source::split(&text);
    let Some(front) = split.front.filter(|_| split.findings.is_empty()) else {
        found.error(1, "there is no frontmatter between two lines ---; write name: and description: there");
        return found.0;
    };
    // YAML also ends a document with three dots, which the rules do not know.
    if !text[..text.len() - split.body.len()].trim_end().ends_with("---") {
        found.error(
            front.line + front.text.lines().count(),
            "the frontmatter is closed by ..., and must be by a line ---",
        );
    }
    let at = |line: usize| front.line + line.saturating_sub(1);
    match tree::read(front.text) {
        Err(mistake) => found.error(at(mistake.line), format!("the frontmatter is no YAML: {}", mistake.reason)),
        Ok(tree) => {
            for (line, word) in &tree.beyond {
                found.error(
                    at(*line),
                    format!("{word}, which the reference reader refuses; write the value out in plain lines"),
                );
            }
            match tree.root {
                Some(Node { kind: Kind::Map(pairs), .. }) => {
                    tabs(front.text, &pairs, &at, &mut found);
                    fields_of(&pairs, folder, &at, &mut found);
                }
                _ => found.error(front.line, "the frontmatter must be lines of key: value"),
            }
        }
    }
    advise(split.body, text[..text.len() - split.body.len()].lines().count() + 1, &mut found);
    found.0.sort_by_key(|finding| finding.line);
    found.0
}

/// What was found so far.
struct Found(Vec<Finding>);

impl Found {
    fn error(&mut self, line: usize, text: impl AsRef<str>) {
        self.0.push(Finding::new(line, Level::Error, text.as_ref()));
    }

    fn note(&mut self, line: usize, text: impl AsRef<str>) {
        self.0.push(Finding::new(line, Level::Note, text.as_ref()));
    }
}

fn fields_of(pairs: &[(Node, Node)], folder: &str, at: &impl Fn(usize) -> usize, found: &mut Found) {
    no_duplicates(pairs, at, found);
    for required in ["name", "description"] {
        if !pairs.iter().any(|(key, _)| key.key() == required) {
            found.error(at(1), format!("{required}: is missing; write it"));
        }
    }
    for (key, value) in pairs {
        let (key, line) = (key.key(), at(key.line));
        match key.as_str() {
            "name" => name(value, folder, line, found),
            "description" => length(&key, value, DESCRIPTION, line, found),
            "compatibility" => length(&key, value, COMPATIBILITY, line, found),
            "license" => length(&key, value, usize::MAX, line, found),
            "metadata" => metadata(value, line, at, found),
            "allowed-tools" => tools(value, line, found),
            other if fields::FIELDS.contains(&other) => {
                found.note(line, format!("{key} is a field of this host; others pass over it or refuse it"));
            }
            other => {
                let other = crate::plain::one_line(other, 80);
                found.error(
                    line,
                    format!(
                        "{other} is no field of the rules, which are {}; put it below metadata:",
                        FIELDS.join(", ")
                    ),
                );
            }
        }
    }
}

/// A tab between a key and its value is YAML, and the reference reader refuses it.
fn tabs(source: &str, pairs: &[(Node, Node)], at: &impl Fn(usize) -> usize, found: &mut Found) {
    for (key, value) in pairs {
        if source.get(key.span.end..value.span.start).is_some_and(|between| between.contains('\t')) {
            found.error(at(key.line), "a tab stands between key and value; use a space");
        }
        if let Kind::Map(inner) = &value.kind {
            tabs(source, inner, at, found);
        }
    }
}

fn no_duplicates(pairs: &[(Node, Node)], at: &impl Fn(usize) -> usize, found: &mut Found) {
    for (number, (key, _)) in pairs.iter().enumerate() {
        if pairs[..number].iter().any(|(other, _)| other.key() == key.key()) {
            let name = crate::plain::one_line(&key.key(), 80);
            found.error(at(key.line), format!("{name} is written twice; keep one"));
        }
    }
}

/// The text of a scalar as it stands, `~` and `null` being texts here as in the reference reader.
fn scalar(value: &Node) -> Option<&str> {
    match &value.kind {
        Kind::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

fn name(value: &Node, folder: &str, line: usize, found: &mut Found) {
    let Some(name) = scalar(value).map(str::trim) else {
        return found.error(line, "name must be a text");
    };
    let shown = crate::plain::one_line(name, 80);
    if name.is_empty() {
        return found.error(line, "name is empty; give the name of the folder");
    }
    if !is_name(name) {
        found.error(line, format!("name: {shown:?} has other than 1 to {NAME} of a to z, 0 to 9 and single - inside"));
    }
    if name != folder {
        let folder = crate::plain::one_line(folder, 80);
        found.error(line, format!("name: {shown:?} differs from its folder's name {folder:?}; make them equal"));
    }
}

fn length(key: &str, value: &Node, most: usize, line: usize, found: &mut Found) {
    let Some(text) = scalar(value) else {
        return found.error(line, format!("{key} must be a text; put it in quotes"));
    };
    let count = text.chars().count();
    if text.trim().is_empty() {
        found.error(line, format!("{key} is empty; write it, or take the line out"));
    } else if count > most {
        found.error(line, format!("{key} has {count} characters, and may have {most}; shorten it"));
    }
}

fn metadata(value: &Node, line: usize, at: &impl Fn(usize) -> usize, found: &mut Found) {
    let Kind::Map(pairs) = &value.kind else {
        return found.error(line, "metadata must be lines of key: text, indented below it");
    };
    no_duplicates(pairs, at, found);
    for (key, value) in pairs {
        if scalar(key).is_none() || scalar(value).is_none() {
            let name = crate::plain::one_line(&key.key(), 80);
            found.error(at(key.line), format!("metadata: {name} must be a text; write it on one line, in quotes"));
        }
    }
}

fn tools(value: &Node, line: usize, found: &mut Found) {
    let Some(text) = scalar(value) else {
        return found.error(line, "allowed-tools must be one line of tools with spaces between them");
    };
    let split = super::lines::split_outside(text, |c| c == ',');
    if text.trim().is_empty() {
        found.error(line, "allowed-tools is empty; name the tools, or take the line out");
    } else if split.len() > 1 || text.trim_end().ends_with(',') {
        found.error(line, "allowed-tools has commas; put spaces between the tools");
    }
}

fn advise(body: &str, line: usize, found: &mut Found) {
    let (lines, tokens) = (body.trim().lines().count(), tokens::text(body, Tokenizer::Claude));
    if lines > BODY_LINES || tokens > BODY_TOKENS {
        found.note(
            line,
            format!(
                "the body has {lines} lines and about {tokens} tokens; the rules advise {BODY_LINES} and {BODY_TOKENS}: move \
                 what is seldom needed into files beside it"
            ),
        );
    }
}
