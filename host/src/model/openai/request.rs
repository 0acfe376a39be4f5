//! The body of a Chat Completions request. Pure, and the same bytes for the same [`Request`].
//!
//! Invariants: `role: tool` messages stand directly behind the message that called; pictures of results follow as a
//! message of the user, since most servers take only text in a result; reasoning is never sent back.

use crate::model::merge::{Turn, merge};
use crate::model::{Request, ToolChoice};
use crate::transcript::{Block, Json, Part, Role};
use serde::Serialize;

/// What a server calls the limit of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitField {
    /// The older name, which other servers kept.
    MaxTokens,
    /// The vendor's name.
    MaxCompletionTokens,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a Json,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message {
    System {
        content: String,
    },
    User {
        content: Content,
    },
    Assistant {
        /// Null beside calls without words, which is the form that all servers take.
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

/// Words alone are a string, since some servers know no other form.
#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Words(String),
    Parts(Vec<Piece>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call {
    id: String,
    r#type: &'static str,
    function: Called,
}

#[derive(Serialize)]
struct Called {
    name: String,
    arguments: String,
}

/// The body that asks `model`.
pub(super) fn body(model: &str, limit: LimitField, request: &Request) -> Vec<u8> {
    let mut messages = Vec::new();
    let system: Vec<&str> = request.system.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    if !system.is_empty() {
        messages.push(Message::System { content: system.join("\n\n") });
    }
    let turns = merge(&request.messages, |block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Thinking { .. } => false,
        Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Image { .. } => true,
    });
    for Turn { role, blocks } in turns {
        let blocks: Vec<&Block> = blocks.iter().map(|placed| placed.block).collect();
        match role {
            Role::User => user(&blocks, &mut messages),
            Role::Assistant => messages.push(assistant(&blocks)),
        }
    }
    let tools = request.tools.iter().map(|tool| Tool {
        r#type: "function",
        function: Function { name: &tool.name, description: &tool.description, parameters: &tool.input_schema },
    });
    let of = |field| (limit == field).then_some(request.max_output_tokens);
    let body = Body {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: of(LimitField::MaxTokens),
        max_completion_tokens: of(LimitField::MaxCompletionTokens),
        tools: tools.collect(),
        messages,
        tool_choice: (!request.tools.is_empty()).then_some(match request.tool_choice {
            ToolChoice::Auto | ToolChoice::Unwanted => "auto",
            ToolChoice::None => "none",
        }),
    };
    serde_json::to_vec(&body).expect("strings, numbers and JSON values serialise")
}

fn assistant(blocks: &[&Block]) -> Message {
    let calls = blocks.iter().filter_map(|block| match block {
        Block::ToolUse { id, name, input, .. } => Some(Call {
            id: id.clone(),
            r#type: "function",
            // What was no JSON object stands here as an empty one: servers parse it, and fail on anything else.
            function: Called {
                name: name.clone(),
                arguments: if input.is_object() { input.to_string() } else { "{}".to_owned() },
            },
        }),
        _ => None,
    });
    Message::Assistant { content: words(blocks), tool_calls: calls.collect() }
}

/// The messages of a user turn: results, then what the user says with the pictures of the results before it.
fn user(blocks: &[&Block], messages: &mut Vec<Message>) {
    let mut pictures = Vec::new();
    for block in blocks {
        if let Block::ToolResult { id, parts, is_error } = block {
            let seen = pictures.len();
            pictures.extend(parts.iter().filter_map(|part| match part {
                Part::Image { media_type, data } => Some(picture(media_type, data)),
                _ => None,
            }));
            if pictures.len() > seen {
                pictures.insert(seen, Piece::Text { text: format!("Images in the result of call {id}:") });
            }
            messages.push(Message::Tool { tool_call_id: id.clone(), content: result(parts, *is_error) });
        }
    }
    if pictures.is_empty() && !blocks.iter().any(|block| matches!(block, Block::Image { .. })) {
        messages.extend(words(blocks).map(|words| Message::User { content: Content::Words(words) }));
        return;
    }
    pictures.extend(blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(Piece::Text { text: text.clone() }),
        Block::Image { media_type, data } => Some(picture(media_type, data)),
        _ => None,
    }));
    messages.push(Message::User { content: Content::Parts(pictures) });
}

/// A result in words.
fn result(parts: &[Part], is_error: bool) -> String {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Part::Image { media_type, .. } => format!("[image {media_type}: see the next user message]"),
            part => part.as_text(),
        })
        .filter(|text| !text.trim().is_empty())
        .collect();
    match (texts.join("\n\n"), is_error) {
        (text, false) if text.is_empty() => "(no output)".to_owned(),
        (text, true) if text.is_empty() => "error: the call failed and gave no reason".to_owned(),
        (text, false) => text,
        (text, true) => format!("error: {text}"),
    }
}

fn words(blocks: &[&Block]) -> Option<String> {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn picture(media_type: &str, data: &str) -> Piece {
    Piece::ImageUrl { image_url: ImageUrl { url: format!("data:{media_type};base64,{data}") } }
}

#[cfg(test)]
mod tests;
