//! `agent`: which agents there are to give work to, and what a definition says.

use super::show::{note_line, notice, print_line};
use super::{Exit, usage};
use crate::host::Options;
use crate::plain::{lines, one_line};
use crate::roster::{Found, Roster};
use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(Subcommand)]
pub(super) enum AgentCommand {
    /// Lists the agents
    List {
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Shows one agent
    Show {
        /// The agent's name
        name: String,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
}

/// No host is needed: what helps with a broken definition must not need the plugins.
pub(super) fn agent(options: &Options, command: &AgentCommand) -> Result<Exit> {
    let roster = Roster::read(&options.agent_roots());
    roster.problems.iter().for_each(|line| note_line(&notice(line)));
    match command {
        AgentCommand::List { json: true } => {
            let documents: Vec<Value> = roster.all().map(document).collect();
            print_line(&serde_json::to_string_pretty(&documents)?);
        }
        AgentCommand::List { json: false } => {
            for found in roster.all() {
                let definition = &found.definition;
                let description = match definition.description.as_str() {
                    "" => "(no description)",
                    description => description,
                };
                let line = format!("{:<20} {:<9} {description}", definition.name, found.owner.word());
                print_line(&one_line(&line, 160));
            }
        }
        AgentCommand::Show { name, json } => {
            let found = roster.get(name).ok_or_else(|| {
                usage(format!("there is no agent {name:?}; `astrarium agent list` shows those there are"))
            })?;
            match json {
                true => {
                    let mut document = document(found);
                    document["body"] = found.definition.body.as_str().into();
                    print_line(&serde_json::to_string_pretty(&document)?);
                }
                false => show(found),
            }
        }
    }
    Ok(Exit::Done)
}

fn show(found: &Found) {
    let Found { definition, owner, file } = found;
    let print = |line: String| print_line(&one_line(&line, usize::MAX));
    print(format!("{}: {}", definition.name, definition.description));
    print(format!("file: {} ({})", file.display(), owner.word()));
    match &definition.tools {
        Some(tools) => print(format!("tools: {}", tools.join(", "))),
        None => print("tools: those of whoever gives it work".into()),
    }
    if !definition.without.is_empty() {
        print(format!("without: {}", definition.without.join(", ")));
    }
    if let Some(model) = &definition.model {
        print(format!("model: {model}"));
    }
    if let Some(steps) = definition.max_steps {
        print(format!("steps: {steps}"));
    }
    if !definition.skills.is_empty() {
        print(format!("skills: {}", definition.skills.join(", ")));
    }
    for finding in &definition.findings {
        print(format!("{}:{}: {}: {}", file.display(), finding.line, finding.level.word(), finding.text));
    }
    print_line(&format!("\n{}", lines(&definition.body)));
}

fn document(found: &Found) -> Value {
    let Found { definition, owner, file } = found;
    json!({
        "name": definition.name,
        "description": definition.description,
        "tools": definition.tools,
        "without": definition.without,
        "model": definition.model,
        "max_steps": definition.max_steps,
        "skills": definition.skills,
        "owner": owner,
        "file": file,
        "frontmatter": definition.frontmatter,
        "findings": definition.findings,
    })
}
