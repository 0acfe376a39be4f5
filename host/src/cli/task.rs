//! `task`: the plan of a session, as it is stored.

use super::Exit;
use super::show::{note_line, print_line};
use crate::host::Host;
use crate::prompt::tasks::line;
use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(Subcommand)]
pub(super) enum TaskCommand {
    /// Lists the tasks of a session
    List {
        /// The session, or the beginning of its id [default: the last one of this workspace]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn task(host: &Host, command: &TaskCommand) -> Result<Exit> {
    let TaskCommand::List { session, json } = command;
    let session = match session {
        Some(id) => Some(host.store.session(id)?),
        None => host.store.latest_session(&host.options.workspace.display().to_string())?,
    };
    let tasks = session.as_ref().map(|session| host.store.tasks(&session.id)).transpose()?.unwrap_or_default();
    if *json {
        let id = session.as_ref().map(|session| &session.id);
        let list: Vec<Value> = tasks
            .iter()
            .map(|task| {
                let mut item = json!(task);
                item["session"] = json!(id);
                item
            })
            .collect();
        print_line(&serde_json::to_string_pretty(&list)?);
        return Ok(Exit::Done);
    }
    match &session {
        None => note_line("no session of this workspace yet; `astrarium run` and `astrarium chat` begin one"),
        Some(session) if tasks.is_empty() => note_line(&format!("session {} has no tasks", session.id)),
        Some(session) => note_line(&format!("tasks of session {}", session.id)),
    }
    for task in &tasks {
        print_line(&line(host.language(), &task.line()));
    }
    Ok(Exit::Done)
}
