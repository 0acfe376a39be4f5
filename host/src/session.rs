//! A session in memory: the transcript as stored, the frozen catalogue and prompt, and who answers.
//!
//! What is here is also on record: [`Session::append`] is the only way a message gets in. Opening a session mends a
//! transcript that was cut off between a call and its result, so that every call has exactly one.

use crate::context::{AgentKind, CallContext};
use crate::epoch::{Epoch, Setup};
use crate::hooks::{Contributed, Hooks};
use crate::model::Model;
use crate::outputs::Outputs;
use crate::plugin::Registry;
use crate::price::Price;
use crate::prompt::tasks::{self, TaskLine};
use crate::prompt::{Language, Texts};
use crate::runtime::Desk;
use crate::skills::{self, SkillSession};
use crate::store::{Store, StoreError, Task, TaskStatus};
use crate::subagent::{Fitted, Staff};
use crate::tool_call::{Calls, Consent};
use crate::transcript::{Block, Message, Origin, Part, Role, Usage};
use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod asking;
mod view;

/// On whose behalf a session works: a person's, but for what is said here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Kind of agent.
    pub kind: AgentKind,
    /// Name of its agent definition; empty for the default one.
    pub agent: String,
    /// The call that it works for.
    pub works_for: Option<CallContext>,
    /// How many agents may work for one another below it.
    pub depth: u32,
}

/// A model that writes the summaries of another one.
#[derive(Clone)]
pub struct Summarizer {
    /// Who.
    pub model: Arc<dyn Model>,
    /// Its window, in tokens.
    pub window: u64,
}

/// What a session works with.
pub struct Parts {
    /// Where it is recorded.
    pub store: Arc<Store>,
    /// Where plugins are.
    pub registry: Arc<Registry>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who writes summaries, when it is another one.
    pub summary_model: Option<Summarizer>,
    /// What its prompts are made of.
    pub setup: Setup,
    /// Where it works.
    pub workspace: PathBuf,
    /// Limit of an answer, in tokens.
    pub max_output_tokens: u32,
    /// What its answers cost, where that is known.
    pub price: Option<Price>,
    /// On whose behalf it works.
    pub post: Post,
    /// What agents below it are made of.
    pub staff: Arc<dyn Staff>,
    /// Where the files of sessions are, a folder each.
    pub folder: PathBuf,
    /// Held while the session is open, so that no other process writes to it; none for one that only another session writes
    /// to, which is locked itself.
    pub lock: Option<File>,
}

/// A session, open.
pub struct Session {
    /// Its id.
    pub id: String,
    /// Where it is recorded.
    pub store: Arc<Store>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who writes summaries, when it is another one.
    pub summary_model: Option<Summarizer>,
    /// Its hooks.
    pub hooks: Arc<Hooks>,
    /// Runs its calls.
    pub calls: Calls,
    /// What it sees of the skills.
    pub skills: Arc<SkillSession>,
    /// What its prompts are made of.
    pub setup: Setup,
    /// Limit of an answer, in tokens.
    pub max_output_tokens: u32,
    /// What its answers cost, where that is known.
    pub price: Option<Price>,
    /// On whose behalf it works.
    pub post: Post,
    /// What agents below it are made of.
    pub staff: Arc<dyn Staff>,
    /// Whether it goes on from an earlier run.
    pub resumed: bool,
    /// Whether its start has been announced to the hooks in this process.
    pub begun: bool,
    workspace: PathBuf,
    folder: PathBuf,
    /// All of the transcript; the model sees it from `view.first` on.
    messages: Vec<Arc<Message>>,
    view: view::View,
    /// Segments of plugins, as they were rendered last.
    contributed: Contributed,
    /// What stands in front of the requests; none until the first one, and after an epoch was ended.
    epoch: Option<Epoch>,
    /// Why the next epoch will begin.
    next_epoch: &'static str,
    /// The last request that was answered, to compare the next one with.
    sent: Option<asking::Sent>,
    _lock: Option<File>,
}

impl Session {
    /// Opens the session `id`, new or old.
    pub fn open(parts: Parts, id: String) -> Result<Self, StoreError> {
        let Parts { store, registry, model, summary_model, setup, workspace, max_output_tokens, price, .. } = parts;
        let Parts { post, staff, folder, lock, .. } = parts;
        let messages: Vec<Arc<Message>> = store.messages(&id)?.into_iter().map(Arc::new).collect();
        let outputs = Outputs::new(folder.join(&id), registry.runtime().limits().kept_bytes);
        let skills = Arc::new(SkillSession::open(skills::Parts {
            registry: registry.services().skills.clone(),
            store: store.clone(),
            session: id.clone(),
            workspace: workspace.clone(),
            clock: Arc::new(jiff::Timestamp::now),
            texts: setup.persona.texts.clone(),
        })?);
        let desk = Desk::default().within(setup.reach.clone()).keeping(outputs);
        let calls = Calls::new(registry, desk.with_skills(skills.clone()).with_forks());
        let (view, renewed) = view::View::open(&store, &id, model.name(), &messages, !setup.window_named)?;
        let mut session = Self {
            id,
            store,
            model,
            summary_model,
            hooks: calls.hooks.clone(),
            calls,
            skills,
            setup,
            max_output_tokens,
            price,
            post,
            staff,
            resumed: !messages.is_empty(),
            begun: false,
            workspace,
            folder,
            next_epoch: match (messages.is_empty(), renewed) {
                (true, _) => "start",
                (false, true) => "compaction",
                (false, false) => "resume",
            },
            messages,
            view,
            contributed: Contributed::default(),
            epoch: None,
            sent: None,
            _lock: lock,
        };
        session.mend()?;
        Ok(session)
    }

    /// Makes it one of the agents of another session: who can be asked and which hooks have failed too often is common to all.
    pub fn join(&mut self, hooks: &Hooks, consent: Arc<Consent>) {
        let own = Hooks::new(self.calls.registry.clone(), self.calls.services.clone());
        self.hooks = Arc::new(own.beside(hooks));
        self.calls.hooks = self.hooks.clone();
        self.calls.consent = consent;
    }

    /// Has another model answer from now on, in its own window and at its own price; answers with the one that did so far. What
    /// the operator notes on a model stays as the epoch has it.
    pub fn answered_by(&mut self, other: Fitted) -> Fitted {
        Fitted {
            model: mem::replace(&mut self.model, other.model),
            price: mem::replace(&mut self.price, other.price),
            window: mem::replace(&mut self.setup.window, other.window),
            notes: other.notes,
        }
    }

    /// Where it works.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Where the files of sessions are, a folder each.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The whole transcript. The model sees [`Session::conversation`].
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// What the host says to the model.
    pub fn texts(&self) -> &Texts {
        &self.setup.persona.texts
    }

    /// Language of our own texts.
    pub fn language(&self) -> Language {
        self.texts().language()
    }

    /// Puts a message on record, then into the conversation; answers with its place.
    pub fn append(&mut self, message: Message, usage: Option<Usage>) -> Result<u64, StoreError> {
        let seq = self.store.append(&self.id, &message, usage)?;
        self.view.add(&message);
        self.messages.push(Arc::new(message));
        Ok(seq)
    }

    /// The context of a call in `step`.
    pub fn context(&self, step: u32) -> CallContext {
        CallContext {
            session: self.id.clone(),
            call: String::new(),
            step,
            agent: self.post.kind,
            language: self.language().tag().into(),
            workspace: self.workspace.clone(),
        }
    }

    /// How many tasks are not finished.
    pub fn open_tasks(&self) -> Result<u32, StoreError> {
        let open = |task: &&Task| task.status != TaskStatus::Completed;
        Ok(self.store.tasks(&self.id)?.iter().filter(open).count() as u32)
    }

    /// The block that recalls them.
    pub fn task_recovery(&self) -> Result<String, StoreError> {
        let tasks = self.store.tasks(&self.id)?;
        let lines: Vec<TaskLine<'_>> = tasks.iter().map(Task::line).collect();
        Ok(tasks::recovery(self.texts(), &lines))
    }

    /// Whether a text stands in the conversation as a whole.
    pub fn stands(&self, text: &str) -> bool {
        let holds = |block: &Block| match block {
            Block::Text { text: own } => own.contains(text),
            Block::ToolResult { parts, .. } => parts.iter().any(|part| part.as_text().contains(text)),
            _ => false,
        };
        self.conversation().iter().flat_map(|message| &message.content).any(holds)
    }

    /// Mends what an earlier run may have left: calls without results, and skills that count as loaded while their text never
    /// arrived, was cut or was withheld by a hook.
    pub fn mend(&mut self) -> Result<(), StoreError> {
        self.mend_calls()?;
        // What a person called for just now is the question that is yet to come.
        self.skills.look_again(|loaded| loaded.call.is_none() || self.stands(loaded.text.trim()))
    }

    /// A run that was cut off leaves calls without results. Those that had ended get what is on record; the others are
    /// said to be interrupted. Nothing runs twice.
    fn mend_calls(&mut self) -> Result<(), StoreError> {
        let Some(last) = self.messages.last().filter(|message| message.role == Role::Assistant) else { return Ok(()) };
        let seq = self.messages.len() as u64 - 1;
        let records = self.store.calls(&self.id, seq)?;
        let results: Vec<Block> = last
            .content
            .iter()
            .enumerate()
            .filter_map(|(place, block)| {
                let Block::ToolUse { id, .. } = block else { return None };
                let record = records.iter().find(|record| record.place == place);
                let (parts, is_error) = match record.map(|record| &record.outcome) {
                    Some(Some((status, parts))) => (parts.clone(), *status != crate::transcript::CallStatus::Ok),
                    Some(None) => (
                        interrupted("it had begun, and may or may not have taken effect: look before you repeat it"),
                        true,
                    ),
                    None => (interrupted("it had not begun"), true),
                };
                Some(Block::ToolResult { id: id.clone(), parts, is_error })
            })
            .collect();
        if !results.is_empty() {
            self.append(Message { role: Role::User, origin: Origin::Tools, content: results }, None)?;
        }
        Ok(())
    }
}

fn interrupted(what: &str) -> Vec<Part> {
    vec![Part::Text { text: format!("the run was interrupted before this call was answered; {what}") }]
}
