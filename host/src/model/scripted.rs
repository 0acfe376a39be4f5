//! A model that plays a script: no network, no key, the same words every time. It judges nothing that it is asked,
//! except where a step says what to `expect`.
//!
//! ```yaml
//! name: demo                         # optional; the file's name otherwise
//! steps:                             # one for each answer, in order
//!   - say: "text to stream"          # optional, as everything below
//!     think: "reasoning to stream"
//!     calls:
//!       - tool: read_file
//!         input: { path: README.md } # an empty object otherwise
//!       - tool: grep_files
//!         malformed: '{"pattern": '  # instead of input: what a model wrote that is no JSON
//!     usage: { input: 100, output: 20, cache_read: 0, cache_write: 0 }   # estimated from sizes otherwise
//!     stop: end_turn                 # or tool_use, max_tokens, refusal, pause; tool_use otherwise where there are calls
//!     expect: "text"                 # what the user or the tool results said last must contain it
//!     fail: { status: 429, message: "slow down", kind: rate_limit_error, retry_after: 2 }   # or broken, unreachable
//!     delay_ms: 0                    # between two words
//! at_limit: "text"                   # said where no calls are allowed or wanted
//! ```
//!
//! A step that fails does so once a play and is then played; a step of nothing but `fail` fails and is passed over, so
//! that it comes before the answer of the step behind it. The position is taken from the first request (its messages
//! of the assistant, answers at the limit not counted) and moves on by one with each answer, so that a resumed session
//! goes on where it stopped.

use super::wire::arguments;
use super::{Model, ModelError, ModelEvent, Request, ToolChoice, ids};
use crate::files;
use crate::transcript::{Block, Message, Part, Reply, Role, StopReason, Usage};
use async_trait::async_trait;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

mod format;

use format::{Fail, Script, Step};

/// Said at the limit where the script has no words for it.
const AT_LIMIT: &str = "The limit of steps was reached, so this scripted answer ends here.";

/// A script that is being played.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    script: Script,
    play: Mutex<Play>,
}

/// Where the play stands.
#[derive(Debug, Default)]
struct Play {
    /// The next step; `None` before the first request.
    position: Option<usize>,
    /// Steps whose failure is over.
    failed: Vec<usize>,
}

/// What a request is answered with.
enum Cue<'a> {
    Step(usize, &'a Step),
    AtLimit,
}

/// Bytes of a script; a long session's is far below.
const LARGEST: u64 = 16 << 20;

impl Scripted {
    /// Reads the script in `path`.
    pub fn from_file(path: &Path) -> Result<Self, ModelError> {
        let wrong = |reason: String| {
            ModelError::Config(format!("cannot read the script {}: {reason}; check its path", path.display()))
        };
        let text = files::text(path, LARGEST).map_err(|error| wrong(format!("it {error}")))?;
        Self::from_str(&path.display().to_string(), &text)
    }

    /// Takes `text` as the script that errors call `name`.
    // It takes a name too and is async in nothing, so the standard trait does not fit.
    #[allow(clippy::should_implement_trait)]
    pub fn from_str(name: &str, text: &str) -> Result<Self, ModelError> {
        let script = format::parse(name, text)?;
        Ok(Self { name: format!("scripted:{name}"), script, play: Mutex::default() })
    }

    /// What comes now. A failure that is due is used up by it.
    fn cue(&self, request: &Request) -> Result<Cue<'_>, ModelError> {
        let mut play = self.play.lock().unwrap_or_else(PoisonError::into_inner);
        let mut position = play.position.unwrap_or_else(|| self.position(request));
        if request.tool_choice != ToolChoice::Auto {
            play.position = Some(position);
            return Ok(Cue::AtLimit);
        }
        loop {
            play.position = Some(position);
            let Some(step) = self.script.steps.get(position) else {
                return Err(ModelError::ScriptEnded { name: self.script.name.clone(), step: position + 1 });
            };
            match &step.fail {
                Some(fail) if !play.failed.contains(&position) => {
                    play.failed.push(position);
                    return Err(self.failure(fail));
                }
                Some(_) if step.is_only_a_failure() => position += 1,
                _ => return Ok(Cue::Step(position, step)),
            }
        }
    }

    /// The step that follows on the answers in `request`. Steps of nothing but a failure left no answer behind.
    fn position(&self, request: &Request) -> usize {
        let answers = request.messages.iter().filter(|message| message.role == Role::Assistant);
        let mut answers = answers.filter(|message| message.text() != self.at_limit()).count();
        let mut position = 0;
        while answers > 0 {
            let answered = self.script.steps.get(position).is_none_or(|step| !step.is_only_a_failure());
            answers -= usize::from(answered);
            position += 1;
        }
        position
    }

    fn at_limit(&self) -> &str {
        self.script.at_limit.as_deref().unwrap_or(AT_LIMIT)
    }

    fn failure(&self, fail: &Fail) -> ModelError {
        let url = self.name.clone();
        match fail {
            Fail::Broken => ModelError::Broken { url, reason: "the script says so".to_owned() },
            Fail::Unreachable => ModelError::Unreachable { url, reason: "the script says so".to_owned() },
            Fail::Status { status, message, kind, retry_after } => ModelError::Status {
                url,
                status: *status,
                kind: kind.clone(),
                message: message.clone(),
                cure: "the script says so",
                retry_after: *retry_after,
            },
        }
    }

    /// Plays a step.
    async fn perform(
        &self,
        position: usize,
        step: &Step,
        request: &Request,
        on_event: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Reply, ModelError> {
        if let Some(expected) = step.expect.as_ref().filter(|expected| !last_said(request).contains(*expected)) {
            return Err(ModelError::Config(format!(
                "step {} of the script {} expects {expected:?} in what was said last, which was {:?}; change the step or what leads to it",
                position + 1,
                self.script.name,
                excerpt(&last_said(request)),
            )));
        }
        let pause = Duration::from_millis(step.delay_ms);
        let mut content = Vec::new();
        if let Some(text) = step.think.clone() {
            stream(&text, ModelEvent::Thinking, pause, on_event).await;
            content.push(Block::Thinking { text, signature: None, redacted: None });
        }
        if let Some(text) = step.say.clone() {
            stream(&text, ModelEvent::Text, pause, on_event).await;
            content.push(Block::Text { text });
        }
        for (index, call) in step.calls.iter().enumerate() {
            on_event(ModelEvent::ToolUse { name: call.tool.clone() });
            content.push(Block::ToolUse {
                id: format!("call_{}_{}", position + 1, index + 1),
                name: call.tool.clone(),
                input: call.input.clone().unwrap_or_else(|| arguments("").0),
                malformed: call.malformed.clone(),
            });
        }
        let unsaid = if step.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let usage = step.usage.unwrap_or_else(|| estimate(request, &content));
        Ok(self.reply(content, step.stop.clone().unwrap_or(unsaid), usage))
    }

    fn reply(&self, content: Vec<Block>, stop: StopReason, usage: Usage) -> Reply {
        Reply { content, stop, usage, model: format!("scripted:{}", self.script.name) }
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask(&self, request: &Request, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError> {
        match self.cue(request)? {
            Cue::AtLimit => {
                let text = self.at_limit().to_owned();
                stream(&text, ModelEvent::Text, Duration::ZERO, on_event).await;
                let content = vec![Block::Text { text }];
                let usage = estimate(request, &content);
                Ok(self.reply(content, StopReason::EndTurn, usage))
            }
            Cue::Step(position, step) => {
                let mut reply = self.perform(position, step, request, on_event).await?;
                // A script that goes on behind a compaction begins to count anew.
                ids::make_unique(&mut reply.content, &request.messages);
                // Only now: a call that was dropped half way is asked again and played again.
                self.play.lock().unwrap_or_else(PoisonError::into_inner).position = Some(position + 1);
                Ok(reply)
            }
        }
    }

    async fn check(&self) -> Result<String, ModelError> {
        Ok(format!("{} plays a script of {} steps; no model is asked", self.name, self.script.steps.len()))
    }
}

/// Hands `text` on word by word.
async fn stream(
    text: &str,
    event: fn(String) -> ModelEvent,
    pause: Duration,
    on_event: &mut (dyn FnMut(ModelEvent) + Send),
) {
    for (index, word) in text.split_inclusive(char::is_whitespace).enumerate() {
        if index > 0 && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        on_event(event(word.to_owned()));
    }
}

/// What the user's side said since the model's last answer: words and results, a line each.
fn last_said(request: &Request) -> String {
    let last: Vec<&Message> = request
        .messages
        .iter()
        .rev()
        .map(|message| &**message)
        .take_while(|message| message.role == Role::User)
        .collect();
    let blocks = last.iter().rev().flat_map(|message| &message.content);
    let texts: Vec<String> = blocks
        .flat_map(|block| match block {
            Block::Text { text } => vec![text.clone()],
            Block::ToolResult { parts, .. } => parts.iter().map(Part::as_text).collect(),
            _ => Vec::new(),
        })
        .collect();
    texts.join("\n")
}

/// The first 200 characters.
fn excerpt(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Tokens as a rule of thumb has them, four bytes each; nothing is ever read from a cache.
fn estimate(request: &Request, content: &[Block]) -> Usage {
    let tokens = |json: serde_json::Result<String>| json.map_or(0, |json| json.len().div_ceil(4) as u64);
    let messages: Vec<&Message> = request.messages.iter().map(|message| &**message).collect();
    Usage {
        input: tokens(serde_json::to_string(&(&*request.tools, &*request.system, messages))),
        output: tokens(serde_json::to_string(content)),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
