//! `prompt`: what stands in front of the requests, what each request shared with the one before, and where two part.

use super::show::{note_line, notice, print_line};
use super::wishes::PromptArgs;
use super::{Exit, usage};
use crate::context::{AgentKind, CallContext};
use crate::epoch::{self, Listed, Prefix};
use crate::hooks::Hooks;
use crate::host::Host;
use crate::plain;
use crate::prompt::marks::{self, marks};
use crate::prompt::render::{self, Parting, Place};
use crate::prompt::{Segment, Stability};
use crate::request::Breakpoint;
use crate::store::RequestRecord;
use crate::surroundings;
use crate::tokens::{self, Tokenizer};
use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[derive(Subcommand)]
pub(super) enum PromptCommand {
    /// Shows segments, tools, cache marks and the ledger of a session, or what a new one would begin with
    Show {
        /// The session's id, or the beginning of it; without it, a new session is shown
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// A document on standard output
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        prompt: PromptArgs,
    },
    /// Shows the first byte in which two requests of a session differ, and in which piece it lies
    Diff {
        /// Number of a request, from 1
        first: u64,
        /// Number of another
        second: u64,
        /// The session's id, or the beginning of it; without it, the last one of this workspace
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn prompt(host: &Host, command: &PromptCommand) -> Result<Exit> {
    match command {
        PromptCommand::Show { session, json, prompt } => {
            show(host, session.as_deref(), prompt, *json).await?;
        }
        PromptCommand::Diff { first, second, session, json } => {
            let id = session_id(host, session.as_deref())?;
            let parting = diff(host, &id, *first, *second)?;
            if *json {
                print_line(&serde_json::to_string_pretty(&parting)?);
            } else {
                print_parting(*first, *second, &parting);
            }
        }
    }
    Ok(Exit::Done)
}

/// Says which instruction files around the workspace are cut or left out, before work that counts on them.
pub(super) fn warn(host: &Host) {
    for line in surroundings::instructions(&host.options.workspace).left_out {
        note_line(&notice(&line));
    }
}

/// Shows a session's prompt, or what a new one would begin with.
pub(super) async fn show(host: &Host, session: Option<&str>, prompt: &PromptArgs, json: bool) -> Result<()> {
    let shown = match session {
        Some(id) => of_session(host, id)?,
        None => of_new(host, prompt).await?,
    };
    if json {
        print_line(&serde_json::to_string_pretty(&shown.document())?);
    } else {
        shown.print();
    }
    Ok(())
}

/// What `prompt show` shows.
struct Shown {
    session: Option<String>,
    /// Number, reason and time of the epoch; none for a session that has not begun.
    epoch: Option<(u64, String, String)>,
    prefix: Prefix,
    model: String,
    messages: usize,
    before: usize,
    requests: Vec<RequestRecord>,
    price: Option<crate::price::Price>,
}

async fn of_new(host: &Host, args: &PromptArgs) -> Result<Shown> {
    let (choice, _) = host.choice();
    let model = choice.name.unwrap_or_default();
    let setup = host.setup(&model, args.wishes(true)?)?;
    let context = CallContext {
        session: String::new(),
        call: String::new(),
        step: 0,
        agent: AgentKind::Main,
        language: host.language().tag().into(),
        workspace: host.options.workspace.clone(),
    };
    let uses = host.store.tool_uses()?;
    let shelf = &host.registry.services().shelf;
    let memory = epoch::memory_segment(&setup, &*shelf.list()?, shelf.folder(), "");
    let hooks = Hooks::new(host.registry.clone(), host.registry.services().clone());
    let mut contributed = hooks.segments(&context, &CancellationToken::new(), false).await;
    contributed.segments.push(memory);
    let skills = host.skills_at_hand()?;
    skills.begin_epoch(host.language())?;
    let listed = Listed { list: skills.segment(&setup.persona.texts, setup.window), names: skills.names() };
    let (prefix, _) = Prefix::render(&setup, &host.registry.snapshot(), &uses, &context, contributed, listed);
    Ok(Shown { session: None, epoch: None, prefix, model, messages: 1, before: 0, requests: Vec::new(), price: None })
}

fn of_session(host: &Host, id: &str) -> Result<Shown> {
    let session = host.store.session(id)?;
    let record = host.store.epoch(&session.id, None)?;
    let record =
        record.with_context(|| format!("session {} has asked nothing yet, so it has no prompt", session.id))?;
    let prefix = serde_json::from_str(&record.prefix)
        .with_context(|| format!("the epoch {} of session {} does not read", record.number, session.id))?;
    let requests = host.store.requests(&session.id)?;
    let last = requests.last().filter(|last| last.epoch == record.number);
    Ok(Shown {
        epoch: Some((record.number, record.reason, record.created)),
        prefix,
        // What was compacted away is on record and in no request any more.
        messages: (session.messages - last.map_or(0, |last| last.first)) as usize,
        before: last.map_or(0, |last| last.messages as usize),
        price: host.config().prices.get(&session.model).copied(),
        model: session.model,
        session: Some(session.id),
        requests,
    })
}

impl Shown {
    /// Where a mark stands, for people.
    fn place(&self, mark: &Breakpoint) -> String {
        match mark {
            Breakpoint::Tools => "the tools".into(),
            Breakpoint::System(at) => match self.prefix.prompt.segments.get(*at) {
                Some(segment) => format!("the segment {}", plain::one_line(&segment.name, 80)),
                None => format!("segment {}", at + 1),
            },
            Breakpoint::Message(at) => format!("message {}", at + 1),
        }
    }

    fn tokens(&self, text: &str) -> u64 {
        tokens::text(text, Tokenizer::of(&self.model))
    }

    fn marks(&self) -> Vec<crate::request::Breakpoint> {
        let (tools, system) = self.prefix.sizes(Tokenizer::of(&self.model));
        let ahead = usize::from(self.prefix.front.is_some());
        let parts = marks::Parts {
            tools,
            system,
            segments: self.prefix.prompt.segments.len(),
            messages: ahead + self.messages,
            before: if self.before == 0 { 0 } else { ahead + self.before },
        };
        marks(parts, marks::minimum(&self.model))
    }

    fn document(&self) -> Value {
        let segment = |segment: &Segment| {
            json!({
                "name": segment.name,
                "order": segment.order,
                "stability": segment.stability,
                "rank": segment.rank,
                "source": segment.source,
                "tokens": self.tokens(&segment.text),
                "text": segment.text,
            })
        };
        json!({
            "session": self.session,
            "model": self.model,
            "epoch": self.epoch.as_ref().map(|(number, reason, created)| {
                json!({ "number": number, "reason": reason, "created": created })
            }),
            "tools": self.prefix.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            "tool_tokens": self.prefix.sizes(Tokenizer::of(&self.model)).0,
            "deferred_tools": self.prefix.deferred,
            "segments": self.prefix.prompt.segments.iter().map(segment).collect::<Vec<_>>(),
            "turn_segments": self.prefix.prompt.turn.iter().map(segment).collect::<Vec<_>>(),
            "dropped": self.prefix.prompt.dropped,
            "front": self.prefix.front,
            "left_out": self.prefix.left_out,
            "breakpoints": self.marks(),
            "requests": self.requests,
            "cost": self.cost(),
        })
    }

    fn cost(&self) -> Option<f64> {
        let price = self.price?;
        Some(self.requests.iter().map(|request| price.of(request.usage)).sum())
    }

    fn print(&self) {
        match (&self.session, &self.epoch) {
            (Some(session), Some((number, reason, created))) => print_line(&format!(
                "session {session}, epoch {number} ({reason}), since {}",
                created.get(..16).unwrap_or_default()
            )),
            _ => print_line("a new session would begin with"),
        }
        print_line(&format!("\n{:>5}  {:<24} {:<9} {:>7}  source", "order", "segment", "stability", "tokens"));
        for segment in self.prefix.prompt.segments.iter().chain(&self.prefix.prompt.turn) {
            let stability = match &segment.stability {
                Stability::Static => "static".to_owned(),
                Stability::Session => "session".to_owned(),
                Stability::Turn(reason) => format!("turn ({})", plain::one_line(reason, 40)),
            };
            print_line(&format!(
                "{:>5}  {:<24} {stability:<9} {:>7}  {}",
                segment.order,
                plain::one_line(&segment.name, 24),
                self.tokens(&segment.text),
                plain::one_line(&segment.source, usize::MAX)
            ));
        }
        for dropped in &self.prefix.prompt.dropped {
            let reason = plain::one_line(&dropped.reason, usize::MAX);
            print_line(&format!("       {:<24} {:>17}  {reason}", plain::one_line(&dropped.name, 24), dropped.tokens));
        }
        if let Some(front) = &self.prefix.front {
            print_line(&format!("       in front of the messages: {} tokens", self.tokens(front)));
        }
        for line in &self.prefix.left_out {
            print_line(&format!("       {}", plain::one_line(line, usize::MAX)));
        }
        let (tools, _) = self.prefix.sizes(Tokenizer::of(&self.model));
        print_line(&format!("\n{} tools, {tools} tokens", self.prefix.tools.len()));
        if !self.prefix.deferred.is_empty() {
            print_line(&format!("found by tool_search: {}", self.prefix.deferred.join(", ")));
        }
        let marks: Vec<String> = self.marks().iter().map(|mark| self.place(mark)).collect();
        print_line(&format!("cache marks of the next request, on a wire that has them: after {}", marks.join(", ")));
        if self.requests.is_empty() {
            return;
        }
        print_line(&format!(
            "\n{:>7} {:>5} {:>4} {:>10} {:>7} {:>9} {:>9} {:>9} {:>9}",
            "request", "epoch", "step", "bytes", "shared", "fresh", "read", "written", "answered"
        ));
        for request in &self.requests {
            let shared = match request.bytes {
                0 => 0.0,
                bytes => request.shared_bytes as f64 * 100.0 / bytes as f64,
            };
            print_line(&format!(
                "{:>7} {:>5} {:>4} {:>10} {:>6.1}% {:>9} {:>9} {:>9} {:>9}",
                request.number,
                request.epoch,
                request.step,
                request.bytes,
                shared,
                request.usage.input,
                request.usage.cache_read,
                request.usage.cache_write,
                request.usage.output
            ));
        }
        match self.cost() {
            Some(cost) => print_line(&format!("cost: {cost:.4} by the price table")),
            None => print_line(&format!("cost: unknown; {:?} has no entry under prices: in the config", self.model)),
        }
    }
}

fn session_id(host: &Host, id: Option<&str>) -> Result<String> {
    let workspace = host.options.workspace.display().to_string();
    Ok(match id {
        Some(id) => host.store.session(id)?.id,
        None => {
            let latest = host.store.latest_session(&workspace)?;
            latest.ok_or_else(|| usage(format!("there is no session of {workspace}; name one with --session")))?.id
        }
    })
}

fn diff(host: &Host, session: &str, first: u64, second: u64) -> Result<Parting> {
    let requests = host.store.requests(session)?;
    let messages = host.store.messages(session)?;
    let whole = |number: u64| -> Result<Vec<(Place, String)>> {
        let request = requests.iter().find(|request| request.number == number).ok_or_else(|| {
            usage(format!("session {session} has no request {number}; it has {}, counted from 1", requests.len()))
        })?;
        let epoch = host.store.epoch(session, Some(request.epoch))?.context("the epoch of a request is on record")?;
        let prefix: Prefix = serde_json::from_str(&epoch.prefix)?;
        let said = messages.iter().skip(request.first as usize).take(request.messages as usize);
        let said = said.enumerate().map(|(at, message)| (Place::Message(at), render::message(message)));
        Ok(prefix.pieces().into_iter().chain(said).collect())
    };
    Ok(render::part(&whole(first)?, &whole(second)?))
}

fn print_parting(first: u64, second: u64, parting: &Parting) {
    match &parting.place {
        None => {
            print_line(&format!("one begins with the whole of the other: {} bytes are the same", parting.shared_bytes))
        }
        Some(place) => {
            print_line(&format!("{} bytes are the same; then they part in {place}", parting.shared_bytes));
            print_line(&format!("  {first}: {}", plain::one_line(&parting.first, usize::MAX)));
            print_line(&format!("  {second}: {}", plain::one_line(&parting.second, usize::MAX)));
            note_line("what comes after that byte is not read from a cache");
        }
    }
}
