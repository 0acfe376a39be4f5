//! The chunks of a Chat Completions stream, put together into one reply. Pure.
//!
//! Servers that call themselves compatible differ most in tool calls: they leave out indexes or ids, repeat them, or
//! send a call whole. Which piece belongs to which call is decided in [`Answer::call_for`] only.

use crate::model::wire::{Words, arguments, words_of};
use crate::model::{ModelEvent, ids};
use crate::transcript::{Block, Message, Reply, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Why a stream is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// It makes no sense.
    Broken(String),
    /// The server sent an error after it had begun.
    Refused {
        /// The status that the server names, or that fits its type.
        status: u16,
        /// Its words.
        words: Words,
    },
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    /// A string, or with some servers a list of parts.
    content: Option<Value>,
    refusal: Option<String>,
    /// DeepSeek, vLLM, llama.cpp.
    reasoning_content: Option<String>,
    /// OpenRouter, Ollama.
    reasoning: Option<String>,
    tool_calls: Option<Vec<Piece>>,
}

#[derive(Deserialize)]
struct Piece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize, Default)]
struct Function {
    name: Option<String>,
    /// A string, or with some servers the object itself.
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

/// A tool call that is being written.
#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Whether [`ModelEvent::ToolUse`] was sent, which waits for the name to be whole.
    told: bool,
}

/// What has come so far.
#[derive(Default)]
pub(super) struct Answer {
    model: String,
    thinking: String,
    text: String,
    refused: bool,
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Usage,
}

impl Answer {
    /// Takes one chunk in.
    pub fn read(&mut self, data: &str, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<(), Fault> {
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| Fault::Broken(format!("a chunk is not of Chat Completions ({error})")))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Fault::Refused { status: status(&error), words: words_of(error.to_string().as_bytes()) });
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        if let Some(counts) = chunk.usage {
            self.usage = usage(&counts);
        }
        for choice in chunk.choices.unwrap_or_default() {
            // One answer is asked for, so any further one is not ours.
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.extend(delta, on_event);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason);
            }
        }
        Ok(())
    }

    /// Whether the server said why it stopped.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The reply; `asked` names the model where the server did not. An id that is missing, or that stands in `earlier`
    /// already, is made anew, since ids are unique within a conversation.
    pub fn reply(
        mut self,
        asked: &str,
        earlier: &[Arc<Message>],
        on_event: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Reply {
        self.calls.retain(|call| !call.name.is_empty() || !call.arguments.is_empty());
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(Block::Thinking { text: self.thinking, signature: None, redacted: None });
        }
        if !self.text.is_empty() {
            content.push(Block::Text { text: self.text });
        }
        let stop = stop_reason(self.finish.unwrap_or_default(), !self.calls.is_empty(), self.refused);
        for call in &mut self.calls {
            call.tell(on_event);
            let (input, malformed) = arguments(&call.arguments);
            content.push(Block::ToolUse {
                id: std::mem::take(&mut call.id),
                name: std::mem::take(&mut call.name),
                input,
                malformed,
            });
        }
        ids::make_unique(&mut content, earlier);
        let model = if self.model.is_empty() { asked.to_owned() } else { self.model };
        Reply { content, stop, usage: self.usage, model }
    }

    fn extend(&mut self, delta: Delta, on_event: &mut (dyn FnMut(ModelEvent) + Send)) {
        let thinking = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty());
        if let Some(thinking) = thinking {
            self.thinking.push_str(&thinking);
            on_event(ModelEvent::Thinking(thinking));
        }
        let refusal = delta.refusal.unwrap_or_default();
        self.refused |= !refusal.is_empty();
        let text = delta.content.as_ref().map(said).unwrap_or_default() + &refusal;
        if !text.is_empty() {
            self.text.push_str(&text);
            on_event(ModelEvent::Text(text));
        }
        for piece in delta.tool_calls.unwrap_or_default() {
            let function = piece.function.unwrap_or_default();
            let name = function.name.unwrap_or_default();
            let arguments = match function.arguments {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text,
                Some(value) => value.to_string(),
            };
            let id = piece.id.unwrap_or_default();
            let call = self.call_for(piece.index, &id, &name, &arguments);
            if call.id.is_empty() {
                call.id = id;
            }
            // A name in pieces has no arguments yet; a name that comes again is a server repeating itself.
            if call.name.is_empty() || (call.arguments.is_empty() && call.name != name) {
                call.name.push_str(&name);
            }
            call.arguments.push_str(&arguments);
            if !call.arguments.is_empty() {
                call.tell(on_event);
            }
        }
    }

    /// The call that a piece belongs to, a new one if to none.
    fn call_for(&mut self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> &mut Call {
        let found = match index {
            // The newest, since a server that counts wrongly gives several calls one index.
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => {
                self.calls.iter().rposition(|call| call.id == id).or_else(|| self.calls.len().checked_sub(1))
            }
            None => self.calls.len().checked_sub(1),
        };
        let position = found.filter(|&position| !begins_another(&self.calls[position], index, id, name, arguments));
        let position = position.unwrap_or_else(|| {
            self.calls.push(Call { index, ..Call::default() });
            self.calls.len() - 1
        });
        &mut self.calls[position]
    }
}

/// Whether a piece that seems to go on with `call` begins another: it has a name, and an id of its own, or arguments
/// although those of `call` are whole, or it has another name and nothing that says where it belongs.
fn begins_another(call: &Call, index: Option<u64>, id: &str, name: &str, arguments: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    if !id.is_empty() && !call.id.is_empty() {
        return id != call.id;
    }
    let whole = serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments).is_ok();
    (whole && (!arguments.is_empty() || name != call.name)) || (index.is_none() && name != call.name)
}

impl Call {
    fn tell(&mut self, on_event: &mut (dyn FnMut(ModelEvent) + Send)) {
        if !std::mem::replace(&mut self.told, true) {
            on_event(ModelEvent::ToolUse { name: self.name.clone() });
        }
    }
}

/// The words of a `content`.
fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        _ => String::new(),
    }
}

fn stop_reason(word: String, calls: bool, refused: bool) -> StopReason {
    match word.as_str() {
        // Some servers say `stop` beside calls, and some `tool_calls` without any.
        "stop" | "tool_calls" | "function_call" if calls => StopReason::ToolUse,
        "stop" if refused => StopReason::Refusal,
        "stop" | "tool_calls" | "function_call" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        _ => StopReason::Other(word),
    }
}

/// The server counts what it read from its cache among the prompt; we do not.
fn usage(counts: &Counts) -> Usage {
    let prompt = counts.prompt_tokens.unwrap_or(0);
    let cached = counts.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens).unwrap_or(0);
    Usage {
        input: prompt.saturating_sub(cached),
        output: counts.completion_tokens.unwrap_or(0),
        cache_read: cached,
        cache_write: 0,
    }
}

/// The status of an error inside a stream: the number that some servers put into `code`, or what fits its type.
fn status(error: &Value) -> u16 {
    let number = |name: &str| match error.get(name)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let said = number("code").or_else(|| number("status")).and_then(|code| u16::try_from(code).ok());
    if let Some(code) = said.filter(|code| (400..=599).contains(code)) {
        return code;
    }
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match format!("{} {}", word("type"), word("code")) {
        words if words.contains("rate_limit") || words.contains("quota") => 429,
        words if words.contains("auth") || words.contains("api_key") => 401,
        words if words.contains("invalid_request") || words.contains("context_length") => 400,
        words if words.contains("overloaded") || words.contains("unavailable") => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests;
