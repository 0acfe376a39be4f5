//! `session`: lists the sessions and shows one.

use super::Exit;
use super::show::{NAME, note_line, print_line};
use crate::host::Host;
use crate::plain;
use crate::transcript::{Block, Message, Origin, Part};
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

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
        /// A document on standard output
        #[arg(long)]
        json: bool,
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
        SessionCommand::Show { id, json } => {
            let session = host.store.session(id)?;
            let messages = host.store.messages(&session.id)?;
            let usage = host.store.usage(&session.id)?;
            if *json {
                let document = json!({ "session": session, "usage": usage, "messages": messages });
                print_line(&serde_json::to_string_pretty(&document)?);
            } else {
                let head = format!("{}  {}  {}", session.id, session.model, session.workspace);
                print_line(&plain::one_line(&head, usize::MAX));
                messages.iter().for_each(show);
                print_line(&format!(
                    "\ntokens: {} fresh, {} read from cache, {} written to it, {} answered",
                    usage.input, usage.cache_read, usage.cache_write, usage.output
                ));
            }
        }
    }
    Ok(Exit::Done)
}

fn show(message: &Message) {
    let who = match message.origin {
        Origin::User => "user",
        Origin::Model => "model",
        Origin::Tools => "tools",
        Origin::Host => "host",
        Origin::Compaction => "compaction",
    };
    print_line(&format!("\n[{who}]"));
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
