//! `session`: lists the sessions, shows one, and takes them from home to home.

use super::Exit;
use super::show::{NAME, note_line, print_line};
use crate::compact::{Attempt, Breaker};
use crate::host::Host;
use crate::plain;
use crate::store::{AgentRecord, CompactionRecord};
use crate::transcript::{Block, Message, Origin, Part};
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::path::PathBuf;

mod archive;

#[derive(Subcommand)]
pub(super) enum SessionCommand {
    /// Lists the sessions, last written first
    List {
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Shows the transcript of a session
    Show {
        /// The session's id, or the beginning of it
        id: String,
        /// Also what lies before the last compaction
        #[arg(long)]
        full: bool,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
    /// Writes all of a session as JSON Lines
    Export {
        /// The session's id, or the beginning of it
        id: String,
        /// A file that is not there yet [default: standard output]
        file: Option<PathBuf>,
    },
    /// Takes in an exported session, all of it or nothing
    Import {
        /// The file; - reads standard input
        file: PathBuf,
        /// Under a new id
        #[arg(long)]
        copy: bool,
    },
    /// Begins a session that is another one, up to a message
    Fork {
        /// The session's id, or the beginning of it
        id: String,
        /// How many messages it keeps, as `session show --full` counts them [default: all]
        #[arg(long, value_name = "N")]
        at: Option<u64>,
    },
    /// Removes a session with all that is kept of it
    Remove {
        /// The session's id, or the beginning of it
        id: String,
    },
}

pub(super) fn session(host: &Host, command: &SessionCommand) -> Result<Exit> {
    match command {
        SessionCommand::List { json: true } => print_line(&serde_json::to_string_pretty(&host.store.sessions()?)?),
        SessionCommand::List { json: false } => {
            let sessions = host.store.sessions()?;
            if sessions.is_empty() {
                note_line("no sessions yet; `astrarium run` and `astrarium chat` begin one");
            }
            for session in sessions {
                let when = session.updated.get(..16).unwrap_or_default();
                let title = plain::one_line(&session.title, usize::MAX);
                print_line(&format!("{}  {when}  {:>4} messages  {title}", session.id, session.messages));
            }
        }
        SessionCommand::Show { id, full, json } => show_session(host, id, *full, *json)?,
        SessionCommand::Export { id, file } => archive::export(host, id, file.as_deref())?,
        SessionCommand::Import { file, copy } => archive::import(host, file, *copy)?,
        SessionCommand::Fork { id, at } => archive::fork(host, id, *at)?,
        SessionCommand::Remove { id } => archive::remove(host, id)?,
    }
    Ok(Exit::Done)
}

/// The conversation as the model sees it, or all of the transcript.
fn show_session(host: &Host, id: &str, full: bool, json: bool) -> Result<()> {
    let session = host.store.session(id)?;
    let mut messages = host.store.messages(&session.id)?;
    let usage = host.store.usage(&session.id)?;
    let compactions = host.store.compactions(&session.id)?;
    let first = compactions.iter().filter(|done| done.layer.is_some()).map(|done| done.first as usize).max();
    let (agent, agents) = (host.store.agent(&session.id)?, host.store.agents_of(&session.id)?);
    let hidden = if full { 0 } else { first.unwrap_or(0).min(messages.len()) };
    messages.drain(..hidden);
    if json {
        let document = json!({ "session": session, "usage": usage, "messages": messages, "compactions": compactions,
            "agent": agent, "agents": agents });
        print_line(&serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    let head = format!("{}  {}  {}", session.id, session.model, session.workspace);
    print_line(&plain::one_line(&head, usize::MAX));
    if let Some(agent) = &agent {
        let name = if agent.agent.is_empty() { String::new() } else { format!(" {}", agent.agent) };
        let line = format!("{}{name}, at work for {} (call {})", agent.kind, agent.parent, agent.call);
        print_line(&plain::one_line(&line, usize::MAX));
    }
    if hidden > 0 {
        print_line(&format!("\n{hidden} messages before the last compaction; --full shows them"));
    }
    for (at, message) in messages.iter().enumerate() {
        let here = |done: &&CompactionRecord| done.layer.is_some() && done.first as usize == hidden + at;
        if let Some(done) = compactions.iter().find(here) {
            print_line(&format!("\n──── {}", compaction_line(done)));
        }
        show(hidden + at + 1, message);
    }
    print_line(&format!(
        "\ntokens: {} fresh, {} read from cache, {} written to it, {} answered",
        usage.input, usage.cache_read, usage.cache_write, usage.output
    ));
    for agent in &agents {
        print_line(&agent_line(agent));
    }
    if !compactions.is_empty() {
        let mut breaker = Breaker::default();
        for done in &compactions {
            breaker.record(Attempt { before: done.tokens_before, after: done.tokens_after });
        }
        print_line(&format!("compactions: {}; breaker: {breaker}", compactions.len()));
        if let Some(failed) = compactions.last().filter(|done| done.layer.is_none()) {
            print_line(&format!("the last one: {}", compaction_line(failed)));
        }
    }
    Ok(())
}

/// An agent that worked for the session. One without an end was cut off with the run, and goes on no more.
fn agent_line(agent: &AgentRecord) -> String {
    let count = |key: &str| agent.statistics.as_ref().and_then(|all| all[key].as_u64()).unwrap_or_default();
    let tokens = |key: &str| agent.statistics.as_ref().and_then(|all| all["tokens"][key].as_u64()).unwrap_or_default();
    let name = if agent.agent.is_empty() { &agent.kind } else { &agent.agent };
    let how = match &agent.reason {
        Some(reason) => format!(
            "{reason}, {} steps, {} tool calls, {} tokens sent, {} answered",
            count("steps"),
            count("tool_calls"),
            tokens("input") + tokens("cache_read") + tokens("cache_write"),
            tokens("output")
        ),
        None => "interrupted".into(),
    };
    plain::one_line(&format!("agent {} {name}: {how}: {}", agent.session, agent.title), usize::MAX)
}

fn compaction_line(done: &CompactionRecord) -> String {
    let trigger = done.trigger.as_str();
    match (done.layer, done.tokens_after) {
        (Some(layer), Some(after)) => {
            let why = done.reason.as_ref().map(|reason| format!("; {}", plain::one_line(reason, usize::MAX)));
            format!(
                "compacted ({trigger}, {}): {} messages to {}, about {} tokens to {after}{}",
                layer.as_str(),
                done.messages_before,
                done.messages,
                done.tokens_before,
                why.unwrap_or_default()
            )
        }
        _ => {
            let reason = done.reason.as_deref().unwrap_or("no reason is on record");
            format!("not compacted ({trigger}): {}", plain::one_line(reason, usize::MAX))
        }
    }
}

fn show(number: usize, message: &Message) {
    let who = match message.origin {
        Origin::User => "user",
        Origin::Attached => "attached",
        Origin::Model => "model",
        Origin::Tools => "tools",
        Origin::Host => "host",
        Origin::Compaction => "compaction",
    };
    print_line(&format!("\n[{who}] {number}"));
    for block in &message.content {
        match block {
            Block::Text { text } => print_line(&plain::lines(text)),
            Block::Thinking { text, .. } => print_line(&format!("(thinking) {}", plain::lines(text))),
            Block::ToolUse { name, input, malformed, .. } => {
                let input = malformed.clone().unwrap_or_else(|| input.to_string());
                print_line(&format!("→ {} {}", plain::one_line(name, NAME), plain::lines(&input)));
            }
            Block::ToolResult { parts, is_error, .. } => {
                let text: Vec<String> = parts.iter().map(Part::as_text).collect();
                let mark = if *is_error { "✗" } else { "←" };
                print_line(&format!("{mark} {}", plain::lines(&text.join("\n"))));
            }
            Block::Image { media_type, .. } => {
                print_line(&format!("[image {}]", plain::one_line(media_type, NAME)));
            }
        }
    }
}
