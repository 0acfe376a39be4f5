//! One tool call, from what the model wrote to what it reads: resolve, check, judge, record, run, show, record.
//!
//! Whatever goes wrong on the way becomes a result that the model can read; a call always has exactly one. Hooks of
//! side-by-side calls run before any of them in call order ([`Calls::prepare`]), then the calls run ([`Calls::run`]). Both
//! put what was decided on the audit (`tool_call/record.rs`).

mod large;
mod permit;
mod record;

use crate::audit;
use crate::catalogue;
use crate::context::CallContext;
use crate::hooks::{Answered, Hooks, Judged, Moment};
use crate::outputs::Kept;
use crate::plugin::{Plugin, Registry, Snapshot, State, Uses};
use crate::runtime::{CallError, Desk, Guest, GuestEnv, Loaded, Services, ToolAnswer};
use crate::transcript::{CallStatus, Part};
use record::Note;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub use permit::Consent;

/// A call as the model wrote it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its id.
    pub id: &'a str,
    /// Tool name.
    pub tool: &'a str,
    /// Arguments.
    pub input: &'a Value,
    /// What the model wrote, when it was no JSON object.
    pub malformed: Option<&'a str>,
}

/// A call that may run.
pub struct Ready<'a> {
    snapshot: Arc<Snapshot>,
    loaded: Arc<Loaded>,
    env: Arc<GuestEnv>,
    /// Tool name.
    pub tool: &'a str,
    /// Arguments after the hooks.
    pub input: Cow<'a, Value>,
    /// Plugin that answers.
    pub plugin: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// Whether it may run beside others.
    pub read_only: bool,
    /// Texts of hooks for the model.
    pub contexts: Vec<String>,
    /// Digest of the arguments, where there is an audit.
    arguments: String,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub status: CallStatus,
    /// What the model reads.
    pub parts: Vec<Part>,
    /// Why, when it was refused or failed.
    pub reason: Option<String>,
    /// Plugin that answered, or was to; empty when there is none.
    pub plugin: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// Wall time of the guest.
    pub duration: Duration,
}

/// Runs calls of one session.
pub struct Calls {
    /// Where plugins are.
    pub registry: Arc<Registry>,
    /// The session's hooks.
    pub hooks: Arc<Hooks>,
    /// What its guests work with.
    pub services: Services,
    /// Who can be asked, and what was allowed for the session.
    pub consent: Arc<Consent>,
    /// The only tools that may be called now; none means all.
    pub only: Option<Narrowed>,
}

/// Tools that whoever works now is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowed {
    /// Whose `allowed-tools` it is, as the model should read it.
    pub by: String,
    /// Their names.
    pub tools: BTreeSet<String>,
}

/// The call that is meant: `call_tool` is an address and no tool, so hooks, rules, schema and record see what it names
/// (DESIGN 6). The error says how to write one.
pub fn addressed<'a>(asked: Asked<'a>) -> Result<Asked<'a>, String> {
    if asked.tool != catalogue::CALL_TOOL {
        return Ok(asked);
    }
    static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));
    let name = asked.input.get("name").and_then(Value::as_str).unwrap_or_default();
    let input = asked.input.get("input").unwrap_or(&EMPTY);
    match (name, input) {
        _ if asked.malformed.is_some() => Ok(asked),
        ("", _) => Err("name the tool: {\"name\": \"TOOL\", \"input\": {…}}; tool_search finds tools".into()),
        (catalogue::CALL_TOOL, _) => Err("call_tool cannot call itself; name the tool that you mean".into()),
        (_, Value::Object(_)) => Ok(Asked { tool: name, input, ..asked }),
        _ => Err(format!("input must be a JSON object with the arguments of {name}")),
    }
}

impl Calls {
    /// Calls and hooks of one session, whose guests find on the desk what the session has.
    pub fn new(registry: Arc<Registry>, mut desk: Desk) -> Self {
        desk.registry = Some(registry.clone());
        let services = Services { desk: Arc::new(desk), ..registry.services().clone() };
        let hooks = Arc::new(Hooks::new(registry.clone(), services.clone()));
        Self { registry, hooks, services, consent: Arc::default(), only: None }
    }

    /// Resolves, checks and judges a call. The snapshot is captured here: a swap later does not touch this call.
    async fn judge<'a>(
        &self,
        asked: Asked<'a>,
        context: &CallContext,
        cancel: &CancellationToken,
        note: &mut Note,
    ) -> Result<Ready<'a>, Finished> {
        if cancel.is_cancelled() {
            return Err(failed("the user cancelled before this call ran; it has not taken effect", None));
        }
        let asked = addressed(asked).map_err(|reason| failed(&reason, None))?;
        let snapshot = self.registry.snapshot();
        let Some((plugin, tool)) = snapshot.tool(asked.tool) else {
            return Err(failed(&unknown(&snapshot, asked.tool), None));
        };
        if let Some(Narrowed { by, tools }) = self.only.as_ref().filter(|only| !only.tools.contains(asked.tool)) {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let tools = if tools.is_empty() { "they allow none".to_owned() } else { tools.join(", ") };
            let reason = format!("{} is not among the allowed-tools of {by}: {tools}; do not retry", asked.tool);
            return Err(refused(&reason, Some(plugin)));
        }
        if !self.services.desk.reach.has(&tool.name, plugin.starts_agents()) {
            let tools = self.services.desk.reach.of(snapshot.entries(&Uses::new()));
            return Err(refused(&out_of_reach(&tool.name, &tools), Some(plugin)));
        }
        let (loaded, env) = usable(plugin).map_err(|reason| refused(&reason, Some(plugin)))?;
        if let Some(raw) = asked.malformed {
            let shown: String = raw.chars().take(200).collect();
            return Err(failed(
                &format!("the arguments are not a JSON object: {shown:?}; call again with one"),
                Some(plugin),
            ));
        }
        tool.schema.check(asked.input).map_err(|reason| failed(&reason, Some(plugin)))?;
        let arguments = note.arguments.clone();
        let judged = Judged {
            tool: &tool.name,
            read_only: tool.read_only,
            plugin: &plugin.name,
            digest: plugin.digest(),
            arguments: &arguments,
        };
        let at = Moment { snapshot: &snapshot, context, cancel };
        let (verdict, entries) = self.hooks.pre_tool_use(at, &judged, asked.input).await;
        note.entries.extend(entries);
        if verdict.mutated && self.services.audit.is_kept() {
            note.arguments = audit::digest(&verdict.input);
        }
        if let Some((gate, reason)) = &verdict.block {
            return Err(refused(&format!("refused by {gate}: {reason}"), Some(plugin)));
        }
        if verdict.mutated {
            tool.schema.check(&verdict.input).map_err(|reason| {
                refused(
                    &format!("a hook changed the arguments to ones that the tool does not take: {reason}"),
                    Some(plugin),
                )
            })?;
        }
        self.permit(at, &judged, &verdict, note).await.map_err(|reason| refused(&reason, Some(plugin)))?;
        Ok(Ready {
            input: verdict.input,
            contexts: verdict.contexts,
            plugin: plugin.name.clone(),
            digest: plugin.digest().to_owned(),
            read_only: tool.read_only,
            snapshot: snapshot.clone(),
            loaded,
            env,
            tool: asked.tool,
            arguments: note.arguments.clone(),
        })
    }

    /// Runs a call, shows the result to the hooks and bounds it.
    async fn answer(
        &self,
        ready: &Ready<'_>,
        context: &CallContext,
        cancel: &CancellationToken,
        note: &mut Note,
    ) -> Finished {
        let Ready { loaded, env, .. } = ready;
        let (services, trail, read_only) = (&self.services, &note.trail, ready.read_only);
        let guest = Guest { loaded, env, context, services, trail, read_only, cancel };
        let started = std::time::Instant::now();
        let answer = self.registry.runtime().call_tool(guest, ready.tool, &ready.input).await;
        let mut duration = started.elapsed();
        let result = match answer {
            Ok((Ok(result), stats)) => {
                duration = stats.duration;
                result
            }
            Ok((Err(reason), stats)) => {
                duration = stats.duration;
                ToolAnswer { parts: vec![Part::Text { text: reason }], is_error: true }
            }
            Err(error) => ToolAnswer { parts: vec![Part::Text { text: explain(ready.tool, &error) }], is_error: true },
        };
        let outputs = self.services.desk.outputs.as_ref();
        let bound = |answer: ToolAnswer| {
            large::bounded(answer, self.budget(), &|kind, bytes| match outputs {
                Some(outputs) => outputs.keep(&context.call, kind, bytes),
                None => Err("there is no session to keep it in".into()),
            })
        };
        let (mut shown, kept) = bound(result);
        if ready.snapshot.hooks(|exports| exports.post_tool_use.is_some()).next().is_some() {
            let at = Moment { snapshot: &ready.snapshot, context, cancel };
            let call = Answered { tool: ready.tool, input: &ready.input, arguments: &ready.arguments, duration };
            let (result, entries) = self.hooks.post_tool_use(at, call, shown).await;
            note.entries.extend(entries);
            // Hooks see what the model would, and see again whatever is read of a file. What they withheld is not kept.
            let withheld = |kept: &&Kept| !large::names(&result, &kept.path());
            kept.iter().filter(withheld).for_each(|kept| outputs.into_iter().for_each(|outputs| outputs.forget(kept)));
            shown = bound(result).0;
        }
        Finished {
            status: if shown.is_error { CallStatus::Failed } else { CallStatus::Ok },
            reason: shown.is_error.then(|| text_of(&shown.parts)),
            parts: shown.parts,
            plugin: ready.plugin.clone(),
            digest: ready.digest.clone(),
            duration,
        }
    }
}

impl Calls {
    /// Bytes of a result that the model sees at once: four of them are about a token of English.
    fn budget(&self) -> usize {
        let most = self.registry.runtime().limits().output_bytes;
        let window = self.services.desk.context().as_ref().map(|desk| desk.window);
        window.map_or(most, |window| most.min(window / 8 * 4)) as usize
    }
}

/// The code behind a tool, or why it may not run.
fn usable(plugin: &Plugin) -> Result<(Arc<Loaded>, Arc<GuestEnv>), String> {
    match (plugin.state, &plugin.code) {
        (State::Live, Some((loaded, env))) => Ok((loaded.clone(), env.clone())),
        (State::Disabled, _) => {
            Err(format!("the plugin {} is disabled by the operator; do not retry, use another tool", plugin.name))
        }
        (State::Waiting, _) if !plugin.taken_back.is_empty() => Err(format!(
            "an operator took back what the plugin {0} needs; do not retry; an operator grants it again with \
             `astrarium plugin grant {0}`",
            plugin.name
        )),
        // What it asks for is its author's text, and may be long.
        (State::Waiting, _) => Err(crate::hooks::bounded(&format!(
            "the plugin {} waits for a grant; do not retry; an operator grants it under grants: in astrarium.yaml with `{}`",
            plugin.name,
            plugin.missing.grant_lines(&plugin.name)
        ))),
        _ => Err(format!("the plugin {} could not be loaded; do not retry, use another tool", plugin.name)),
    }
}

fn out_of_reach(name: &str, tools: &[catalogue::Entry<'_>]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    format!("{name} is not among the tools of this agent; do not retry, it has {}", names.join(", "))
}

fn unknown(snapshot: &Snapshot, name: &str) -> String {
    let shown: String = name.chars().take(80).collect();
    let nearest = snapshot
        .tools()
        .map(|(_, tool)| tool.name.as_str())
        .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
    // One that is switched off from the start is not loaded, so its tools are not known.
    let off = snapshot.plugins.iter().filter(|plugin| plugin.state == State::Disabled && plugin.code.is_none());
    let off: Vec<&str> = off.map(|plugin| plugin.name.as_str()).collect();
    let off = match off.is_empty() {
        true => String::new(),
        false => format!("; the operator has disabled {}, so do not retry if it was theirs", off.join(", ")),
    };
    match nearest {
        Some(nearest) => format!("there is no tool {shown:?}; the nearest is {nearest}{off}"),
        None if !off.is_empty() => format!("there is no tool {shown:?}{off}"),
        None => format!("there is no tool {shown:?}; no plugin with tools is loaded, see `astrarium plugin list`"),
    }
}

fn explain(tool: &str, error: &CallError) -> String {
    match error {
        CallError::Cancelled => format!("the user cancelled {tool} while it ran; it may or may not have taken effect"),
        CallError::Timeout(_) | CallError::Stuck(_) => {
            format!("{tool} failed: {error} (limits: tool_ms); ask it for less")
        }
        CallError::Trap(_) | CallError::Start(_) => {
            format!("{tool} failed: {error}; do not retry with the same arguments")
        }
    }
}

fn finished(status: CallStatus, reason: &str, plugin: Option<&Arc<Plugin>>) -> Finished {
    Finished {
        status,
        parts: vec![Part::Text { text: reason.to_owned() }],
        reason: Some(reason.to_owned()),
        plugin: plugin.map(|plugin| plugin.name.clone()).unwrap_or_default(),
        digest: plugin.map(|plugin| plugin.digest().to_owned()).unwrap_or_default(),
        duration: Duration::ZERO,
    }
}

fn failed(reason: &str, plugin: Option<&Arc<Plugin>>) -> Finished {
    finished(CallStatus::Failed, reason, plugin)
}

fn refused(reason: &str, plugin: Option<&Arc<Plugin>>) -> Finished {
    finished(CallStatus::Refused, reason, plugin)
}

/// The parts as text, for people.
pub fn text_of(parts: &[Part]) -> String {
    parts.iter().map(Part::as_text).collect::<Vec<_>>().join("\n")
}
