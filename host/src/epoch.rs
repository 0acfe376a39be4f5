//! An epoch: what stands in front of a session's requests, rendered once and frozen, and what is news since.
//!
//! It begins at the start of a session and wherever the cache is lost anyway: compaction, `/clear`, a resume after the
//! cache's life or with another persona, config or model. A warm resume sends the very bytes again, kept by their hash.

use crate::catalogue::{self, Entry, Frozen, Reach, Told};
use crate::context::CallContext;
use crate::digest::hex;
use crate::hooks::Contributed;
use crate::memory::{self, Listing};
use crate::persona::Persona;
use crate::plugin::{Plugin, Snapshot, Uses};
use crate::prompt::effective::{Sources, Wishes, effective};
use crate::prompt::render::{self, Place};
use crate::prompt::segments::{self, ToolLine, order, own};
use crate::prompt::{Assembly, Segment, Stability, Texts, assemble, reminder};
use crate::request::{CacheLife, ToolSpec};
use crate::skill::listing::and_more;
use crate::store::{Store, StoreError};
use crate::surroundings;
use crate::tokens::{self, Tokenizer};
use crate::transcript::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::sync::Arc;

/// What a session's prompts are made of; set when it is opened.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Who the agent is.
    pub persona: Persona,
    /// What the command line wants.
    pub wishes: Wishes,
    /// The operator's own segments.
    pub notes: Vec<Segment>,
    /// Whether a custom prompt that stands alone is told how memory works.
    pub memory_mechanics: bool,
    /// Tokens that the system prompt may take.
    pub prompt_tokens: u64,
    /// The model's window, in tokens.
    pub window: u64,
    /// Whether the operator named it, so that what a server once said of it counts no more.
    pub window_named: bool,
    /// How the model counts.
    pub tokenizer: Tokenizer,
    /// How long the provider is asked to keep what it cached.
    pub cache_life: CacheLife,
    /// Tools that the agent may use.
    pub reach: Reach,
    /// The agents that it may give work to, a line each; as they were when the epoch began.
    pub agents: String,
}

/// What stands in front, as kept in the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prefix {
    /// Tools with their schemas.
    pub tools: Vec<ToolSpec>,
    /// Names of tools that are found by searching.
    pub deferred: Vec<String>,
    /// The system prompt, segment by segment, and what was dropped.
    pub prompt: Assembly,
    /// The message in front of the conversation.
    pub front: Option<String>,
    /// What was cut or left out of it, a line each.
    pub left_out: Vec<String>,
}

/// An epoch under way.
#[derive(Debug, Clone)]
pub struct Epoch {
    /// Its number in the session.
    pub number: u64,
    /// Tools, shared by all its requests.
    pub tools: Arc<[ToolSpec]>,
    /// System prompt, shared likewise.
    pub system: Arc<[String]>,
    /// The message in front.
    pub front: Option<Arc<Message>>,
    /// Tokens of the tools and of the system prompt, for the marks.
    pub sizes: (u64, u64),
    /// All of it in render order, to compare requests by.
    pub pieces: Arc<Vec<(Place, String)>>,
    told: Told,
}

/// The skills of a session, for where a tool can load them.
#[derive(Debug)]
pub struct Listed {
    /// The list.
    pub list: Segment,
    /// Their names.
    pub names: Vec<String>,
}

impl Prefix {
    /// Renders what would stand in front now; `contributed` are the segments that come from elsewhere, `skills` those that a tool
    /// can load.
    pub fn render(
        setup: &Setup,
        snapshot: &Snapshot,
        uses: &Uses,
        context: &CallContext,
        contributed: Contributed,
        skills: Listed,
    ) -> (Self, Told) {
        let texts = &setup.persona.texts;
        let entries = setup.reach.of(snapshot.entries(uses));
        let size = |entry: &Entry<'_>| tokens::tool(entry.name, entry.description, entry.schema, setup.tokenizer);
        let (Frozen { mut tools, deferred }, told) = catalogue::freeze(&entries, setup.window / 10, size);
        name_agents(&mut tools, snapshot, &setup.agents, texts);
        let loads = loads_skills(snapshot, &setup.reach);
        let list = (loads && name_skills(&mut tools, snapshot, &skills.names, texts)).then_some(skills.list);
        let lines: Vec<ToolLine<'_>> = tools
            .iter()
            .map(|tool| ToolLine {
                name: &tool.name,
                summary: entries.iter().find(|entry| entry.name == tool.name).and_then(|entry| entry.summary),
                description: &tool.description,
            })
            .collect();
        let persona = |name: &str, order, rank, (text, source): &(String, String)| Segment {
            source: source.clone(),
            ..own(name, order, Stability::Static, rank, text.clone())
        };
        let mut default = vec![
            persona("identity", order::IDENTITY, 0, &setup.persona.identity),
            segments::tools(texts, &lines, &deferred),
            persona("principles", order::PRINCIPLES, 2, &setup.persona.principles),
        ];
        default.extend(setup.notes.iter().cloned());
        default.extend(contributed.segments);
        default.extend(list);
        let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        let version_control = surroundings::version_control(&context.workspace).unwrap_or_else(|| "-".into());
        let workspace = context.workspace.display().to_string();
        let environment = segments::environment(texts, &platform, &workspace, &version_control);
        let mechanics = if setup.memory_mechanics { texts.get("memory-mechanics") } else { "" };
        let mechanics = own("memory-mechanics", order::MEMORY, Stability::Static, 4, mechanics.to_owned());
        let sources = Sources { default, context: vec![environment], memory_mechanics: vec![mechanics] };
        let mut prompt = assemble(effective(texts, &setup.wishes, sources), setup.prompt_tokens, |text| {
            tokens::text(text, setup.tokenizer)
        });
        prompt.dropped.extend(contributed.left_out);
        let (front, left_out) = front(setup, context);
        (Self { tools, deferred, prompt, front, left_out }, told)
    }

    /// Tokens of the tools and of the system prompt.
    pub fn sizes(&self, tokenizer: Tokenizer) -> (u64, u64) {
        let tool = |tool: &ToolSpec| tokens::tool(&tool.name, &tool.description, &tool.input_schema, tokenizer);
        let segments = self.prompt.segments.iter();
        let system = segments.map(|segment| tokens::text(&segment.text, tokenizer)).sum();
        (self.tools.iter().map(tool).sum(), system)
    }

    /// Everything in render order.
    pub fn pieces(&self) -> Vec<(Place, String)> {
        let tools = self.tools.iter().map(|tool| (Place::Tool(tool.name.clone()), render::tool(tool)));
        let segments = self.prompt.segments.iter();
        let segments = segments.map(|segment| (Place::Segment(segment.name.clone()), segment.text.clone()));
        let front = self.front.iter().map(|text| (Place::Front, render::message(&Message::host(text.clone()))));
        tools.chain(segments).chain(front).collect()
    }
}

/// Memories that bear on a question (SPEC 3.1), from the files in `folder`.
pub fn memory_segment(setup: &Setup, listing: &Listing, folder: &Path, question: &str) -> Segment {
    let text = memory::segment(listing, question, jiff::Timestamp::now(), &setup.persona.texts);
    let source = folder.display().to_string();
    Segment { source, ..own("memory", order::MEMORY, Stability::Session, 4, text) }
}

/// A tool that gives work to agents by name says which there are: every tool with an argument `agent` whose plugin may do so.
fn name_agents(tools: &mut [ToolSpec], snapshot: &Snapshot, agents: &str, texts: &Texts) {
    let takes_one = |tool: &ToolSpec| {
        let schema = tool.input_schema.to_value().unwrap_or_default();
        schema["properties"].get("agent").is_some()
    };
    for tool in tools.iter_mut().filter(|_| !agents.is_empty()) {
        if snapshot.tool(&tool.name).is_some_and(|(plugin, _)| plugin.starts_agents()) && takes_one(tool) {
            tool.description.push_str("\n\n");
            tool.description.push_str(&texts.fill("agents-in-tool", &[("agents", agents)]));
        }
    }
}

/// Whether an agent has a tool that loads skills, in front or found by searching: one whose plugin may do so.
pub fn loads_skills(snapshot: &Snapshot, reach: &Reach) -> bool {
    snapshot.tools().any(|(plugin, tool)| loads(plugin) && reach.has(&tool.name, plugin.starts_agents()))
}

fn loads(plugin: &Plugin) -> bool {
    plugin.code.as_ref().is_some_and(|(_, env)| env.effective.skills)
}

/// A tool that loads skills says which there are (SPEC 2.1). Answers whether there is any.
fn name_skills(tools: &mut [ToolSpec], snapshot: &Snapshot, skills: &[String], texts: &Texts) -> bool {
    let (named, more) = skills.split_at(skills.len().min(SKILLS_NAMED));
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let names = and_more(&named, more.len(), texts.language());
    for tool in tools.iter_mut().filter(|_| !skills.is_empty()) {
        if snapshot.tool(&tool.name).is_some_and(|(plugin, _)| loads(plugin)) {
            tool.description.push_str("\n\n");
            tool.description.push_str(&texts.fill("skills-in-tool", &[("names", &names)]));
        }
    }
    !skills.is_empty()
}

/// Skills that a tool's description names: the list in the prompt has them with what they are for.
const SKILLS_NAMED: usize = 50;

/// The message in front of the conversation (SPEC 1.10): instruction files, date and language. None under an override,
/// which replaces everything of ours.
fn front(setup: &Setup, context: &CallContext) -> (Option<String>, Vec<String>) {
    if setup.wishes.override_prompt.as_ref().is_some_and(|text| !text.trim().is_empty()) {
        return (None, Vec::new());
    }
    let instructions = surroundings::instructions(&context.workspace);
    let mut parts: Vec<String> = Vec::new();
    for (path, text) in &instructions.files {
        parts.push(format!("# {}\n\n{}", path.display(), text.trim()));
    }
    if !instructions.left_out.is_empty() {
        parts.push(instructions.left_out.join("\n"));
    }
    parts.push(format!("# date\n\n{}", jiff::Zoned::now().date()));
    parts.push(format!("# language\n\n{}", context.language));
    let text = setup.persona.texts.fill("user-context", &[("context", &parts.join("\n\n"))]);
    (Some(reminder(&text)), instructions.left_out)
}

/// Stands for all that a prefix is rendered from beside the tools, whose changes are news and no new prefix.
pub fn inputs(setup: &Setup, model: &str, context: &CallContext) -> String {
    let mut hash = Sha256::new();
    let mut take = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    take(env!("CARGO_PKG_VERSION"));
    take(model);
    take(&setup.persona.identity.0);
    take(&setup.persona.principles.0);
    for (name, text) in setup.persona.texts.iter() {
        take(name);
        take(text);
    }
    // Who follows the run bears on a custom prompt only: a chat goes on warm in `run`, and the other way round.
    let headless = setup.wishes.headless && setup.wishes.custom.is_some();
    take(&format!("{:?}", Wishes { headless, ..setup.wishes.clone() }));
    take(&format!("{:?} {} {} {}", setup.notes, setup.memory_mechanics, setup.prompt_tokens, setup.window));
    take(&format!("{:?}", setup.reach));
    take(&format!("{:?}", surroundings::instructions(&context.workspace)));
    take(&context.workspace.display().to_string());
    take(&context.language);
    hex(&hash.finalize())
}

impl Epoch {
    /// Begins a new epoch and puts it on record.
    pub fn begin(
        store: &Store,
        session: &str,
        reason: &str,
        inputs: &str,
        (prefix, told): (Prefix, Told),
        tokenizer: Tokenizer,
    ) -> Result<Self, StoreError> {
        let text = serde_json::to_string(&prefix).map_err(|error| StoreError::Invalid(error.to_string()))?;
        let number = store.begin_epoch(session, reason, inputs, &text)?;
        let epoch = Self::of(number, prefix, told, tokenizer);
        epoch.keep_told(store, session)?;
        Ok(epoch)
    }

    /// The last epoch of a session, when its bytes are still in the provider's cache and made from the same inputs.
    pub fn warm(store: &Store, session: &str, inputs: &str, setup: &Setup) -> Result<Option<Self>, StoreError> {
        let Some(record) = store.epoch(session, None)?.filter(|record| record.inputs == inputs) else {
            return Ok(None);
        };
        let Some(last) = store.last_request(session)?.filter(|last| last.epoch == record.number) else {
            return Ok(None);
        };
        let age = last.created.parse::<jiff::Timestamp>().map(|then| jiff::Timestamp::now().duration_since(then));
        if !age.is_ok_and(|age| age.as_secs() >= 0 && age.as_secs() < setup.cache_life.seconds() as i64) {
            return Ok(None);
        }
        // What does not read any more is rendered anew: the cache is only money.
        let (Ok(prefix), Ok(told)) = (serde_json::from_str(&record.prefix), serde_json::from_str(&record.told)) else {
            return Ok(None);
        };
        Ok(Some(Self::of(record.number, prefix, told, setup.tokenizer)))
    }

    fn of(number: u64, prefix: Prefix, told: Told, tokenizer: Tokenizer) -> Self {
        let system: Vec<String> = prefix.prompt.segments.iter().map(|segment| segment.text.clone()).collect();
        Self {
            number,
            sizes: prefix.sizes(tokenizer),
            pieces: Arc::new(prefix.pieces()),
            tools: prefix.tools.into(),
            system: system.into(),
            front: prefix.front.map(|text| Arc::new(Message::host(text))),
            told,
        }
    }

    /// Tools that are new or have changed since the model was told, as a text for it; told from now on.
    pub fn news(&mut self, snapshot: &Snapshot, reach: &Reach) -> Option<String> {
        let entries = reach.of(snapshot.entries(&Uses::new()));
        let news = catalogue::news(&mut self.told, &entries);
        (!news.is_empty()).then(|| catalogue::announce(&news))
    }

    /// Puts on record what the model was told.
    pub fn keep_told(&self, store: &Store, session: &str) -> Result<(), StoreError> {
        let told = serde_json::to_string(&self.told).map_err(|error| StoreError::Invalid(error.to_string()))?;
        store.set_told(session, self.number, &told)
    }
}
