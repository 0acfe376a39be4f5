//! The body of a Messages request. Pure, and the same bytes for the same [`Request`], since the vendor's cache reads by
//! equal prefix.
//!
//! Invariants: never an empty block, an empty message or an empty `system`; results first in a user message; at most
//! four cache marks; reasoning goes back word for word, and only where the vendor signed it.

use crate::model::merge::{Placed, Turn, merge};
use crate::model::{Breakpoint, CacheLife, Request, ToolChoice};
use crate::transcript::{Block, Json, Part, Role};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// Cache marks that the vendor takes in one request.
const MARKS: usize = 4;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Content<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Kind>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

/// A cache mark.
#[derive(Clone, Copy, Serialize)]
struct Mark {
    r#type: &'static str,
    /// The vendor's default is five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// An object of nothing but its type.
#[derive(Serialize)]
struct Kind {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(flatten)]
    shape: Shape<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Shape<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Shape<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// The body that asks `model`.
pub(super) fn body(model: &str, request: &Request) -> Vec<u8> {
    let turns = turns(request);
    let marks = marks(request, &turns);
    let ttl = match request.cache_life {
        CacheLife::Short => None,
        CacheLife::Long => Some("1h"),
    };
    let mark = |place: Place| marks.contains(&place).then_some(Mark { r#type: "ephemeral", ttl });
    let last_tool = request.tools.len().wrapping_sub(1);
    let tools = request.tools.iter().enumerate().map(|(index, tool)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.input_schema,
        cache_control: if index == last_tool { mark(Place::Tools) } else { None },
    });
    let system = request.system.iter().enumerate().filter(|(_, text)| !blank(text)).map(|(index, text)| Content {
        shape: Shape::Text { text: text.into() },
        cache_control: mark(Place::System(index)),
    });
    let messages = turns.iter().enumerate().map(|(turn, Turn { role, blocks })| Message {
        role: match role {
            Role::User => "user",
            Role::Assistant => "assistant",
        },
        content: blocks
            .iter()
            .enumerate()
            .map(|(block, placed)| Content {
                shape: shape(placed.block),
                cache_control: mark(Place::Block(turn, block)),
            })
            .collect(),
    });
    let body = Body {
        model,
        max_tokens: request.max_output_tokens,
        stream: true,
        tools: tools.collect(),
        system: system.collect(),
        messages: messages.collect(),
        tool_choice: (!request.tools.is_empty()).then_some(Kind {
            r#type: match request.tool_choice {
                ToolChoice::Auto | ToolChoice::Unwanted => "auto",
                ToolChoice::None => "none",
            },
        }),
    };
    serde_json::to_vec(&body).expect("strings, numbers and JSON values serialise")
}

/// The turns to send. A turn of the model does not end in reasoning, which the vendor refuses: what should have
/// followed was cut off.
fn turns(request: &Request) -> Vec<Turn<'_>> {
    let mut turns = merge(&request.messages, |block| match block {
        Block::Text { text } => !blank(text),
        Block::Thinking { signature, redacted, .. } => signature.is_some() || redacted.is_some(),
        Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Image { .. } => true,
    });
    for turn in &mut turns {
        while let Some(Placed { block: Block::Thinking { .. }, .. }) = turn.blocks.last() {
            turn.blocks.pop();
        }
    }
    turns
}

/// The vendor refuses text of white space only.
fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn shape(block: &Block) -> Shape<'_> {
    match block {
        Block::Text { text } => Shape::Text { text: text.into() },
        Block::Image { media_type, data } => image(media_type, data),
        Block::Thinking { redacted: Some(data), .. } => Shape::RedactedThinking { data },
        Block::Thinking { text, signature, .. } => {
            Shape::Thinking { thinking: text, signature: signature.as_deref().unwrap_or_default() }
        }
        Block::ToolUse { id, name, input, .. } => Shape::ToolUse {
            id: word(id),
            name: word(name),
            input: if input.is_object() { Cow::Borrowed(input) } else { Cow::Owned(Value::Object(Default::default())) },
        },
        Block::ToolResult { id, parts, is_error } => {
            let mut content: Vec<Shape<'_>> = parts.iter().filter_map(|part| result_part(part, *is_error)).collect();
            if content.is_empty() && *is_error {
                // The vendor wants words with an error.
                content.push(Shape::Text { text: "the call failed and gave no reason".into() });
            }
            Shape::ToolResult { tool_use_id: word(id), content, is_error: *is_error }
        }
    }
}

/// A part of a result; in an error the vendor takes only text.
fn result_part(part: &Part, is_error: bool) -> Option<Shape<'_>> {
    match part {
        Part::Image { media_type, data } if !is_error => Some(image(media_type, data)),
        Part::Text { text } => (!blank(text)).then(|| Shape::Text { text: text.into() }),
        part => Some(Shape::Text { text: part.as_text().into() }),
    }
}

fn image<'a>(media_type: &'a str, data: &'a str) -> Shape<'a> {
    Shape::Image { source: Source { r#type: "base64", media_type, data } }
}

/// An id or a tool name in the letters that the vendor takes, `[a-zA-Z0-9_-]`. Another wire's ids and the names that a
/// model made up need not be of them, and one such word in the history would end the session.
fn word(text: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.len() <= 128 && text.chars().all(fits) {
        return Cow::Borrowed(text);
    }
    let word: String = text.chars().take(128).map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if word.is_empty() { "_".to_owned() } else { word })
}

/// Where a cache mark stands in the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Tools,
    /// Index into the request's segments.
    System(usize),
    /// Turn, and block in it.
    Block(usize, usize),
}

/// The places of the request's breakpoints. A breakpoint on something that is not sent falls back to what is sent
/// before it.
fn marks(request: &Request, turns: &[Turn<'_>]) -> Vec<Place> {
    let mut marks = Vec::new();
    for breakpoint in &request.breakpoints {
        let place = match *breakpoint {
            Breakpoint::Tools => (!request.tools.is_empty()).then_some(Place::Tools),
            Breakpoint::System(index) => {
                request.system.iter().take(index + 1).rposition(|text| !blank(text)).map(Place::System)
            }
            Breakpoint::Message(index) => block_of(turns, index),
        };
        if let Some(place) = place.filter(|place| !marks.contains(place) && marks.len() < MARKS) {
            marks.push(place);
        }
    }
    marks
}

/// The last block of message `index` that can carry a mark (reasoning cannot), or of the nearest message before it.
fn block_of(turns: &[Turn<'_>], index: usize) -> Option<Place> {
    let blocks = turns.iter().enumerate().flat_map(|(turn, Turn { blocks, .. })| {
        blocks.iter().enumerate().map(move |(block, placed)| (placed, Place::Block(turn, block)))
    });
    blocks
        .filter(|(placed, _)| placed.message <= index && !matches!(placed.block, Block::Thinking { .. }))
        .max_by_key(|(placed, _)| placed.message)
        .map(|(_, place)| place)
}

#[cfg(test)]
mod tests;
