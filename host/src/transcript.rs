//! The words of a conversation: messages, their blocks, and what an answer cost.
//!
//! Neutral between the wires: each wire translates these types and no other room knows a vendor's shapes. Nothing here
//! does I/O. Invariants that other rooms rely on: every [`Block::ToolUse`] of an assistant message is answered by
//! exactly one [`Block::ToolResult`] in the user message after it, and `system` is never a message.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

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
    /// Files that a person put beside the question after it.
    Attached,
    /// Answered by a model.
    Model,
    /// Results of tool calls.
    Tools,
    /// Written by the host: a nudge, context of a hook, task recovery.
    Host,
    /// Written by the host in the place of messages that a compaction took out of the context.
    Compaction,
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
        value: Json,
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

/// One JSON value as the text it came as: what only passes through is checked once and never taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(String);

/// How deep arrays and objects may lie in one another: our readers stop at 128, and a value is stored inside of others.
pub const JSON_DEPTH: usize = 100;

impl Json {
    /// Checks that `text` is one JSON value.
    pub fn parse(text: String) -> Result<Self, String> {
        let _: &RawValue = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match json_depth(&text) {
            deep if deep > JSON_DEPTH => Err(format!("{deep} arrays and objects in one another; at most {JSON_DEPTH}")),
            _ => Ok(Self(text)),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, taken apart.
    pub fn to_value(&self) -> Result<Value, String> {
        serde_json::from_str(&self.0).map_err(|error| error.to_string())
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // By way of a value: parts are tagged, and what is tagged is read ahead, where raw text does not survive.
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// The kind of a picture that models take, told by its first bytes; none for anything else.
pub fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// How deep arrays and objects lie in one another in a text that is known to be JSON.
pub fn json_depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
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

    /// What a compaction puts in the place of messages.
    pub fn compaction(text: impl Into<String>) -> Self {
        Self { origin: Origin::Compaction, ..Self::host(text) }
    }

    /// The text blocks, joined by a blank line.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
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
            Part::Json { value } => value.as_str().to_owned(),
            Part::Image { media_type, data } => format!("[image {media_type}, {} base64 bytes]", data.len()),
            Part::File { path, note: Some(note) } => format!("[file {path}: {note}]"),
            Part::File { path, note: None } => format!("[file {path}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_passes_through_keeps_its_text_and_comes_back_from_the_record() {
        let text = r#"{ "b": [1, {"c": "]\"["}], "a": 1.50 }"#;
        let part = Part::Json { value: Json::parse(text.into()).unwrap() };
        assert_eq!(part.as_text(), text);
        let stored = serde_json::to_string(&part).unwrap();
        let Part::Json { value } = serde_json::from_str(&stored).unwrap() else { panic!("{stored}") };
        assert_eq!(value.to_value().unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert!(Json::parse("{}{}".into()).is_err() && Json::parse("".into()).is_err());
    }

    #[test]
    fn json_too_deep_to_be_read_from_the_record_again_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(json_depth(&nested(7)), 7);
        assert!(Json::parse(nested(JSON_DEPTH + 1)).is_err());
        let part = Part::Json { value: Json::parse(nested(JSON_DEPTH)).unwrap() };
        let block = Block::ToolResult { id: "1".into(), parts: vec![part], is_error: false };
        let message = Message { role: Role::User, origin: Origin::Tools, content: vec![block] };
        let stored = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
    }
}
