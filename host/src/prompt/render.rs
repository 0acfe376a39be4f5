//! A request in render order, piece by piece: tools, system segments, the message in front, then the conversation.
//!
//! Two requests are equal as far as their pieces are, cache marks left out; a provider's cache reads exactly that far.

use crate::request::ToolSpec;
use crate::transcript::Message;
use serde::Serialize;
use std::fmt;

/// What a piece is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Place {
    /// A tool of the catalogue.
    Tool(String),
    /// A segment of the system prompt, by name where it is known.
    Segment(String),
    /// The message in front of the conversation.
    Front,
    /// A message of the conversation, by its place in it.
    Message(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tool(name) => write!(f, "the tool {name}"),
            Place::Segment(name) => write!(f, "the system segment {name}"),
            Place::Front => f.write_str("the message in front"),
            Place::Message(index) => write!(f, "message {index} of the conversation"),
        }
    }
}

/// A tool as it is rendered.
pub fn tool(tool: &ToolSpec) -> String {
    serde_json::json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema })
        .to_string()
}

/// A message as it is rendered.
pub fn message(message: &Message) -> String {
    serde_json::to_string(&(message.role, &message.content)).unwrap_or_default()
}

/// Where two renderings part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// Bytes that they share.
    pub shared_bytes: u64,
    /// The piece in which they part; none when the shorter one is a prefix of the longer.
    pub place: Option<Place>,
    /// The first bytes of the first one from there, cut.
    pub first: String,
    /// The first bytes of the second one from there, cut.
    pub second: String,
}

/// Characters that are shown on either side.
const SHOWN: usize = 60;

/// Compares two whole renderings.
pub fn part(first: &[(Place, String)], second: &[(Place, String)]) -> Parting {
    let mut shared = 0_u64;
    for (at, (place, text)) in first.iter().enumerate() {
        let Some((other_place, other)) = second.get(at) else { break };
        if text == other && place == other_place {
            shared += text.len() as u64;
            continue;
        }
        let common = text.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let tail = |text: &str| {
            let from = text.floor_char_boundary(common.min(text.len()));
            text[from..].chars().take(SHOWN).collect::<String>()
        };
        return Parting {
            shared_bytes: shared + common as u64,
            place: Some(place.clone()),
            first: tail(text),
            second: tail(other),
        };
    }
    Parting { shared_bytes: shared, place: None, first: String::new(), second: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendering(texts: &[&str]) -> Vec<(Place, String)> {
        let pieces = texts.iter().enumerate();
        pieces.map(|(at, text)| (Place::Message(at), (*text).to_owned())).collect()
    }

    #[test]
    fn a_request_that_begins_with_the_whole_of_another_parts_nowhere() {
        let parting = part(&rendering(&["ab", "cd"]), &rendering(&["ab", "cd", "ef"]));
        assert_eq!((parting.shared_bytes, parting.place), (4, None));
    }

    #[test]
    fn the_first_byte_that_differs_is_named_with_its_piece() {
        let parting = part(&rendering(&["ab", "x星one"]), &rendering(&["ab", "x星two", "ef"]));
        assert_eq!(parting.shared_bytes, 2 + 4);
        assert_eq!(parting.place, Some(Place::Message(1)));
        assert_eq!((parting.first.as_str(), parting.second.as_str()), ("one", "two"));
    }
}
