//! The thirteen fields: from entries to a skill, each with its default, and a finding for what was not understood.

use super::entries::{Entry, Shape};
use super::lines::split_outside;
use super::paths::Paths;
use super::{Effort, Finding, Mode, Skill};
use serde_json::Map;

/// The fields of this host, as they are spelled.
pub(super) const FIELDS: [&str; 13] = [
    "name",
    "description",
    "context",
    "allowed-tools",
    "model",
    "argument-hint",
    "when_to_use",
    "disable-model-invocation",
    "user-invocable",
    "version",
    "paths",
    "agent",
    "effort",
];

/// Fields of the Agent Skills rules that this host keeps and does not use.
const KEPT: [&str; 3] = ["license", "compatibility", "metadata"];

/// The field that a key means, whatever its case and whether `-`, `_` or nothing joins its words.
pub(super) fn known(key: &str) -> Option<&'static str> {
    let bare = |text: &str| text.chars().filter(|c| !matches!(c, '-' | '_')).collect::<String>().to_lowercase();
    let key = bare(key);
    FIELDS.into_iter().chain(KEPT).find(|field| bare(field) == key)
}

/// Fills in a skill. The body is the caller's.
pub(super) fn fill(entries: &[Entry], folder: &str, findings: &mut Vec<Finding>) -> Skill {
    let mut skill = Skill {
        name: String::new(),
        description: None,
        context: Mode::Inline,
        allowed_tools: Vec::new(),
        limits_tools: false,
        model: None,
        argument_hint: None,
        when_to_use: None,
        disable_model_invocation: false,
        user_invocable: true,
        version: None,
        paths: Paths::default(),
        agent: None,
        effort: None,
        frontmatter: Map::new(),
        body: String::new(),
        findings: Vec::new(),
    };
    for entry in entries {
        let field = known(&entry.key);
        let mut warn = |text: String| findings.push(Finding::warning(entry.line, text));
        match field {
            None => warn(unknown(&entry.key)),
            Some(field) if field != entry.key => {
                warn(format!("{} was read as {field}; write it so", shown(&entry.key)))
            }
            Some(_) => {}
        }
        let key = field.unwrap_or(&entry.key).to_owned();
        if skill.frontmatter.insert(key, entry.json.clone()).is_some() {
            warn(format!("{} is written twice, and the last one counts; keep one", shown(&entry.key)));
        }
        if let Some(field) = field {
            set(&mut skill, field, entry, &mut warn);
        }
    }
    if skill.name.is_empty() {
        skill.name = one_line(folder);
    }
    if skill.description.is_none() {
        let line = entries.first().map_or(1, |entry| entry.line);
        findings.push(Finding::warning(line, "description is missing; say in a line what the skill is for"));
    }
    skill
}

fn set(skill: &mut Skill, field: &str, entry: &Entry, warn: &mut impl FnMut(String)) {
    match field {
        "name" => skill.name = name(entry, warn),
        "description" => skill.description = text(entry, warn),
        "when_to_use" => skill.when_to_use = text(entry, warn),
        "argument-hint" => skill.argument_hint = text(entry, warn),
        "version" => skill.version = text(entry, warn),
        "agent" => skill.agent = text(entry, warn),
        "model" => skill.model = model(entry, warn),
        "context" => skill.context = context(entry, warn),
        "effort" => skill.effort = effort(entry, warn),
        "allowed-tools" => (skill.allowed_tools, skill.limits_tools) = (tools(entry), !entry.json.is_null()),
        "disable-model-invocation" => skill.disable_model_invocation = flag(entry, false, warn),
        "user-invocable" => skill.user_invocable = flag(entry, true, warn),
        "paths" => skill.paths = Paths::new(globs(entry), warn),
        _ => {}
    }
}

/// A key or word of the file as it may stand in a finding.
fn shown(text: &str) -> String {
    crate::plain::one_line(text, 80)
}

fn unknown(key: &str) -> String {
    let nearest = FIELDS
        .into_iter()
        .map(|field| (strsim::jaro_winkler(field, &key.to_lowercase()), field))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.85);
    match nearest {
        Some((_, field)) => format!("{} is no field of a skill; did you mean {field}?", shown(key)),
        None => format!("{} is no field of a skill, and does nothing; put what is yours below metadata:", shown(key)),
    }
}

fn text(entry: &Entry, warn: &mut impl FnMut(String)) -> Option<String> {
    if entry.comment {
        warn(format!(
            "{}: what follows # is a comment and was left out; put the value in quotes if it belongs",
            entry.key
        ));
    }
    let text = match &entry.shape {
        Shape::Nothing => return None,
        Shape::Text(text) => text.trim(),
        Shape::List(_) | Shape::Keys(_) => {
            if !entry.repaired {
                warn(format!("{} is a text, and YAML reads this one otherwise; put the value in quotes", entry.key));
            }
            &entry.raw
        }
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn name(entry: &Entry, warn: &mut impl FnMut(String)) -> String {
    let name = text(entry, warn).map(|name| one_line(&name)).unwrap_or_default();
    if !name.is_empty() && !super::strict::is_name(&name) {
        warn(format!(
            "name: {:?} is kept, and other hosts refuse it; use at most 64 of a to z, 0 to 9 and single - inside",
            shown(&name)
        ));
    }
    name
}

fn context(entry: &Entry, warn: &mut impl FnMut(String)) -> Mode {
    match text(entry, warn).map(|word| word.to_lowercase()).as_deref() {
        None | Some("inline") => Mode::Inline,
        Some("fork") => Mode::Fork,
        Some(other) => {
            warn(format!("context: {:?} is none of inline, fork, and inline was taken", shown(other)));
            Mode::Inline
        }
    }
}

fn model(entry: &Entry, warn: &mut impl FnMut(String)) -> Option<String> {
    let model = text(entry, warn)?;
    let known = ["haiku", "sonnet", "opus", "inherit"].contains(&model.as_str());
    // A full name has a version, a wire or both: claude-sonnet-4-5, openai:qwen3.
    if !known && !model.contains(['-', ':', '/']) {
        warn(format!(
            "model: {:?} is none of haiku, sonnet, opus, inherit, and no full name of a model",
            shown(&model)
        ));
    }
    Some(model)
}

fn effort(entry: &Entry, warn: &mut impl FnMut(String)) -> Option<Effort> {
    let word = text(entry, warn)?.to_lowercase();
    let effort = match word.as_str() {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "max" => Effort::Max,
        _ => {
            warn(format!("effort: {:?} is none of low, medium, high, max, and was left out", shown(&word)));
            return None;
        }
    };
    Some(effort)
}

fn flag(entry: &Entry, default: bool, warn: &mut impl FnMut(String)) -> bool {
    let Some(word) = text(entry, warn) else { return default };
    let value = match word.to_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    };
    match value {
        Some(value) => {
            if !matches!(word.as_str(), "true" | "false") {
                warn(format!("{}: {:?} was read as {value}; write true or false", entry.key, shown(&word)));
            }
            value
        }
        None => {
            warn(format!("{}: {:?} is neither true nor false, and {default} was taken", entry.key, shown(&word)));
            default
        }
    }
}

/// Tools as a list, with commas, or with spaces; a rule in brackets stays whole: `Bash(git add:*)`.
fn tools(entry: &Entry) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    for word in pieces(entry).iter().flat_map(|piece| split_outside(piece, |c| c == ',' || c.is_whitespace())) {
        if !tools.iter().any(|tool| tool == word) {
            tools.push(word.to_owned());
        }
    }
    tools
}

/// Globs as a list or with commas. Spaces are part of a name, but for a row of words that all have a star.
fn globs(entry: &Entry) -> Vec<String> {
    let mut globs = Vec::new();
    for piece in pieces(entry) {
        for glob in split_outside(piece, |c| matches!(c, ',' | '\n')) {
            let words: Vec<&str> = glob.split_whitespace().collect();
            match words.iter().all(|word| word.contains('*')) {
                true => globs.extend(words.into_iter().map(str::to_owned)),
                false => globs.push(glob.to_owned()),
            }
        }
    }
    globs
}

fn pieces(entry: &Entry) -> Vec<&str> {
    match &entry.shape {
        Shape::Nothing => Vec::new(),
        Shape::Text(text) => vec![text],
        Shape::List(items) | Shape::Keys(items) => items.iter().map(String::as_str).collect(),
    }
}
