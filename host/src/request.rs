//! The words of one question to a model: tools, system prompt and conversation, in the order in which they are rendered.
//!
//! A provider reads its cache by the longest equal prefix in that order, so what stands in front is shared and frozen, and
//! a request only points to it. No vendor's shape is known here.

use crate::transcript::{Json, Message};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Tool name.
    pub name: String,
    /// Whole description.
    pub description: String,
    /// JSON Schema of the arguments, the same bytes for the same schema.
    pub input_schema: Json,
}

/// Whether the model may call tools in this answer. The tools stay in the request either way, since taking them out
/// would change its cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// Words are wanted and calls are of no use, but the choice stays as it is in the other requests: where it changes, a
    /// provider forgets the messages that it cached.
    Unwanted,
    /// No calls: an answer in words.
    None,
}

/// A place where the provider may end a cached prefix (Anthropic: `cache_control`). At most four a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Breakpoint {
    /// After the last tool.
    Tools,
    /// After the system segment of this index.
    System(usize),
    /// After the last block of the message of this index.
    Message(usize),
}

/// One question to a model, in render order.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Tools, in the catalogue's order.
    pub tools: Arc<[ToolSpec]>,
    /// System prompt, one text a segment; the wire joins them by a blank line or sends a block each. May be empty.
    pub system: Arc<[String]>,
    /// The conversation; begins with a user message, alternates once merged, and has no orphans.
    pub messages: Vec<Arc<Message>>,
    /// Whether tools may be called.
    pub tool_choice: ToolChoice,
    /// Limit of the answer, in tokens.
    pub max_output_tokens: u32,
    /// Where cached prefixes end.
    pub breakpoints: Vec<Breakpoint>,
    /// How long the provider is to keep them.
    pub cache_life: CacheLife,
}

/// How long a provider keeps a cached prefix after it was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CacheLife {
    /// Five minutes; writing costs a quarter more than a fresh token.
    #[default]
    #[serde(rename = "5m")]
    Short,
    /// One hour; writing costs twice a fresh token.
    #[serde(rename = "1h")]
    Long,
}

impl CacheLife {
    /// In seconds.
    pub fn seconds(self) -> u64 {
        match self {
            CacheLife::Short => 300,
            CacheLife::Long => 3_600,
        }
    }
}
