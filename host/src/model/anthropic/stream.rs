//! The events of a Messages stream, put together into one reply. Pure.
//!
//! Invariants: events, blocks and deltas of a type that is not known here are skipped, as the vendor asks of clients;
//! nothing is an answer before `message_stop`.

use crate::model::ModelEvent;
use crate::model::wire::arguments;
use crate::transcript::{Block, Reply, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a stream is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// It makes no sense.
    Broken(String),
    /// The vendor sent an error after it had begun.
    Refused {
        /// Its type.
        kind: String,
        /// Its words.
        message: String,
    },
}

/// The status that the vendor documents for an error type, since an error inside a stream comes without one.
pub(super) fn status(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "conflict_error" => 409,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        // `api_error`, and what is yet to come.
        _ => 500,
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Opening,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    MessageDelta {
        delta: End,
        usage: Option<Counts>,
    },
    MessageStop,
    Error {
        error: Error,
    },
    /// `ping`, `content_block_stop` (a block is whole when the message is), and what is not known here.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    model: String,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Opening {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Counts are running totals; the last one said is the one that holds.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    message: String,
}

/// A block that is being written.
enum Open {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    ToolUse {
        id: String,
        name: String,
        /// From the opening: vendors send it empty, some others whole.
        input: Value,
        json: String,
    },
    /// Of a type that is not known here.
    Skipped,
}

/// What has come so far.
#[derive(Default)]
pub(super) struct Answer {
    model: Option<String>,
    usage: Usage,
    stop: Option<StopReason>,
    blocks: BTreeMap<u64, Open>,
}

impl Answer {
    /// Takes one event in; true when it was the last.
    pub fn read(&mut self, data: &str, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<bool, Fault> {
        let event = serde_json::from_str(data)
            .map_err(|error| Fault::Broken(format!("an event is not of the Messages API ({error})")))?;
        match event {
            Event::MessageStart { message } => {
                self.model = Some(message.model);
                self.count(message.usage);
            }
            Event::ContentBlockStart { index, content_block } => self.open(index, content_block, on_event),
            Event::ContentBlockDelta { index, delta } => self.extend(index, delta, on_event)?,
            Event::MessageDelta { delta, usage } => {
                if let Some(reason) = delta.stop_reason {
                    self.stop = Some(stop_reason(reason));
                }
                self.count(usage);
            }
            Event::MessageStop if self.model.is_none() => {
                return Err(Fault::Broken("message_stop came without message_start".to_owned()));
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(Fault::Refused { kind: error.r#type, message: error.message }),
            Event::Other => {}
        }
        Ok(false)
    }

    /// The reply; `asked` names the model where the server did not.
    pub fn reply(self, asked: &str) -> Reply {
        let content: Vec<Block> = self.blocks.into_values().filter_map(closed).collect();
        let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let unsaid = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        Reply {
            content,
            stop: self.stop.unwrap_or(unsaid),
            usage: self.usage,
            model: self.model.filter(|model| !model.is_empty()).unwrap_or_else(|| asked.to_owned()),
        }
    }

    fn open(&mut self, index: u64, opening: Opening, on_event: &mut (dyn FnMut(ModelEvent) + Send)) {
        let open = match opening {
            Opening::Text { text } => {
                say(&text, ModelEvent::Text, on_event);
                Open::Text(text)
            }
            Opening::Thinking { thinking, signature } => {
                say(&thinking, ModelEvent::Thinking, on_event);
                Open::Thinking { text: thinking, signature }
            }
            Opening::RedactedThinking { data } => Open::Redacted(data),
            Opening::ToolUse { id, name, input } => {
                on_event(ModelEvent::ToolUse { name: name.clone() });
                Open::ToolUse { id, name, input, json: String::new() }
            }
            Opening::Other => Open::Skipped,
        };
        self.blocks.insert(index, open);
    }

    fn extend(&mut self, index: u64, delta: Delta, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<(), Fault> {
        let Some(open) = self.blocks.get_mut(&index) else {
            return Err(Fault::Broken(format!("block {index} goes on without having begun")));
        };
        match (open, delta) {
            (Open::Text(text), Delta::Text { text: more }) => {
                text.push_str(&more);
                say(&more, ModelEvent::Text, on_event);
            }
            (Open::Thinking { text, .. }, Delta::Thinking { thinking }) => {
                text.push_str(&thinking);
                say(&thinking, ModelEvent::Thinking, on_event);
            }
            (Open::Thinking { signature, .. }, Delta::Signature { signature: more }) => signature.push_str(&more),
            (Open::ToolUse { json, .. }, Delta::InputJson { partial_json }) => json.push_str(&partial_json),
            // Citations and what is yet to come.
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, counts: Option<Counts>) {
        let counts = counts.unwrap_or_default();
        let set = |mine: &mut u64, said: Option<u64>| *mine = said.unwrap_or(*mine);
        set(&mut self.usage.input, counts.input_tokens);
        set(&mut self.usage.output, counts.output_tokens);
        set(&mut self.usage.cache_read, counts.cache_read_input_tokens);
        set(&mut self.usage.cache_write, counts.cache_creation_input_tokens);
    }
}

fn say(text: &str, event: fn(String) -> ModelEvent, on_event: &mut (dyn FnMut(ModelEvent) + Send)) {
    if !text.is_empty() {
        on_event(event(text.to_owned()));
    }
}

fn stop_reason(word: String) -> StopReason {
    match word.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Other(word),
    }
}

/// The finished block; none where nothing was said.
fn closed(open: Open) -> Option<Block> {
    let some = |text: String| (!text.is_empty()).then_some(text);
    match open {
        Open::Text(text) => some(text).map(|text| Block::Text { text }),
        Open::Thinking { text, signature } if text.is_empty() && signature.is_empty() => None,
        Open::Thinking { text, signature } => {
            Some(Block::Thinking { text, signature: some(signature), redacted: None })
        }
        Open::Redacted(data) => Some(Block::Thinking { text: String::new(), signature: None, redacted: Some(data) }),
        Open::ToolUse { id, name, input, json } => {
            let (input, malformed) = match input {
                Value::Object(map) if json.is_empty() => (Value::Object(map), None),
                _ => arguments(&json),
            };
            Some(Block::ToolUse { id, name, input, malformed })
        }
        Open::Skipped => None,
    }
}

#[cfg(test)]
mod tests;
