//! Token counts of texts, messages and tool schemas: estimates for each script, set right by the provider's own counts. Pure.
//!
//! An estimate is one walk over the characters and allocates nothing that grows with them. It follows the way a
//! tokenizer cuts text (words, runs of one script, groups of digits) with weights fitted to real ones; a test holds it
//! within a tenth of their counts on each script. [`Gauge`] prefers what a provider counted to any estimate.

mod gauge;
mod image;
mod scan;

pub use gauge::Gauge;
pub use image::pixels;
pub use scan::{Counter, Tokenizer};

use crate::transcript::{Block, Json, Message, Part};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;

/// Tokens of a message's own frame: role and separators, as vendors document three to four.
const MESSAGE: u64 = 4;
/// Tokens of the frame of a call or of its result: tags, ids and the name's own marks.
const CALL: u64 = 14;
/// Tokens of the frame of one tool in the catalogue.
const TOOL: u64 = 12;

/// Tokens of a text.
pub fn text(text: &str, tokenizer: Tokenizer) -> u64 {
    let mut counter = Counter::new(tokenizer);
    counter.feed(text);
    counter.tokens()
}

/// Tokens of a message with its frame.
pub fn message(message: &Message, tokenizer: Tokenizer) -> u64 {
    MESSAGE + message.content.iter().map(|block| self::block(block, tokenizer)).sum::<u64>()
}

/// Tokens of a block.
pub fn block(block: &Block, tokenizer: Tokenizer) -> u64 {
    match block {
        Block::Text { text } => self::text(text, tokenizer),
        // A signature and encrypted reasoning are not text; the provider counts the reasoning behind them, whose size
        // goes with theirs: four bytes of base64 hold three, and those about one token.
        Block::Thinking { text, redacted, .. } => {
            self::text(text, tokenizer) + redacted.as_ref().map_or(0, |data| data.len() as u64 / 4)
        }
        Block::ToolUse { id: _, name, input, malformed } => {
            let mut counter = Counter::new(tokenizer);
            counter.feed(name);
            match malformed {
                Some(raw) => counter.feed(raw),
                None => feed_json(&mut counter, input),
            }
            CALL + counter.tokens()
        }
        Block::ToolResult { parts, .. } => CALL + parts.iter().map(|part| self::part(part, tokenizer)).sum::<u64>(),
        Block::Image { media_type: _, data } => image::tokens(data, tokenizer),
    }
}

/// Tokens of a part of a tool's result.
pub fn part(part: &Part, tokenizer: Tokenizer) -> u64 {
    let mut counter = Counter::new(tokenizer);
    match part {
        Part::Text { text } => counter.feed(text),
        Part::Json { value } => counter.feed(value.as_str()),
        Part::Image { data, .. } => return image::tokens(data, tokenizer),
        Part::File { path, note } => {
            // As `Part::as_text` writes it; writing to a counter cannot fail.
            let _ = write!(counter, "[file {path}: {}]", note.as_deref().unwrap_or_default());
        }
    }
    counter.tokens()
}

/// Tokens of a tool in the catalogue: its name, description and schema.
pub fn tool(name: &str, description: &str, schema: &Json, tokenizer: Tokenizer) -> u64 {
    let mut counter = Counter::new(tokenizer);
    counter.feed(name);
    counter.feed("\n");
    counter.feed(description);
    counter.feed(schema.as_str());
    TOOL + counter.tokens()
}

/// Feeds a value as it is sent, without writing it anywhere.
fn feed_json(counter: &mut Counter, value: &Value) {
    struct Feed<'a>(&'a mut Counter);
    impl io::Write for Feed<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // serde_json writes whole characters; were it ever otherwise, three bytes a token would be near.
            match std::str::from_utf8(bytes) {
                Ok(text) => self.0.feed(text),
                Err(_) => self.0.feed_bytes(bytes.len()),
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // Counting cannot fail, and a JSON value always serialises.
    let _ = serde_json::to_writer(Feed(counter), value);
}

#[cfg(test)]
mod tests;
