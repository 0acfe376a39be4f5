//! What a session has loaded and found, gathered from its own record for a compaction to restore.
//!
//! No tool is known here by its name but those by which others are found and reached: a file is what a call that changes
//! nothing answered for a `path`, and a tool was found where `call_tool` addressed it or `tool_search` answered with it.

use crate::catalogue;
use crate::command;
use crate::compact::{Item, Restore, standing};
use crate::outputs;
use crate::session::Session;
use crate::store::StoreError;
use crate::tool_call::{Asked, addressed};
use crate::transcript::{Block, Origin, Part};
use std::collections::{HashMap, HashSet};

/// Files that are looked for.
const FILES: usize = 5;
/// Pointers to kept results that come back.
const OUTPUTS: usize = 20;
/// Characters of the sentence that says who the agent is.
const IDENTITY: usize = 300;

/// Gathers it.
pub(super) fn gather(session: &mut Session) -> Result<Restore, StoreError> {
    let tasks = if session.open_tasks()? > 0 { session.task_recovery()? } else { String::new() };
    let listed: HashSet<String> = session.listed_tools()?.iter().map(|tool| tool.name.clone()).collect();
    let (files, tools) = calls(session, &listed);
    Ok(Restore {
        identity: identity(&session.setup.persona.identity.0),
        instructions: instructions(session),
        tasks,
        skills: skills(session),
        tools,
        outputs: outputs(session),
        files,
    })
}

/// Skills that were loaded, with their texts as they were.
fn skills(session: &Session) -> Vec<Item> {
    let loaded = session.skills.restorable().into_iter();
    loaded.map(|loaded| Item { name: loaded.name, text: loaded.text, call: loaded.call }).collect()
}

/// The first sentence of who the agent is.
fn identity(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let end = line.char_indices().find(|(at, c)| match c {
        '。' => true,
        '.' => line[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    });
    let sentence = end.map_or(line, |(at, c)| &line[..at + c.len_utf8()]);
    sentence.chars().take(IDENTITY).collect()
}

/// Standing instructions of the user, each once, oldest first.
fn instructions(session: &Session) -> Vec<String> {
    let mut seen = HashSet::new();
    let own = session.said().filter(|message| message.origin == Origin::User);
    own.flat_map(|message| standing(&command::said(message))).filter(|words| seen.insert(words.clone())).collect()
}

/// Pointers to results that are kept in the session's own folder, each with its tool, most recent first.
fn outputs(session: &Session) -> Vec<String> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut pointers = Vec::new();
    for block in session.said().flat_map(|message| &message.content) {
        match block {
            Block::ToolUse { id, name, .. } => drop(names.insert(id, name)),
            Block::ToolResult { id, parts, .. } => pointers.extend(parts.iter().filter_map(|part| match part {
                Part::File { path, .. } if path.starts_with(outputs::GUEST) => {
                    Some(format!("{path}: {}", names.get(id.as_str()).copied().unwrap_or("a tool")))
                }
                _ => None,
            })),
            _ => {}
        }
    }
    pointers.into_iter().rev().take(OUTPUTS).collect()
}

/// Files that were read and not written since, most recent first, and tools: those that were called through an address, then
/// those that were only found.
fn calls(session: &Session, listed: &HashSet<String>) -> (Vec<Item>, Vec<Item>) {
    let snapshot = session.calls.registry.snapshot();
    let (mut files, mut tools, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let mut answers: HashMap<&str, (&[Part], bool)> = HashMap::new();
    let (mut paths, mut names) = (HashSet::new(), HashSet::new());
    for block in session.said().rev().flat_map(|message| message.content.iter().rev()) {
        match block {
            Block::ToolResult { id, parts, is_error } => {
                answers.insert(id, (parts, *is_error));
            }
            Block::ToolUse { id, name, input, malformed: None } => {
                let asked = Asked { id, tool: name, input, malformed: None };
                let found = name == catalogue::CALL_TOOL;
                let Ok(asked) = addressed(asked) else { continue };
                let Some((_, tool)) = snapshot.tool(asked.tool) else { continue };
                if found {
                    tools.push(tool);
                }
                if let (catalogue::SEARCH_TOOL, Some((parts, false))) = (asked.tool, answers.get(id.as_str())) {
                    let texts: Vec<String> = parts.iter().map(Part::as_text).collect();
                    let words =
                        texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.split_whitespace().next());
                    seen.extend(words.filter_map(|word| snapshot.tool(word)).map(|(_, tool)| tool));
                }
                let Some(path) = asked.input.get("path").and_then(|path| path.as_str()) else { continue };
                let one = ["pattern", "query"].iter().all(|key| asked.input.get(key).is_none());
                if !paths.insert(path) || !tool.read_only || !one || files.len() >= FILES {
                    continue;
                }
                if let Some((parts, false)) = answers.get(id.as_str()) {
                    let text: Vec<String> = parts.iter().map(Part::as_text).collect();
                    files.push(Item { name: path.to_owned(), text: text.join("\n"), call: Some(id.clone()) });
                }
            }
            _ => {}
        }
    }
    let tools = tools.into_iter().chain(seen);
    let tools = tools.filter(|&tool| !listed.contains(&tool.name) && names.insert(tool.name.as_str())).map(|tool| {
        let text = format!("{}\ninput schema: {}", tool.description.trim(), tool.schema.canonical.as_str());
        Item { name: tool.name.clone(), text, call: None }
    });
    (files, tools.collect())
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn who_the_agent_is_takes_one_sentence() {
        assert_eq!(
            identity("# Who\n\nYou are Astro v0.1, an assistant. You help."),
            "You are Astro v0.1, an assistant."
        );
        assert_eq!(identity("你是天文助手。你帮忙。"), "你是天文助手。");
        assert_eq!(identity(" \n"), "");
    }
}
