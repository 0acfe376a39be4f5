//! The runner of other agents: each works on one assignment in a session of its own and hands back a report.
//!
//! It runs in the turn of the session that asked ([`Office::beside`]): the same loop (`turn`) with a prompt, a reach and a
//! record of its own, cancelled with that turn, and what it costs is that turn's. The guest that asked waits meanwhile. An
//! agent is told nothing of the conversation, and it can do nothing that its caller could not: hooks, permission rules
//! and the person who is asked are the same.

mod fork;
mod reach;
mod report;

use crate::assignment::{Asked, Assignment, Inbox, MOST_STEPS, Refusal, STEPS};
use crate::context::{AgentKind, CallContext};
use crate::epoch::Setup;
use crate::event::{AgentOutcome, EndReason, Event};
use crate::hooks::Hooks;
use crate::model::Model;
use crate::plugin::Registry;
use crate::price::Price;
use crate::prompt::effective::Wishes;
use crate::prompt::{Segment, reminder};
use crate::roster::{Found, Roster};
use crate::runtime::Desk;
use crate::session::{Parts, Post, Session, Summarizer};
use crate::skills::Owner;
use crate::store::{NewAgent, NewSession, Store, StoreError};
use crate::tokens::Tokenizer;
use crate::tool_call::{Consent, Narrowed};
use crate::transcript::Message;
use crate::turn::{self, Run};
use futures::stream::{FuturesUnordered, StreamExt as _};
use report::Seen;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Agents of one turn that work at once; more wait. Each asks a model, and providers limit how often.
const AT_ONCE: usize = 8;

/// What agents are made of that the operator decides. Asked when one begins.
pub trait Staff: Send + Sync {
    /// The model that goes by `name` in agent definitions (`haiku`, `claude-haiku-4-5`, `openai:qwen3`), for an agent that works
    /// for one of `own`; `stranger` when a file of the workspace names it. The error is one line: why it cannot be had.
    fn model(&self, name: &str, own: &str, stranger: bool) -> Result<Fitted, String>;

    /// The agent definitions that there are now.
    fn roster(&self) -> Roster;
}

/// A model and what depends on it.
pub struct Fitted {
    /// The model.
    pub model: Arc<dyn Model>,
    /// What its answers cost, where that is known.
    pub price: Option<Price>,
    /// Its window, in tokens.
    pub window: u64,
    /// The operator's own segments for it.
    pub notes: Vec<Segment>,
}

/// Runs the agents of one turn.
pub struct Office<'a> {
    run: &'a Run<'a>,
    session: String,
    post: Post,
    store: Arc<Store>,
    registry: Arc<Registry>,
    model: Arc<dyn Model>,
    summary_model: Option<Summarizer>,
    setup: Setup,
    workspace: PathBuf,
    max_output_tokens: u32,
    folder: PathBuf,
    price: Option<Price>,
    staff: Arc<dyn Staff>,
    hooks: Arc<Hooks>,
    consent: Arc<Consent>,
    only: Option<Narrowed>,
    desk: Arc<Desk>,
    at_once: Semaphore,
}

impl<'a> Office<'a> {
    /// For a turn of `session`.
    pub fn of(session: &Session, run: &'a Run<'a>) -> Self {
        Self {
            run,
            session: session.id.clone(),
            post: session.post.clone(),
            store: session.store.clone(),
            registry: session.calls.registry.clone(),
            model: session.model.clone(),
            summary_model: session.summary_model.clone(),
            setup: session.setup.clone(),
            workspace: session.workspace().to_owned(),
            max_output_tokens: session.max_output_tokens,
            folder: session.folder().to_owned(),
            price: session.price,
            staff: session.staff.clone(),
            hooks: session.hooks.clone(),
            consent: session.calls.consent.clone(),
            only: session.calls.only.clone(),
            desk: session.calls.services.desk.clone(),
            at_once: Semaphore::new(AT_ONCE),
        }
    }

    /// Runs the agents that guests of the turn ask for beside its work, and answers with both. Agents that still run when the
    /// work has ended are wanted by nobody any more, and have been cancelled.
    pub async fn beside<T>(&self, work: impl Future<Output = T>) -> (T, Vec<AgentOutcome>) {
        let mut inbox: Inbox = self.desk.agents.open();
        let (mut work, mut running) = (pin!(work), FuturesUnordered::new());
        let mut ended = Vec::new();
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                Some(asked) = inbox.recv() => running.push(self.take(asked)),
                Some(agent) = running.next(), if !running.is_empty() => ended.extend(agent),
            }
        };
        self.desk.agents.shut();
        drop(inbox);
        while let Some(agent) = running.next().await {
            ended.extend(agent);
        }
        (done, ended)
    }

    /// Runs one agent to its end, and hands its report to whoever waits for it.
    async fn take(&self, asked: Asked) -> Option<AgentOutcome> {
        let Asked { assignment, context, mut answer } = asked;
        // The semaphore is never closed.
        let _desk = tokio::select! {
            desk = self.at_once.acquire() => desk.ok(),
            () = answer.closed() => return None,
        };
        let (mut session, max_steps, notes) = match self.open(&assignment, &context) {
            Ok(opened) => opened,
            Err(refusal) => {
                let _ = answer.send(Err(refusal));
                return None;
            }
        };
        let seen = Seen::new(notes);
        let (id, agent) = (session.id.clone(), session.post.agent.clone());
        let sink = |event: Event| {
            seen.note(&event);
            (self.run.sink)(Event::Agent { session: id.clone(), agent: agent.clone(), event: Box::new(event) });
        };
        let cancel = self.run.cancel.child_token();
        let outcome = {
            let run = Run { max_steps, sink: &sink, cancel: &cancel };
            let mut turn = a_turn(&mut session, &assignment.task, &run);
            tokio::select! {
                outcome = &mut turn => outcome,
                () = answer.closed() => {
                    cancel.cancel();
                    turn.await
                }
            }
        };
        if outcome.reason == EndReason::Cancelled && !answer.is_closed() {
            // A person who was asked about one of its calls cancelled, and that is meant for all of the work.
            self.run.cancel.cancel();
        }
        let report = seen.report(&outcome);
        if let Err(error) = self.store.end_agent(&session.id, outcome.reason, &report.statistics) {
            tracing::warn!("how the agent {} ended is not on record: {error}", session.id);
        }
        let _ = answer.send(Ok(report));
        let post = session.post;
        Some(AgentOutcome { kind: post.kind, agent: post.agent, call: context.call, outcome })
    }

    /// The session of a new agent, the steps it has, and what its caller should know.
    fn open(&self, assignment: &Assignment, context: &CallContext) -> Result<(Session, u32, Vec<String>), Refusal> {
        if self.post.depth == 0 {
            return Err(Refusal::Denied(
                "an agent that works for another one starts no further agents (agents: depth in the config); do the work \
                 yourself"
                    .into(),
            ));
        }
        let depth = self.post.depth - 1;
        let mut notes = Vec::new();
        let found = self.definition(assignment, &mut notes)?;
        let definition = found.as_ref().map(|found| &*found.definition);
        let mut setup = self.setup.clone();
        setup.reach = self.reach(assignment, definition, depth, &mut notes)?;
        setup.wishes = Wishes::default();
        let alone = (setup.persona.texts.get("subagent").to_owned(), "built in".to_owned());
        (setup.persona.identity, setup.persona.principles) = match &found {
            None => (alone, (String::new(), String::new())),
            Some(found) => ((found.definition.body.clone(), found.file.display().to_string()), alone),
        };
        let (mut model, mut price) = (self.model.clone(), self.price);
        let wished = assignment.model.as_deref().or(definition.and_then(|definition| definition.model.as_deref()));
        let wished = wished.map(str::trim).filter(|name| !matches!(*name, "" | "inherit"));
        let stranger = match assignment.model {
            Some(_) => assignment.stranger,
            None => found.as_ref().is_some_and(|found| found.owner == Owner::Workspace),
        };
        match wished.map(|name| self.staff.model(name, self.model.name(), stranger)) {
            None => {}
            Some(Ok(fitted)) => {
                (model, price) = (fitted.model, fitted.price);
                setup.window = fitted.window;
                setup.notes = fitted.notes;
                setup.tokenizer = Tokenizer::of(model.name());
            }
            Some(Err(reason)) => notes.push(format!("{} answers instead: {reason}", model.name())),
        }
        let workspace = self.workspace.display().to_string();
        let new = NewSession {
            model: model.name(),
            workspace: &workspace,
            title: assignment.title.as_deref().unwrap_or(&assignment.task),
        };
        let agent = definition.map(|definition| definition.name.clone()).unwrap_or_default();
        let of = NewAgent { parent: &self.session, call: &context.call, kind: assignment.kind, agent: &agent };
        let failed = |error: crate::store::StoreError| Refusal::Failed(format!("the agent cannot begin: {error}"));
        let id = self.store.begin_agent(&new, &of).map_err(failed)?;
        let works_for = Some(context.clone());
        let parts = Parts {
            store: self.store.clone(),
            registry: self.registry.clone(),
            model,
            summary_model: self.summary_model.clone(),
            setup,
            workspace: self.workspace.clone(),
            max_output_tokens: self.max_output_tokens,
            price,
            post: Post { kind: assignment.kind, agent, works_for, depth },
            staff: self.staff.clone(),
            folder: self.folder.clone(),
            lock: None,
        };
        let mut session = Session::open(parts, id).map_err(failed)?;
        session.join(&self.hooks, self.consent.clone());
        session.calls.only.clone_from(&self.only);
        if let Some(definition) = definition {
            knows(&mut session, &definition.skills, &mut notes).map_err(failed)?;
        }
        let steps = assignment.max_steps.or(definition.and_then(|definition| definition.max_steps));
        let max_steps = steps.unwrap_or(STEPS).clamp(1, MOST_STEPS);
        Ok((session, max_steps, notes))
    }

    /// The definition that is meant. A skill may name an agent of another host, and gets the default one.
    fn definition(&self, assignment: &Assignment, notes: &mut Vec<String>) -> Result<Option<Found>, Refusal> {
        let Some(name) = assignment.agent.as_deref() else { return Ok(None) };
        let roster = self.staff.roster();
        let found = roster.get(name).cloned();
        if found.is_none() && assignment.kind == AgentKind::SkillFork {
            notes.push(format!("there is no agent {name} here, so the default one works"));
            return Ok(None);
        }
        let names: Vec<&str> = roster.all().map(|found| found.definition.name.as_str()).collect();
        let there = if names.is_empty() { String::new() } else { format!("there are {}, or ", names.join(", ")) };
        let unknown =
            || Refusal::NotFound(format!("there is no agent {name}; {there}leave agent out for the default one"));
        found.ok_or_else(unknown).map(Some)
    }
}

/// Puts the skills that an agent's definition names in front of its task.
fn knows(session: &mut Session, skills: &[String], notes: &mut Vec<String>) -> Result<(), StoreError> {
    for name in skills {
        match session.skills.called(name, "", session.texts()) {
            Ok(text) => drop(session.append(Message::host(reminder(&text)), None)?),
            Err(refusal) => notes.push(format!("skills: {name} is left out: {refusal}")),
        }
    }
    Ok(())
}

/// A turn of an agent; boxed, since it may run agents itself.
fn a_turn<'a>(
    session: &'a mut Session,
    task: &'a str,
    run: &'a Run<'a>,
) -> Pin<Box<dyn Future<Output = crate::event::Outcome> + Send + 'a>> {
    Box::pin(turn::run(session, task, run))
}
