//! Agent definitions: a Markdown file that says who an agent is, which tools it has and which model answers. Pure.
//!
//! Read as leniently as a skill and by the same reader: definitions written for other hosts work, with a finding for what
//! does nothing here. Folders are the business of `roster`, running of `subagent`.

use crate::command::nearest;
use crate::skill::{self, Finding};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// An agent as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name; the file's where it gives none.
    pub name: String,
    /// When to give it work, in a line or a few; empty where the file does not say.
    pub description: String,
    /// The tools that it has; none means those of whoever gives it work.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub without: Vec<String>,
    /// Model that answers, in the author's word; none means that of whoever gives it work.
    pub model: Option<String>,
    /// Steps it takes where nobody says otherwise.
    pub max_steps: Option<u32>,
    /// Skills that it knows from the start.
    pub skills: Vec<String>,
    /// All that the frontmatter holds, in its order.
    pub frontmatter: Map<String, Value>,
    /// Who it is and how it works.
    pub body: String,
    /// What is wrong with the file, in the order of its lines.
    pub findings: Vec<Finding>,
}

/// Keys of this host that a skill does not have, with other spellings that are read.
const KEYS: [(&str, &[&str]); 4] = [
    ("tools", &["tools", "allowed-tools"]),
    ("disallowed-tools", &["disallowedtools", "disallowed-tools", "disallowed_tools"]),
    ("max_steps", &["max_steps", "max-steps", "maxsteps", "maxturns", "max_turns", "max-turns"]),
    ("skills", &["skills"]),
];

/// Keys that other hosts know and that do nothing here.
const ELSEWHERE: [&str; 9] =
    ["color", "colour", "permissionmode", "mcpservers", "hooks", "memory", "background", "isolation", "initialprompt"];

/// Reads a definition from the bytes of its file; `stem` is the file's name without its ending. The error is for a file that is
/// none: nobody would want a README as an agent.
pub fn read(bytes: &[u8], stem: &str) -> Result<Definition, String> {
    let skill = skill::read(bytes, stem);
    if skill.frontmatter.is_empty() {
        return Err("it has no frontmatter; begin it with --- and name: and description:, and close it with ---".into());
    }
    if skill.body.is_empty() {
        return Err("it says nothing of who the agent is; write that below the frontmatter".into());
    }
    let mut findings: Vec<Finding> = skill.findings.into_iter().filter_map(reworded).collect();
    let value = |key: &str| {
        let spellings = KEYS.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, spellings)| spellings);
        let mut pairs = skill.frontmatter.iter();
        pairs.find(|(key, _)| spellings.contains(&key.to_lowercase().as_str())).map(|(_, value)| value)
    };
    // An empty list allows none; a key without a value is as good as none.
    let tools = value("tools").filter(|value| !value.is_null()).map(words);
    let tools = tools.filter(|tools| !tools.iter().any(|tool| tool == "*"));
    let max_steps = match value("max_steps") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
            if number.is_none_or(|number| number == 0) {
                findings
                    .push(Finding::warning(1, format!("max_steps: {value} is no number from 1 up, and was left out")));
            }
            number.filter(|number| *number > 0).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
        }
    };
    Ok(Definition {
        name: skill.name,
        description: skill.description.as_deref().or(skill.when_to_use.as_deref()).unwrap_or_default().to_owned(),
        tools,
        without: value("disallowed-tools").map(words).unwrap_or_default(),
        model: skill.model.filter(|model| model != "inherit"),
        max_steps,
        skills: value("skills").map(words).unwrap_or_default(),
        body: skill.body,
        frontmatter: skill.frontmatter,
        findings,
    })
}

/// A finding of the reader of skills as it holds for an agent, if it does.
fn reworded(finding: Finding) -> Option<Finding> {
    let own = |key: &str| KEYS.iter().any(|(_, spellings)| spellings.contains(&key));
    let Some((key, _)) = finding.text.split_once(" is no field of a skill") else {
        let text = match finding.text.starts_with("description is missing") {
            true => "description is missing; say in a line when to give the agent work".to_owned(),
            false => finding.text,
        };
        return Some(Finding { text, ..finding });
    };
    let key = key.to_lowercase();
    if own(&key) {
        return None;
    }
    let text = match ELSEWHERE.contains(&key.as_str()) {
        true => format!("{key} is kept, and does nothing here"),
        false => {
            let names = ["name", "description", "tools", "disallowed-tools", "model", "max_steps", "skills"];
            match nearest(&key, names) {
                Some(name) => format!("{key} is no field of an agent; did you mean {name}?"),
                None => format!("{key} is no field of an agent, and does nothing"),
            }
        }
    };
    Some(Finding { text, ..finding })
}

/// A list, or a text with commas or spaces, as words; a rule in brackets stays whole: `Bash(git add:*)`.
fn words(value: &Value) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for text in texts {
        let (mut depth, mut word) = (0_usize, String::new());
        for c in text.chars().chain([',']) {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ',' || c.is_whitespace()) {
                if !word.is_empty() && !words.contains(&word) {
                    words.push(std::mem::take(&mut word));
                }
                word.clear();
            } else {
                word.push(c);
            }
        }
        // A bracket that was never closed takes the rest with it, and names no tool.
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

/// Names that other hosts give to tools of their own.
static ELSEWHERE_TOOLS: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| crate::yaml::from_str(include_str!("../personas/tool-names.yaml")).unwrap_or_default());

/// The tools that a definition or a skill names, by the names that they have here, and a line for each word that names none.
/// `there` says whether there is a tool of that name.
pub fn tools(named: &[String], there: impl Fn(&str) -> bool) -> (BTreeSet<String>, Vec<String>) {
    let (mut tools, mut left_out) = (BTreeSet::new(), Vec::new());
    for word in named {
        if word.contains('(') {
            left_out.push(format!("{word} is left out: a tool is there or is not, so name it without brackets"));
            continue;
        }
        if there(word) {
            tools.insert(word.clone());
            continue;
        }
        let known = ELSEWHERE_TOOLS.get(&word.to_lowercase()).map(Vec::as_slice).unwrap_or_default();
        let ours: Vec<&String> = known.iter().filter(|tool| there(tool)).collect();
        if ours.is_empty() {
            left_out.push(format!("{word} is left out: there is no such tool here"));
        }
        tools.extend(ours.into_iter().cloned());
    }
    (tools, left_out)
}

/// Definitions that a list names; more are counted.
const LINES: usize = 30;

/// Whether a file of the workspace may choose the model `full` for one who works with `own`: what a cloned repository brings
/// instructs a model, and does not choose who gets to read the conversation, nor plays a script through real tools.
pub fn may_choose(full: &str, own: &str) -> Result<(), String> {
    let wire = |name: &str| name.split_once(':').map(|(wire, _)| wire.to_owned());
    match wire(full) {
        Some(chosen) if Some(&chosen) == wire(own).as_ref() && chosen != "scripted" => Ok(()),
        _ => Err(format!(
            "{full} is chosen by a file of the workspace, which may name models of the same provider only; name it under \
             agents: models: in the config, or keep the file in the home folder"
        )),
    }
}

/// The list that a model reads, a line each; empty where there is none.
pub fn list<'a>(definitions: impl Iterator<Item = &'a Definition>) -> String {
    let mut lines: Vec<String> = definitions.map(line).collect();
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("- … ({more})"));
    }
    lines.join("\n")
}

/// A line for a list: its name and when to give it work, in one sentence or two.
pub fn line(definition: &Definition) -> String {
    let name = crate::plain::one_line(&definition.name, NAME);
    match crate::plain::one_line(&definition.description, LISTED) {
        description if description.is_empty() => format!("- {name}"),
        description => format!("- {name}: {description}"),
    }
}

/// Bytes of a name, and of a description, in a list that a model reads.
const NAME: usize = 80;
const LISTED: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Definition {
        super::read(text.as_bytes(), "stem").unwrap()
    }

    fn texts(definition: &Definition) -> Vec<&str> {
        definition.findings.iter().map(|finding| finding.text.as_str()).collect()
    }

    #[test]
    fn an_empty_list_of_tools_allows_none_and_no_list_all() {
        let tools = |line: &str| read(&format!("---\nname: a\ndescription: b\n{line}\n---\nYou are.\n")).tools;
        assert_eq!((tools("tools: []"), tools("tools: ''")), (Some(vec![]), Some(vec![])));
        assert_eq!((tools("tools:"), tools("model: x"), tools("tools: '*'")), (None, None, None));
    }

    #[test]
    fn a_file_of_the_workspace_chooses_within_the_provider_only() {
        assert!(may_choose("anthropic:claude-haiku-4-5", "anthropic:claude-opus-4-5").is_ok());
        for (full, own) in [("openai:x", "anthropic:y"), ("scripted:evil.yaml", "scripted:a.yaml"), ("x", "openai:y")] {
            assert!(may_choose(full, own).is_err(), "{full} {own}");
        }
    }

    #[test]
    fn all_fields_are_read() {
        let agent = read(
            "---\nname: reader\ndescription: Reads papers\ntools: read_file, grep_files\ndisallowed-tools: [grep_files]\n\
             model: haiku\nmax_steps: 7\nskills: [fits]\n---\nYou read.\n",
        );
        assert_eq!((agent.name.as_str(), agent.description.as_str()), ("reader", "Reads papers"));
        assert_eq!(agent.tools.as_deref(), Some(&["read_file".to_owned(), "grep_files".to_owned()][..]));
        assert_eq!(
            (agent.without.as_slice(), agent.skills.as_slice()),
            (&["grep_files".to_owned()][..], &["fits".to_owned()][..])
        );
        assert_eq!((agent.model.as_deref(), agent.max_steps), (Some("haiku"), Some(7)));
        assert_eq!((agent.body.as_str(), texts(&agent)), ("You read.", vec![]));
    }

    #[test]
    fn definitions_of_other_hosts_are_read_with_a_word_on_what_does_nothing() {
        let agent = read(
            "\u{feff}---\r\nname: code-reviewer\r\ndescription: Use this agent when: code was written\r\ntools: Read, Grep Bash(git diff:*)\r\n\
             model: inherit\r\ncolor: blue\r\npermissionMode: plan\r\nmaxTurns: many\r\ndescripton: x\r\n---\r\nYou review.\r\n",
        );
        assert_eq!(agent.description, "Use this agent when: code was written");
        assert_eq!(agent.tools.as_deref().unwrap(), ["Read", "Grep", "Bash(git diff:*)"]);
        assert_eq!((&agent.model, agent.max_steps), (&None, None));
        let said = texts(&agent).join("\n");
        for word in [
            "color is kept, and does nothing",
            "permissionmode is kept",
            "max_steps: \"many\"",
            "did you mean description",
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(read("---\nname: a\ndescription: b\ntools: '*'\n---\nx").tools, None, "a star is all");
    }

    #[test]
    fn a_readme_is_no_agent_and_neither_is_a_head_without_a_body() {
        assert!(super::read(b"# Agents\n\nPut yours here.\n", "README").unwrap_err().contains("no frontmatter"));
        assert!(super::read(b"---\nname: a\n---\n\n", "a").unwrap_err().contains("nothing of who"));
        assert_eq!(read("---\ndescription: b\n---\nx").name, "stem");
    }

    #[test]
    fn tools_of_other_hosts_are_found_by_their_names_there_and_what_is_unknown_is_said() {
        let here = ["read_file", "grep_files", "run_bash"];
        let named = ["Read", "grep", "grep_files", "Bash(git diff:*)", "mcp__x__y"].map(str::to_owned);
        let (tools, left_out) = super::tools(&named, |name| here.contains(&name));
        assert_eq!(tools.into_iter().collect::<Vec<_>>(), ["grep_files", "read_file"]);
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        assert!(left_out[0].starts_with("Bash(git diff:*)") && left_out[1].starts_with("mcp__x__y"), "{left_out:?}");
        assert!(!ELSEWHERE_TOOLS.is_empty(), "the table reads");
    }

    #[test]
    fn any_bytes_are_read() {
        for bytes in [&b""[..], b"---", b"---\n\xff\xfe: [\n---\n\xff", b"---\ntools: {a: {b: [\n---\nx"] {
            let _ = super::read(bytes, "x");
        }
        assert_eq!(words(&Value::from("a (b, c")), ["a", "(b, c,"]);
    }
}
