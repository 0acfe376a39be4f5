//! Layer 1: the lines by which a model knows that a skill is there, within a budget. Pure.

use super::{Mode, Skill};
use crate::prompt::{Language, Texts};
use crate::tokens::{self, Tokenizer};

/// Characters of one skill's line (SPEC 2.1): more is no summary.
pub const LINE: usize = 1_536;

/// Part of the budget that is kept for the bare names of skills whose lines do not fit: a fifth.
const NAMES: u64 = 5;

/// The line of a skill: `- name: description - when to use it`, at most [`LINE`] characters.
pub fn line(skill: &Skill, language: Language) -> String {
    let mut text = format!("- {}: {}", skill.name, described(skill, language));
    if let Some(when) = &skill.when_to_use {
        text.push_str(&format!(" - {}", flat(when)));
    }
    cut(text, LINE)
}

/// What a skill is for, in a line.
pub fn described(skill: &Skill, language: Language) -> String {
    flat(skill.description.as_deref().unwrap_or(match language {
        Language::Zh => "（无描述）",
        Language::En => "(no description)",
    }))
}

/// The list of skills in this order, in at most `budget` tokens: lines as long as they fit, then names, then a number. Empty
/// where there is no skill.
pub fn list(skills: &[&Skill], texts: &Texts, budget: u64) -> String {
    let size = |text: &str| tokens::text(text, Tokenizer::default()) + 1;
    let lines: Vec<String> = skills.iter().map(|skill| line(skill, texts.language())).collect();
    let sizes: Vec<u64> = lines.iter().map(|line| size(line)).collect();
    if sizes.iter().sum::<u64>() <= budget {
        return lines.join("\n");
    }
    let for_names = budget / NAMES;
    let (mut left, mut left_for_names) = (budget - for_names, for_names);
    let (mut shown, mut names, mut more) = (Vec::new(), Vec::new(), 0_usize);
    for ((skill, line), tokens) in skills.iter().zip(lines).zip(sizes) {
        let of_name = size(&skill.name) + 1;
        if tokens <= left {
            left -= tokens;
            shown.push(line);
        } else if of_name <= left_for_names {
            left_for_names -= of_name;
            names.push(skill.name.as_str());
        } else {
            more += 1;
        }
    }
    let count = (names.len() + more).to_string();
    shown.push(texts.fill("skills-cut", &[("count", &count), ("names", &and_more(&names, more, texts.language()))]));
    shown.join("\n")
}

/// `a, b`, and how many others there are.
pub fn and_more(names: &[&str], more: usize, language: Language) -> String {
    let mut text = names.join(", ");
    if more > 0 {
        let gap = if names.is_empty() { "" } else { ", " };
        text.push_str(&match language {
            Language::Zh => format!("{gap}另有 {more} 个"),
            Language::En => format!("{gap}and {more} more"),
        });
    }
    text
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
    let count = line(skill, Language::En).chars().count();
    let listed = match (skill.user_invocable, skill.disable_model_invocation) {
        (false, _) => "is not in the list of skills, since user-invocable is false".to_owned(),
        (true, true) => "is not in the list of skills, since disable-model-invocation is true".to_owned(),
        (true, false) if !skill.paths.is_empty() => format!(
            "is in the list of skills once a file is touched that fits {}, as {count} of {LINE} characters",
            skill.paths.globs().join(", ")
        ),
        (true, false) => format!("is in the list of skills, as {count} of {LINE} characters"),
    };
    let loaded = match (skill.disable_model_invocation, skill.user_invocable) {
        (true, true) => "is loaded by people only, as a slash command",
        (true, false) => "is loaded by nobody: user-invocable is false and disable-model-invocation is true",
        (false, true) => "is loaded by the model and by people",
        (false, false) => "is loaded by the model only",
    };
    let tools = match skill.allowed_tools.as_slice() {
        [] if skill.limits_tools => "no tool".to_owned(),
        [] => "any tool".to_owned(),
        tools => tools.join(", "),
    };
    let runs = match skill.context {
        Mode::Inline => {
            let model = skill.model.as_deref().filter(|model| *model != "inherit");
            let model = model.map(|model| format!("; answered by {model} where a person calls it by its name"));
            let effort = skill.effort.map(|effort| format!("; effort {}", effort.word()));
            let agent = skill.agent.as_ref().map(|_| "; agent counts with context: fork only".to_owned());
            let more: String = [model, effort, agent].into_iter().flatten().collect();
            format!("runs in the conversation, with {tools}{more}")
        }
        Mode::Fork => {
            let agent = skill.agent.as_deref().unwrap_or("the default agent");
            let model = skill.model.as_deref().unwrap_or("inherit");
            let effort = skill.effort.map_or("as usual", |effort| effort.word());
            format!("runs as a fork: {agent}, model {model}, effort {effort}, with {tools}")
        }
    };
    let names = ["${SKILL_DIR}", "${SESSION_ID}", "$ARGUMENTS"];
    let variables: Vec<&str> = names.into_iter().filter(|name| skill.body.contains(name)).collect();
    let (lines, tokens) = (skill.body.lines().count(), tokens::text(&skill.body, Tokenizer::Claude));
    let with = if variables.is_empty() { String::new() } else { format!(", with {}", variables.join(", ")) };
    vec![listed, loaded.to_owned(), runs, format!("has a body of {lines} lines, about {tokens} tokens{with}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::read;
    use expect_test::expect;

    fn skill(name: &str, description: &str, more: &str) -> Skill {
        read(format!("---\nname: {name}\ndescription: {description}\n{more}---\nbody\n").as_bytes(), name)
    }

    fn listed(skills: &[Skill], language: Language, budget: u64) -> String {
        list(&skills.iter().collect::<Vec<_>>(), &Texts::built_in(language), budget)
    }

    #[test]
    fn a_line_has_name_description_and_when() {
        let plotting = skill("plotting", ">\n  科研绘图\n  规范", "when_to_use: When figures are asked for\n");
        assert_eq!(line(&plotting, Language::Zh), "- plotting: 科研绘图 规范 - When figures are asked for");
        assert_eq!(line(&read(b"body", "bare"), Language::Zh), "- bare: （无描述）");
        assert_eq!(line(&read(b"body", "bare"), Language::En), "- bare: (no description)");
        let long = line(&skill("long", &"星".repeat(2_000), ""), Language::Zh);
        assert!(long.chars().count() == LINE && long.ends_with("星…"));
    }

    #[test]
    fn what_does_not_fit_is_named_and_what_is_not_named_is_counted() {
        let mut skills: Vec<Skill> = (1..=8).map(|n| skill(&format!("skill-{n}"), &"words ".repeat(20), "")).collect();
        skills.insert(1, skill("short", "s", ""));
        assert_eq!(listed(&skills, Language::En, 10_000).lines().count(), 9);
        let text = listed(&skills, Language::En, 70);
        expect![[r#"
            - skill-1: words words words words words words words words words words words words words words words words words words words words
            - short: s
            - skill-2: words words words words words words words words words words words words words words words words words words words words
            - (6 further skills, by name only for want of room: skill-3, skill-4, and 4 more)"#]].assert_eq(&text);
        assert!(tokens::text(&text, Tokenizer::default()) < 100, "the frame of the last line comes on top");
        expect!["- （另有 6 个技能因篇幅只列名称：skill-3, skill-4, 另有 4 个）"]
            .assert_eq(listed(&skills, Language::Zh, 70).lines().last().unwrap());
        assert_eq!(listed(&[], Language::En, 0), "");
    }
}
