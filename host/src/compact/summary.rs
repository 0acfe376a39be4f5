//! The words of a summary: what a model is asked, the conversation as text where it is asked from outside, and what its
//! answer comes to.

use super::clip::clip;
use super::cut;
use super::texts::{Texts, fill};
use crate::tokens::{Tokenizer, text};
use crate::transcript::{Block, Message, Part, Role};

/// Tokens of one tool result in a conversation told as text: what came of a call is said at its ends.
const RESULT: u64 = 600;
/// Tokens of one other text; longer ones were pasted.
const SAID: u64 = 2_000;

/// The question for a summary, with what the user and the hooks want of it.
pub fn request(texts: &Texts, extra: &[String]) -> String {
    let extra: Vec<&str> = extra.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    if extra.is_empty() {
        return texts.summary_request.clone();
    }
    format!("{}\n\n{}\n{}", texts.summary_request, texts.labels.extra, extra.join("\n"))
}

/// The conversation as text of at most `budget` tokens, for a model that is asked from outside it. What does not fit is
/// dropped from the oldest round on, and said (SPEC 4.8).
pub fn transcript(messages: &[Message], texts: &Texts, budget: u64, tokenizer: Tokenizer) -> String {
    let labels = &texts.labels;
    let lead = text(&labels.transcript, tokenizer) + text(&labels.dropped, tokenizer) + 8;
    let mut left = budget.saturating_sub(lead);
    let mut start = messages.len();
    let mut shown = Vec::new();
    for message in messages.iter().rev() {
        let said = say(message, texts, tokenizer);
        let size = text(&said, tokenizer) + 2;
        if size > left {
            break;
        }
        left -= size;
        start -= 1;
        shown.push(said);
    }
    while start < messages.len() && !cut::safe(messages, start) {
        start += 1;
        shown.pop();
    }
    let mut parts = vec![labels.transcript.clone()];
    if start > 0 {
        parts.push(fill(&labels.dropped, "count", &start.to_string()));
    }
    parts.extend(shown.into_iter().rev().filter(|said| !said.is_empty()));
    parts.join("\n\n")
}

fn say(message: &Message, texts: &Texts, tokenizer: Tokenizer) -> String {
    let labels = &texts.labels;
    let who = match message.role {
        Role::User => &labels.user,
        Role::Assistant => &labels.assistant,
    };
    let clip = |text: &str, most: u64| clip(text, most, &labels.clipped, tokenizer);
    let lines = message.content.iter().filter_map(|block| match block {
        Block::Text { text } if !text.trim().is_empty() => Some(format!("{who}{}", clip(text, SAID))),
        Block::Text { .. } | Block::Thinking { .. } => None,
        Block::ToolUse { name, input, malformed, .. } => {
            let input = malformed.clone().unwrap_or_else(|| input.to_string());
            Some(format!("{}{name} {}", labels.call, clip(&input, RESULT)))
        }
        Block::ToolResult { parts, .. } => {
            let parts: Vec<String> = parts.iter().map(Part::as_text).collect();
            Some(format!("{}{}", labels.tool, clip(&parts.join("\n"), RESULT)))
        }
        Block::Image { .. } => Some(format!("{who}{}", labels.image)),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The summary in a model's answer: what stands between `<summary>` tags where there are some, else all of it. Nothing
/// where it is blank.
pub fn clean(answer: &str) -> Option<String> {
    let inner = match answer.find("<summary>") {
        Some(at) => {
            let rest = &answer[at + "<summary>".len()..];
            rest.find("</summary>").map_or(rest, |end| &rest[..end])
        }
        None => answer,
    };
    let inner = inner.trim();
    (!inner.is_empty()).then(|| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Language;
    use crate::transcript::Origin;
    use serde_json::json;

    #[test]
    fn the_oldest_rounds_are_dropped_and_a_call_keeps_its_result() {
        let texts = Texts::built_in(Language::En);
        let call = Block::ToolUse { id: "1".into(), name: "look".into(), input: json!({"a": 1}), malformed: None };
        let part = Part::Text { text: "word ".repeat(5_000) };
        let result = Block::ToolResult { id: "1".into(), parts: vec![part], is_error: false };
        let messages = [
            Message::user("the first question"),
            Message { role: Role::Assistant, origin: Origin::Model, content: vec![call] },
            Message { role: Role::User, origin: Origin::Tools, content: vec![result] },
            Message::user("the second question"),
        ];
        let all = transcript(&messages, &texts, 5_000, Tokenizer::O200k);
        assert!(all.contains("[User] the first question") && all.contains("[Call] look {\"a\":1}"), "{all}");
        assert!(all.contains("tokens left out") && text(&all, Tokenizer::O200k) < 1_000, "results are cut");
        let some = transcript(&messages, &texts, 400, Tokenizer::O200k);
        assert!(some.contains("[the oldest 3 messages are left out") && some.ends_with("[User] the second question"));
        assert!(!some.contains("[Tool]"), "no result without its call: {some}");
    }

    #[test]
    fn an_answer_is_taken_out_of_its_tags_and_a_blank_one_is_none() {
        assert_eq!(clean(" text \n"), Some("text".into()));
        assert_eq!(clean("<analysis>hm</analysis>\n<summary>\n1. Goal\n</summary>"), Some("1. Goal".into()));
        assert_eq!(clean("<summary>cut off"), Some("cut off".into()));
        assert_eq!(clean("\n "), None);
        assert_eq!(clean("<summary> </summary>"), None);
    }

    #[test]
    fn what_hooks_and_users_want_of_a_summary_is_added() {
        let texts = Texts::built_in(Language::En);
        assert_eq!(request(&texts, &[" ".into()]), texts.summary_request);
        assert!(request(&texts, &["keep the paths".into()]).ends_with("mind especially:\nkeep the paths"));
    }
}
