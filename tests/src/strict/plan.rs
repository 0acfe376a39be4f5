//! Planned answers, written out as either vendor streams them, or as networks and failing servers tear them.

use super::{Wire, json_response};
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use std::io;

/// One planned answer.
#[derive(Debug, Clone)]
pub enum Plan {
    /// A stream.
    Said(Said),
    /// An error status in the vendor's shape.
    Status {
        /// HTTP status.
        status: u16,
        /// The vendor's error type.
        kind: &'static str,
        /// The vendor's words.
        message: String,
        /// The header of that name.
        retry_after: Option<&'static str>,
    },
    /// Anything else, such as a page of a proxy.
    Raw {
        /// HTTP status.
        status: u16,
        /// Content type.
        content_type: &'static str,
        /// The body.
        body: String,
    },
}

/// A streamed answer. The same one reads equally on both wires, except that only Anthropic signs reasoning.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// What is said.
    pub pieces: Vec<Piece>,
    /// What it costs.
    pub usage: Usage,
    /// Whether it ends at the limit of the answer.
    pub at_limit: bool,
    /// How the bytes look.
    pub form: Form,
}

/// A piece of an answer.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Reasoning and its signature.
    Thinking(&'static str, &'static str),
    /// Encrypted reasoning; left out on the OpenAI wire.
    Redacted(&'static str),
    /// Words.
    Text(&'static str),
    /// Id, tool and the arguments as the model writes them.
    Call(&'static str, &'static str, &'static str),
}

impl Piece {
    /// What the model wrote of it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'static str> + use<> {
        match self {
            Piece::Thinking(text, _) | Piece::Redacted(text) | Piece::Text(text) => [*text, ""],
            Piece::Call(_, name, arguments) => [*name, *arguments],
        }
        .into_iter()
    }
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Neither read from nor written to a cache.
    pub input: u64,
    /// Answered.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache; only Anthropic counts it.
    pub cache_write: u64,
}

/// How the bytes of a stream look.
#[derive(Debug, Clone, Default)]
pub struct Form {
    /// Lines end in CR LF.
    pub crlf: bool,
    /// A comment before each event.
    pub comments: bool,
    /// `data:` without a space behind it.
    pub tight: bool,
    /// Bytes of a network chunk; a whole event otherwise. 1 cuts every character of more bytes.
    pub chunk: Option<usize>,
    /// The connection is lost after so many bytes.
    pub cut: Option<usize>,
    /// The stream ends after so many bytes, without an error.
    pub end: Option<usize>,
    /// Nothing more comes after so many bytes, and the connection stays.
    pub stall: Option<usize>,
    /// After so many events comes an error of this type with these words, and the end.
    pub error: Option<(usize, &'static str, &'static str)>,
}

impl Said {
    /// An answer of these pieces.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { pieces: pieces.into_iter().collect(), ..Self::default() }
    }

    /// The same in another form.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// The same at this cost.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The same, cut off by the limit of the answer.
    pub fn at_limit(mut self) -> Self {
        self.at_limit = true;
        self
    }

    /// The bytes of the whole stream, so that a test can cut them everywhere.
    pub fn bytes(&self, wire: Wire) -> Vec<u8> {
        self.frames(wire).concat()
    }

    /// The events as bytes.
    fn frames(&self, wire: Wire) -> Vec<Vec<u8>> {
        let mut events = match wire {
            Wire::Anthropic => anthropic(self),
            Wire::OpenAi => openai(self),
        };
        if let Some((after, kind, message)) = self.form.error {
            events.truncate(after);
            events.push(match wire {
                Wire::Anthropic => {
                    let error = json!({"type": "error", "error": {"type": kind, "message": message}});
                    ("error".to_owned(), error.to_string())
                }
                Wire::OpenAi => (String::new(), json!({"error": {"message": message, "type": kind}}).to_string()),
            });
        }
        let Form { crlf, comments, tight, .. } = self.form;
        let end = if crlf { "\r\n" } else { "\n" };
        let space = if tight { "" } else { " " };
        let write = |(event, data): (String, String)| {
            let comment = if comments { format!(": 晴れ{end}{end}") } else { String::new() };
            let event = if event.is_empty() { event } else { format!("event:{space}{event}{end}") };
            format!("{comment}{event}data:{space}{data}{end}{end}").into_bytes()
        };
        events.into_iter().map(write).collect()
    }

    fn respond(&self, wire: Wire) -> Response {
        let Form { chunk, cut, end, stall, .. } = self.form;
        let length = cut.or(end).or(stall);
        let mut frames = self.frames(wire);
        if chunk.is_some() || length.is_some() {
            let mut bytes = frames.concat();
            bytes.truncate(length.unwrap_or(bytes.len()));
            frames = bytes.chunks(chunk.unwrap_or(512)).map(<[u8]>::to_vec).collect();
        }
        let frames = stream::iter(frames.into_iter().map(|frame| Ok(Bytes::from(frame))));
        let rest: BoxStream<'static, io::Result<Bytes>> = if cut.is_some() {
            // The pause lets the server write out what came before.
            stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("planned to be lost"))
            })
            .boxed()
        } else if stall.is_some() {
            stream::pending().boxed()
        } else {
            stream::empty().boxed()
        };
        // A pause lets each frame leave on its own, as an answer that is being thought out does.
        let paced = frames.then(|frame| async {
            tokio::task::yield_now().await;
            frame
        });
        let mut response = Response::new(Body::from_stream(paced.chain(rest)));
        let kind = "text/event-stream; charset=utf-8".parse().expect("a constant");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

impl From<Said> for Plan {
    fn from(said: Said) -> Self {
        Plan::Said(said)
    }
}

impl Plan {
    /// The reasoning that this answer signs.
    pub(super) fn signed(&self) -> Vec<String> {
        let Plan::Said(said) = self else { return Vec::new() };
        let signed = said.pieces.iter().filter_map(|piece| match piece {
            Piece::Thinking(text, signature) => Some(format!("{signature}:{text}")),
            Piece::Redacted(data) => Some((*data).to_owned()),
            _ => None,
        });
        signed.collect()
    }

    /// The answer on the wire that asked.
    pub(super) fn respond(&self, wire: Wire) -> Response {
        match self {
            Plan::Said(said) => said.respond(wire),
            Plan::Status { status, kind, message, retry_after } => {
                let body = match wire {
                    Wire::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
                    Wire::OpenAi => json!({"error": {"message": message, "type": kind, "param": null, "code": null}}),
                };
                json_response(*status, &body, *retry_after)
            }
            Plan::Raw { status, content_type, body } => {
                let mut response = Response::new(Body::from(body.clone()));
                *response.status_mut() = StatusCode::from_u16(*status).expect("tests plan real statuses");
                let kind = content_type.parse().expect("tests plan real types");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response
            }
        }
    }
}

/// `text` in pieces of a few characters, as a model writes it.
fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(5).map(|piece| piece.iter().collect()).collect()
}

fn calls(said: &Said) -> bool {
    said.pieces.iter().any(|piece| matches!(piece, Piece::Call(..)))
}

/// The events of the Messages API.
fn anthropic(said: &Said) -> Vec<(String, String)> {
    let Usage { input, output, cache_read, cache_write } = said.usage;
    let mut events = vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "strict-1", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input, "cache_creation_input_tokens": cache_write,
                      "cache_read_input_tokens": cache_read, "output_tokens": 1},
        }}),
        json!({"type": "ping"}),
    ];
    for (index, piece) in said.pieces.iter().enumerate() {
        let (block, deltas): (Value, Vec<Value>) = match piece {
            Piece::Thinking(text, signature) => {
                let texts = pieces(text).into_iter().map(|text| json!({"type": "thinking_delta", "thinking": text}));
                let signature = json!({"type": "signature_delta", "signature": signature});
                (json!({"type": "thinking", "thinking": "", "signature": ""}), texts.chain([signature]).collect())
            }
            Piece::Redacted(data) => (json!({"type": "redacted_thinking", "data": data}), Vec::new()),
            Piece::Text(text) => {
                let texts = pieces(text).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
                (json!({"type": "text", "text": ""}), texts.collect())
            }
            Piece::Call(id, name, arguments) => {
                let json = [String::new()].into_iter().chain(pieces(arguments));
                let json = json.map(|json| json!({"type": "input_json_delta", "partial_json": json}));
                (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), json.collect())
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let stop = if said.at_limit {
        "max_tokens"
    } else if calls(said) {
        "tool_use"
    } else {
        "end_turn"
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
                       "usage": {"output_tokens": output}}));
    events.push(json!({"type": "message_stop"}));
    let named = |event: Value| (event["type"].as_str().unwrap_or_default().to_owned(), event.to_string());
    events.into_iter().map(named).collect()
}

/// The chunks of Chat Completions.
fn openai(said: &Said) -> Vec<(String, String)> {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "strict-1", "usage": null,
               "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]})
    };
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": "", "refusal": null}), None)];
    let mut call = 0;
    for piece in &said.pieces {
        match piece {
            Piece::Thinking(text, _) => {
                chunks.extend(pieces(text).into_iter().map(|text| chunk(json!({"reasoning_content": text}), None)));
            }
            Piece::Redacted(_) => {}
            Piece::Text(text) => {
                chunks.extend(pieces(text).into_iter().map(|text| chunk(json!({"content": text}), None)));
            }
            Piece::Call(id, name, arguments) => {
                let function = json!({"name": name, "arguments": ""});
                let first = json!({"index": call, "id": id, "type": "function", "function": function});
                chunks.push(chunk(json!({"tool_calls": [first]}), None));
                for arguments in pieces(arguments) {
                    let more = json!({"index": call, "function": {"arguments": arguments}});
                    chunks.push(chunk(json!({"tool_calls": [more]}), None));
                }
                call += 1;
            }
        }
    }
    chunks.push(chunk(
        json!({}),
        Some(if said.at_limit {
            "length"
        } else if calls(said) {
            "tool_calls"
        } else {
            "stop"
        }),
    ));
    let Usage { input, output, cache_read, cache_write } = said.usage;
    let prompt = input + cache_read + cache_write;
    chunks.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "strict-1",
        "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
                                 "prompt_tokens_details": {"cached_tokens": cache_read}}}));
    let mut events: Vec<(String, String)> = chunks.iter().map(|chunk| (String::new(), chunk.to_string())).collect();
    events.push((String::new(), "[DONE]".to_owned()));
    events
}
