//! Pieces of a new conversation: messages copied, their older results emptied, long texts cut, nothing blank left.

use super::clip::clip;
use super::texts::{Labels, placeholder};
use crate::tokens::{Tokenizer, message};
use crate::transcript::{Block, Message, Part};
use std::collections::{HashMap, HashSet};

/// Pointers to files that stay of one emptied result.
const POINTERS: usize = 4;

/// A conversation under construction and its size.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The messages.
    pub messages: Vec<Message>,
    /// Their estimated tokens.
    pub tokens: u64,
}

impl Draft {
    /// Adds a message that keeps something to say.
    pub fn push(&mut self, message: Message, tokenizer: Tokenizer) {
        let size = self::message(&message, tokenizer);
        self.push_sized(message, size);
    }

    /// Adds a message of which the size is known.
    pub fn push_sized(&mut self, message: Message, size: u64) {
        if let Some(message) = whole(message) {
            self.tokens += size;
            self.messages.push(message);
        }
    }
}

/// `message` without blank texts; nothing where nothing is left.
fn whole(mut message: Message) -> Option<Message> {
    message.content.retain(|block| !matches!(block, Block::Text { text } if text.trim().is_empty()));
    let says = message.content.iter().any(|block| !matches!(block, Block::Thinking { .. }));
    says.then_some(message)
}

/// Results that are emptied, each with its tool's name, in messages that are smaller for it.
pub(super) struct Emptied<'a> {
    by_call: HashMap<&'a str, &'a str>,
    /// Size of each message once they are.
    pub sizes: Vec<u64>,
}

impl<'a> Emptied<'a> {
    /// The results in `messages`, whose sizes are `sizes`, but for the last `keep` of them. Only what stays of a message is
    /// measured anew, so a long history costs no second count.
    pub fn of(messages: &'a [Message], sizes: &[u64], keep: usize, tokenizer: Tokenizer) -> Self {
        let count = results(messages.iter().flat_map(|message| &message.content)).count();
        let older = count.saturating_sub(keep);
        let mut emptied = Self { by_call: HashMap::new(), sizes: sizes.to_vec() };
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut seen = 0;
        for (at, message) in messages.iter().enumerate() {
            for block in &message.content {
                if let Block::ToolUse { id, name, .. } = block {
                    names.insert(id, name);
                }
            }
            let ids: Vec<(&str, &str)> = results(message.content.iter())
                .take(older - seen.min(older))
                .map(|id| (id, names.get(id).copied().unwrap_or("a tool")))
                .collect();
            seen += results(message.content.iter()).count();
            if ids.is_empty() {
                continue;
            }
            let before = emptied.by_call.len();
            emptied.by_call.extend(ids.iter().copied());
            let size = self::message(&emptied.apply(message), tokenizer);
            if size < sizes[at] {
                emptied.sizes[at] = size;
            } else if emptied.by_call.len() == before + ids.len() {
                for (id, _) in ids {
                    emptied.by_call.remove(id);
                }
            }
        }
        emptied
    }

    /// Tokens that go.
    pub fn saved(&self, sizes: &[u64]) -> u64 {
        sizes.iter().zip(&self.sizes).map(|(old, new)| old - new).sum()
    }

    /// Whether the result of this call is emptied.
    pub fn holds(&self, id: &str) -> bool {
        self.by_call.contains_key(id)
    }

    /// A copy of `message` with its results emptied.
    pub fn apply(&self, message: &Message) -> Message {
        let content = message.content.iter().map(|block| match block {
            Block::ToolResult { id, is_error, parts } => match self.by_call.get(id.as_str()) {
                Some(name) => empty(id, name, *is_error, parts),
                None => block.clone(),
            },
            _ => block.clone(),
        });
        Message { role: message.role, origin: message.origin, content: content.collect() }
    }
}

fn results<'a>(blocks: impl Iterator<Item = &'a Block>) -> impl Iterator<Item = &'a str> {
    blocks.filter_map(|block| match block {
        Block::ToolResult { id, .. } => Some(id.as_str()),
        _ => None,
    })
}

/// Pointers to files stay: what they lead to is what the result said.
fn empty(id: &str, tool: &str, is_error: bool, parts: &[Part]) -> Block {
    let files = parts.iter().filter(|part| matches!(part, Part::File { .. })).take(POINTERS).cloned();
    let parts = [Part::Text { text: placeholder(tool) }].into_iter().chain(files).collect();
    Block::ToolResult { id: id.to_owned(), parts, is_error }
}

/// A copy of `message` in which each text and each result has at most `most` tokens, and in which pictures stay only
/// where `pictures` is set.
pub(super) fn cut(message: &Message, most: u64, pictures: bool, labels: &Labels, tokenizer: Tokenizer) -> Message {
    let clip = |text: &str, most: u64| clip(text, most, &labels.clipped, tokenizer);
    let gone = || labels.image.clone();
    let content = message.content.iter().map(|block| match block {
        Block::Text { text } => Block::Text { text: clip(text, most) },
        Block::Image { .. } if !pictures => Block::Text { text: gone() },
        Block::ToolResult { id, parts, is_error } => {
            let share = most / parts.len().max(1) as u64;
            let parts = parts.iter().map(|part| match part {
                Part::Image { .. } if !pictures => Part::Text { text: gone() },
                Part::Text { text } => Part::Text { text: clip(text, share) },
                // A value that is cut is text, since half of it is no value.
                Part::Json { value } => {
                    let cut = clip(value.as_str(), share);
                    if cut == value.as_str() { part.clone() } else { Part::Text { text: cut } }
                }
                other => other.clone(),
            });
            Block::ToolResult { id: id.clone(), parts: parts.collect(), is_error: *is_error }
        }
        other => other.clone(),
    });
    Message { role: message.role, origin: message.origin, content: content.collect() }
}

/// Calls whose results stay as they are in `messages`.
pub(super) fn seen<'a>(messages: &'a [Message], emptied: Option<&Emptied<'_>>) -> HashSet<&'a str> {
    let ids = messages.iter().flat_map(|message| &message.content).filter_map(|block| match block {
        Block::ToolResult { id, .. } if !emptied.is_some_and(|emptied| emptied.holds(id)) => Some(id.as_str()),
        _ => None,
    });
    ids.collect()
}
