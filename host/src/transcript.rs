//! The words of a conversation: messages, their blocks, and what an answer cost.
//!
//! Neutral between the wires: each wire translates these types and no other room knows a vendor's shapes. Nothing here
//! does I/O. Invariants that other rooms rely on: every [`Block::ToolUse`] of an assistant message is answered by
//! exactly one [`Block::ToolResult`] in the user message after it, and `system` is never a message.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, and the host on the user's side: tool results, reminders.
    User,
    /// The model.
    Assistant,
}

/// Where a message came from, so that a reminder is never taken for the user's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Typed by a person.
    User,
    /// Answered by a model.
    Model,
    /// Results of tool calls.
    Tools,
    /// Written by the host: a nudge, context of a hook, task recovery.
    Host,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Where it came from.
    pub origin: Origin,
    /// Blocks in order; never empty.
    pub content: Vec<Block>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// Never empty.
        text: String,
    },
    /// A model's reasoning, kept word for word for the wire that wants it back.
    Thinking {
        /// The reasoning; empty where the vendor hides it.
        text: String,
        /// Vendor's signature over it.
        signature: Option<String>,
        /// Encrypted reasoning that only the vendor reads.
        redacted: Option<String>,
    },
    /// The model asks for a tool.
    ToolUse {
        /// Unique within the conversation.
        id: String,
        /// Tool name as the model wrote it.
        name: String,
        /// Arguments; an empty object when `malformed` is set.
        input: Value,
        /// What the model wrote, when it was no JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        malformed: Option<String>,
    },
    /// The answer to a [`Block::ToolUse`].
    ToolResult {
        /// Id of the call.
        id: String,
        /// Parts in order; may be empty.
        parts: Vec<Part>,
        /// Whether the model should read it as an error.
        is_error: bool,
    },
    /// A picture from the user.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
        /// Base64 of the encoded bytes.
        data: String,
    },
}

/// A part of a tool result, as in the contract's `types.part`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A JSON value.
    Json {
        /// The value.
        value: Value,
    },
    /// A picture.
    Image {
        /// Media type.
        media_type: String,
        /// Base64 of the encoded bytes.
        data: String,
    },
    /// A file that can be opened later.
    File {
        /// Path as the model should use it.
        path: String,
        /// What it is.
        note: Option<String>,
    },
}

/// Tokens of one answer, as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Sent and neither read from nor written to the cache.
    pub input: u64,
    /// Answered.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Written to the provider's cache.
    pub cache_write: u64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It answered.
    Ok,
    /// It answered with an error, or failed.
    Failed,
    /// A hook, a rule, a missing grant or an operator's switch kept it from running.
    Refused,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// It declined.
    Refusal,
    /// The server paused a long answer; the same conversation goes on.
    Pause,
    /// Anything else, in the vendor's word.
    Other(String),
}

/// A whole answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Blocks in order; may be empty when a model says nothing.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it cost.
    pub usage: Usage,
    /// The model that answered, in the vendor's word.
    pub model: String,
}

impl Message {
    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, origin: Origin::User, content: vec![Block::Text { text: text.into() }] }
    }

    /// A message by the host on the user's side.
    pub fn host(text: impl Into<String>) -> Self {
        Self { role: Role::User, origin: Origin::Host, content: vec![Block::Text { text: text.into() }] }
    }

    /// The text blocks, joined by a blank line.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

impl Usage {
    /// The sum of two answers.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

/// The text blocks of `content`, joined by a blank line.
pub fn text_of(content: &[Block]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n\n")
}

impl Part {
    /// How a wire that knows only text shows this part.
    pub fn as_text(&self) -> String {
        match self {
            Part::Text { text } => text.clone(),
            Part::Json { value } => value.to_string(),
            Part::Image { media_type, data } => format!("[image {media_type}, {} base64 bytes]", data.len()),
            Part::File { path, note: Some(note) } => format!("[file {path}: {note}]"),
            Part::File { path, note: None } => format!("[file {path}]"),
        }
    }
}
