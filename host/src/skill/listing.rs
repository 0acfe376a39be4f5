//! Layer 1: the lines by which a model knows that a skill is there, within a budget. Pure.

use super::{Mode, Skill};
use crate::prompt::Language;
use crate::tokens::{self, Tokenizer};

/// Characters of one skill's line (SPEC 2.1): more is no summary.
pub const LINE: usize = 1_536;

/// The line of a skill: `- name: description - when to use it`, at most [`LINE`] characters.
pub fn line(skill: &Skill, language: Language) -> String {
    let description = skill.description.as_deref().unwrap_or(match language {
        Language::Zh => "（无描述）",
        Language::En => "(no description)",
    });
    let mut text = format!("- {}: {}", skill.name, flat(description));
    if let Some(when) = &skill.when_to_use {
        text.push_str(&format!(" - {}", flat(when)));
    }
    cut(text, LINE)
}

/// Words on one line: a description may have several.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// What the host does with a skill, a line each, for its author.
pub fn explain(skill: &Skill) -> Vec<String> {
    let mut lines = Vec::new();
    let line = line(skill, Language::En);
    let count = line.chars().count();
    lines.push(match (skill.user_invocable, skill.disable_model_invocation) {
        (false, _) => "is not in the list of skills, since user-invocable is false".to_owned(),
        (true, true) => "is not in the list of skills, since disable-model-invocation is true".to_owned(),
        (true, false) if !skill.paths.is_empty() => format!(
            "is in the list of skills once a file is touched that fits {}, as {count} of {LINE} characters",
            skill.paths.globs().join(", ")
        ),
        (true, false) => format!("is in the list of skills, as {count} of {LINE} characters"),
    });
    lines.push(match (skill.disable_model_invocation, skill.user_invocable) {
        (true, true) => "is loaded by people only, as a slash command".to_owned(),
        (true, false) => "is loaded by nobody: user-invocable is false and disable-model-invocation is true".to_owned(),
        (false, true) => "is loaded by the model and by people".to_owned(),
        (false, false) => "is loaded by the model only".to_owned(),
    });
    let tools = match skill.allowed_tools.as_slice() {
        [] => "any tool".to_owned(),
        tools => tools.join(", "),
    };
    lines.push(match skill.context {
        Mode::Inline => format!("runs in the conversation, with {tools}"),
        Mode::Fork => {
            let agent = skill.agent.as_deref().unwrap_or("the default agent");
            let model = skill.model.as_deref().unwrap_or("inherit");
            let effort = skill.effort.map_or("as usual", |effort| effort.word());
            format!("runs as a fork: {agent}, model {model}, effort {effort}, with {tools}")
        }
    });
    let variables =
        ["${SKILL_DIR}", "${SESSION_ID}", "$ARGUMENTS"].into_iter().filter(|name| skill.body.contains(name));
    let variables: Vec<&str> = variables.collect();
    let (count, tokens) = (skill.body.lines().count(), tokens::text(&skill.body, Tokenizer::Claude));
    let with = if variables.is_empty() { String::new() } else { format!(", with {}", variables.join(", ")) };
    lines.push(format!("has a body of {count} lines, about {tokens} tokens{with}"));
    lines
}
