//! Files that a person puts into a question: which ones a prompt mentions, what their bytes are, and the message they become.
//! Pure; reading is the business of `attachments`.
//!
//! Text is cut to a budget and the cut is said; a picture is whole or not there. What is attached is a message of its own in
//! front of the question, so that a file's words are never taken for the person's.

mod mentions;

use crate::prompt::{Texts, contained};
use crate::tokens::{self, Tokenizer};
use crate::transcript::{Block, Message, Origin, Part, Role, picture_type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
pub use mentions::mentions;

/// Files of one question.
pub const FILES: usize = 20;
/// Bytes of a text file; more than the budget ever shows, so that what was cut can be counted.
pub const TEXT_BYTES: usize = 4 << 20;
/// Bytes of a picture: Anthropic takes 5 MB of base64.
pub const PICTURE_BYTES: usize = 3_750_000;
/// Pixels of a picture's longer side, by Anthropic's limit.
const SIDE: u64 = 8_000;
/// Pictures of a conversation. Past 20 Anthropic takes smaller ones only.
const PICTURES: usize = 20;
/// Base64 bytes of a conversation's pictures: a request may have 32 MB with all else.
const PICTURES_BYTES: usize = 20 << 20;
/// Tokens of a question's text files: a long paper, and an eighth of a small window.
const TOKENS: u64 = 25_000;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Path as the person wrote it.
    pub name: String,
    /// What is in it.
    pub what: What,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Text.
    Text(String),
    /// A picture.
    Picture {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: &'static str,
        /// Base64 of its bytes.
        data: String,
    },
}

/// What the bytes of a file are. The error says why they cannot be attached, and what to do.
pub fn what(bytes: Vec<u8>) -> Result<What, String> {
    let Some(media_type) = picture_type(&bytes) else { return text(bytes) };
    if bytes.len() > PICTURE_BYTES {
        let size = bytes.len();
        return Err(format!("the picture has {size} bytes, and models take {PICTURE_BYTES}; make it smaller"));
    }
    match tokens::pixels(&bytes) {
        None => Err(format!("it begins like {media_type} and its size does not read; save it anew")),
        Some((width, height)) if width.max(height) > SIDE => {
            Err(format!("the picture has {width} × {height} pixels, and models take {SIDE} a side; make it smaller"))
        }
        Some(_) => Ok(What::Picture { media_type, data: BASE64.encode(bytes) }),
    }
}

fn text(bytes: Vec<u8>) -> Result<What, String> {
    if bytes.starts_with(b"%PDF-") {
        return Err("it is a PDF; attach its text, or ask for it by its path".into());
    }
    if bytes.len() > TEXT_BYTES {
        let size = bytes.len();
        return Err(format!("it has {size} bytes, and at most {TEXT_BYTES} are attached; ask for it by its path"));
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("it is no text and no picture (PNG, JPEG, GIF, WebP)".into()),
        Ok(text) => Ok(What::Text(text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n"))),
        Err(_) => Err("it is neither UTF-8 text nor a picture (PNG, JPEG, GIF, WebP); convert it".into()),
    }
}

/// Room that a conversation has for what is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Tokens of texts.
    tokens: u64,
    /// Pictures.
    pictures: usize,
    /// Base64 bytes of pictures.
    picture_bytes: usize,
}

impl Room {
    /// What is left in a window of `window` tokens that shows `messages` already.
    pub fn left<'a>(window: u64, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut room = Room { tokens: TOKENS.min(window / 8), pictures: PICTURES, picture_bytes: PICTURES_BYTES };
        let mut take = |data: &str| {
            room.pictures = room.pictures.saturating_sub(1);
            room.picture_bytes = room.picture_bytes.saturating_sub(data.len());
        };
        for block in messages.into_iter().flat_map(|message| &message.content) {
            match block {
                Block::Image { data, .. } => take(data),
                Block::ToolResult { parts, .. } => {
                    for part in parts {
                        if let Part::Image { data, .. } = part {
                            take(data);
                        }
                    }
                }
                Block::Text { .. } | Block::Thinking { .. } | Block::ToolUse { .. } => {}
            }
        }
        room
    }
}

/// The message in front of the question, and what of the files is not in it, a line each.
pub fn message(
    files: &[Attachment],
    mut room: Room,
    texts: &Texts,
    tokenizer: Tokenizer,
) -> (Option<Message>, Vec<String>) {
    let (mut content, mut left_out) = (Vec::new(), Vec::new());
    for Attachment { name, what } in files {
        match what {
            What::Picture { media_type, data } if room.pictures > 0 && data.len() <= room.picture_bytes => {
                room.pictures -= 1;
                room.picture_bytes -= data.len();
                let label = format!("<attached-file path=\"{}\"/>", attribute(name));
                content.push(Block::Text { text: label });
                content.push(Block::Image { media_type: (*media_type).to_owned(), data: data.clone() });
            }
            What::Picture { .. } => left_out.push(format!(
                "{name} is not attached: a conversation has at most {PICTURES} pictures of {} MiB together; /compact or a \
                 new conversation makes room",
                (PICTURES_BYTES * 3 / 4) >> 20
            )),
            What::Text(text) => {
                let (shown, tokens) = beginning(text, room.tokens, tokenizer);
                room.tokens -= tokens.min(room.tokens);
                let mut body = contained(shown);
                if shown.len() < text.len() {
                    let (some, all) = (shown.lines().count().to_string(), text.lines().count().to_string());
                    left_out.push(format!("{name} is cut: {some} of its {all} lines fit"));
                    body.push_str(&texts.fill("attachment-cut", &[("shown", &some), ("all", &all)]));
                    body.push('\n');
                }
                let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
                let name = attribute(name);
                content.push(Block::Text {
                    text: format!("<attached-file path=\"{name}\">\n{body}{end}</attached-file>"),
                });
            }
        }
    }
    let message = Message { role: Role::User, origin: Origin::Attached, content };
    ((!message.content.is_empty()).then_some(message), left_out)
}

/// The lines from the start that `most` tokens hold, or the part of the first one, and their tokens.
fn beginning(text: &str, most: u64, tokenizer: Tokenizer) -> (&str, u64) {
    let (mut end, mut spent) = (0, 0);
    for line in text.split_inclusive('\n') {
        let tokens = tokens::text(line, tokenizer);
        if spent + tokens > most {
            if end == 0 {
                // No token is shorter than a byte, so this many bytes are no more tokens than fit.
                end = text.floor_char_boundary(usize::try_from(most).unwrap_or(usize::MAX).min(line.len()));
                spent = tokens::text(&text[..end], tokenizer);
            }
            break;
        }
        (end, spent) = (end + line.len(), spent + tokens);
    }
    (&text[..end], spent)
}

/// A path as the value of an attribute.
fn attribute(name: &str) -> String {
    contained(&crate::plain::one_line(name, 300)).replace('"', "'")
}

#[cfg(test)]
mod tests;
