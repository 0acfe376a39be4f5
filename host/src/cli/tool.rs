//! `tool`: lists the tools, and calls one by hand, through the same hooks and checks as a model's call.

use super::show::{note_line, print_line};
use super::{Exit, signals, usage};
use crate::context::{AgentKind, CallContext};
use crate::host::Host;
use crate::plain;
use crate::prompt::Language;
use crate::runtime::Desk;
use crate::tool_call::{Asked, Calls, Consent, text_of};
use crate::transcript::CallStatus;
use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Subcommand)]
pub(super) enum ToolCommand {
    /// Lists the tools
    List {
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Calls a tool
    Call {
        /// The tool's name
        name: String,
        /// Its arguments, a JSON object; none when left out
        #[arg(default_value = "{}")]
        arguments: String,
        /// A session whose tasks and values it works on
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn tool(host: &Host, command: &ToolCommand) -> Result<Exit> {
    match command {
        ToolCommand::List { json } => {
            list(host, *json)?;
            Ok(Exit::Done)
        }
        ToolCommand::Call { name, arguments, session, json } => {
            call(host, name, arguments, session.as_deref(), *json).await
        }
    }
}

fn list(host: &Host, json: bool) -> Result<()> {
    let snapshot = host.registry.snapshot();
    if json {
        let tools: Vec<Value> = snapshot
            .tools()
            .map(|(plugin, tool)| {
                json!({
                    "name": tool.name,
                    "plugin": plugin.name,
                    "digest": plugin.digest(),
                    "state": plugin.state,
                    "read_only": tool.read_only,
                    "summary": tool.summary,
                    "description": tool.description,
                    "input_schema": tool.schema.value,
                })
            })
            .collect();
        print_line(&serde_json::to_string_pretty(&tools)?);
        return Ok(());
    }
    for (plugin, tool) in snapshot.tools() {
        let summary =
            tool.summary.clone().unwrap_or_else(|| crate::prompt::segments::first_sentence(&tool.description));
        let summary = plain::one_line(&summary, usize::MAX);
        let state = super::plugin::word(plugin.state);
        print_line(&format!("{:<20} {:<12} {state:<9} {summary}", tool.name, plugin.name));
    }
    Ok(())
}

async fn call(host: &Host, name: &str, arguments: &str, session: Option<&str>, json: bool) -> Result<Exit> {
    let input: Value = serde_json::from_str(arguments).map_err(|error| {
        usage(format!("the arguments of {name} are not JSON: {error}; write them like '{{\"path\":\"a\"}}'"))
    })?;
    {
        let snapshot = host.registry.snapshot();
        let Some((_, tool)) = snapshot.tool(name) else {
            return Err(usage(format!("there is no tool {name:?}; `astrarium tool list` shows those there are")));
        };
        tool.schema.check(&input).map_err(usage)?;
    }
    let session = session.map(|id| host.store.session(id)).transpose()?;
    let context = CallContext {
        session: session.map(|session| session.id).unwrap_or_default(),
        call: "call_by_hand".into(),
        step: 0,
        agent: AgentKind::Main,
        language: if host.language() == Language::Zh { "zh".into() } else { "en".into() },
        workspace: host.options.workspace.clone(),
    };
    let skills = Arc::new(host.skills_at_hand()?);
    let mut calls = Calls::new(host.registry.clone(), Desk::default().with_skills(skills));
    calls.consent = Arc::new(Consent::new(host.asker()));
    let cancel = CancellationToken::new();
    let running = signals::run_guard(&cancel);
    let asked = Asked { id: &context.call, tool: name, input: &input, malformed: None };
    let finished = match calls.prepare(asked, &context, &cancel).await {
        Ok(ready) => calls.run(&ready, &context, &cancel).await,
        Err(finished) => finished,
    };
    drop(running);
    if json {
        let document = json!({
            "tool": name,
            "plugin": finished.plugin,
            "digest": finished.digest,
            "status": finished.status,
            "duration_us": finished.duration.as_micros() as u64,
            "parts": finished.parts,
        });
        print_line(&document.to_string());
    } else if finished.status == CallStatus::Ok {
        print_line(&plain::lines(&text_of(&finished.parts)));
    }
    if finished.status != CallStatus::Ok && !json {
        note_line(&format!("error: {}", text_of(&finished.parts)));
    }
    Ok(match finished.status {
        _ if cancel.is_cancelled() => Exit::Cancelled,
        CallStatus::Ok => Exit::Done,
        CallStatus::Failed => Exit::Failed,
        CallStatus::Refused => Exit::Refused,
    })
}
