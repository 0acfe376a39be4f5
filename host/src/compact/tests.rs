//! The shapes of a compaction that SPEC 4 names; its laws are beside them.

mod laws;

use super::*;
use crate::prompt::Language;
use crate::tokens::{self, Tokenizer};
use crate::transcript::{Block, Message, Origin, Part, Role};
use serde_json::json;
use std::collections::HashSet;

fn sizes(messages: &[Message]) -> Vec<u64> {
    messages.iter().map(|message| tokens::message(message, Tokenizer::O200k)).collect()
}

/// What a test says of an input; the rest is the same for all.
#[derive(Debug, Clone)]
struct Case {
    messages: Vec<Message>,
    window: Window,
    front: u64,
    scale: f64,
    trigger: Trigger,
    asks: bool,
    restore: Restore,
    language: Language,
}

impl Case {
    fn new(messages: Vec<Message>, window: u64) -> Self {
        Self {
            messages,
            window: Window { tokens: window, output: 1_000 },
            front: 100,
            scale: 1.0,
            trigger: Trigger::Auto,
            asks: true,
            restore: Restore { identity: "You are a test.".into(), ..Restore::default() },
            language: Language::En,
        }
    }

    fn with<T>(&self, body: impl FnOnce(&Input<'_>) -> T) -> T {
        let sizes = sizes(&self.messages);
        let texts = Texts::built_in(self.language);
        body(&Input {
            messages: &self.messages,
            sizes: &sizes,
            front: self.front,
            scale: self.scale,
            tokenizer: Tokenizer::O200k,
            window: self.window,
            trigger: self.trigger,
            asks: self.asks,
            restore: &self.restore,
            texts: &texts,
        })
    }

    /// The first layer that does, with a summary of a few words.
    fn compact(&self) -> Result<Compacted, String> {
        self.with(|input| {
            let plan = plan(input).map_err(|stuck| stuck.to_string())?;
            let mut refused = String::from("no layer");
            for layer in &plan.layers {
                match plan.apply(input, *layer, "1. Goal: a summary in a few words") {
                    Ok(done) => return Ok(done),
                    Err(reason) => refused = format!("{layer:?}: {reason}"),
                }
            }
            Err(refused)
        })
    }
}

fn calls(step: usize, ids: &[usize], name: &str) -> Message {
    let blocks = ids.iter().map(|id| Block::ToolUse {
        id: format!("c{step}-{id}"),
        name: name.into(),
        input: json!({ "path": format!("file-{step}.txt") }),
        malformed: None,
    });
    Message { role: Role::Assistant, origin: Origin::Model, content: blocks.collect() }
}

fn results(step: usize, parts: Vec<Vec<Part>>) -> Message {
    let blocks = parts.into_iter().enumerate().map(|(id, parts)| Block::ToolResult {
        id: format!("c{step}-{id}"),
        is_error: parts.is_empty(),
        parts,
    });
    Message { role: Role::User, origin: Origin::Tools, content: blocks.collect() }
}

fn text(text: impl Into<String>) -> Part {
    Part::Text { text: text.into() }
}

fn said(text: &str) -> Message {
    Message { role: Role::Assistant, origin: Origin::Model, content: vec![Block::Text { text: text.into() }] }
}

fn attached_message(texts: Vec<String>) -> Message {
    let text = |text| Block::Text { text: format!("<attached-file path=\"a\">\n{text}\n</attached-file>") };
    Message { role: Role::User, origin: Origin::Attached, content: texts.into_iter().map(text).collect() }
}

/// A question, then `steps` calls whose results have about `words` words each.
fn long_run(steps: usize, words: usize) -> Vec<Message> {
    let mut messages = vec![Message::user("Find the redshift of M87. Never guess.")];
    for step in 0..steps {
        messages.push(calls(step, &[0], "look"));
        messages.push(results(step, vec![vec![text(format!("{step} {}", "word ".repeat(words)))]]));
    }
    messages
}

/// What the compaction put in the place of messages.
fn inserted(done: &Compacted) -> String {
    done.messages.iter().find(|message| message.origin == Origin::Compaction).expect("something was put there").text()
}

/// What is wrong with a conversation, if something is.
fn broken(messages: &[Message]) -> Option<String> {
    let mut open: HashSet<&str> = HashSet::new();
    if messages.first().is_none_or(|first| first.role != Role::User) {
        return Some("the first message is not the user's".into());
    }
    for (at, message) in messages.iter().enumerate() {
        if message.content.is_empty() {
            return Some(format!("message {at} is empty"));
        }
        let answers: Vec<&str> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult { id, .. } => Some(id.as_str()),
                _ => None,
            })
            .collect();
        for id in &answers {
            if !open.remove(id) {
                return Some(format!("message {at} answers {id}, which nobody asked"));
            }
        }
        if let Some(id) = open.iter().next() {
            return Some(format!("{id} has no answer in message {at}"));
        }
        for block in &message.content {
            match block {
                Block::Text { text } if text.trim().is_empty() => {
                    return Some(format!("message {at} has a blank text"));
                }
                Block::ToolUse { id, .. } => drop(open.insert(id)),
                _ => {}
            }
        }
    }
    open.iter().next().map(|id| format!("{id} has no answer at the end"))
}

#[test]
fn old_results_are_emptied_first_and_nothing_else_changes() {
    let case = Case::new(long_run(40, 600), 20_000);
    let done = case.compact().unwrap();
    assert_eq!(done.layer, Layer::Micro);
    assert_eq!(done.messages.len(), case.messages.len());
    let changed: Vec<usize> = (0..81).filter(|at| done.messages[*at] != case.messages[*at]).collect();
    assert!(changed.iter().all(|at| at % 2 == 0 && *at > 0), "only results: {changed:?}");
    let Block::ToolResult { parts, .. } = &done.messages[2].content[0] else { panic!("a result stays a result") };
    assert_eq!(parts, &[text("[Previous: used look]")]);
    assert_eq!(done.messages[80], case.messages[80], "the newest stays");
}

#[test]
fn a_summary_takes_the_place_of_the_middle_and_the_ends_stay() {
    let mut case = Case::new(long_run(40, 600), 20_000);
    case.trigger = Trigger::Manual;
    case.restore.instructions = vec!["Answer in French, always.".into(), "Never guess.".into()];
    let done = case.compact().unwrap();
    assert_eq!(done.layer, Layer::Summary);
    assert_eq!(done.messages[0], case.messages[0]);
    let summary = inserted(&done);
    assert!(summary.starts_with("[历史对话摘要]") && summary.contains("a summary in a few words"), "{summary}");
    assert!(summary.contains("- Answer in French, always."), "{summary}");
    assert!(!summary.contains("Never guess"), "it stands in the first message, which stays: {summary}");
    assert_eq!(done.messages.last(), case.messages.last());
    assert!(done.tokens * 2 < case.window.due(), "{}", done.tokens);
}

#[test]
fn the_identity_block_stands_where_at_most_four_messages_are_left() {
    for (language, lead) in [(Language::Zh, "你是测试。以上是"), (Language::En, "You are a test. Above is")] {
        let mut case = Case::new(vec![Message::user("早"), said(&"好".repeat(9_000)), Message::user("再见")], 8_000);
        case.language = language;
        case.restore.identity =
            if language == Language::Zh { "你是测试。".into() } else { "You are a test.".into() };
        let done = case.compact().unwrap();
        assert_eq!(done.messages.len(), 3);
        let block = done.messages[1].text();
        assert!(block.contains(&format!("[身份确认] {lead}")), "{block}");
    }
    let done = Case { trigger: Trigger::Manual, ..Case::new(long_run(40, 600), 20_000) }.compact().unwrap();
    assert!(done.messages.len() > 4 && !inserted(&done).contains("[身份确认]"));
}

#[test]
fn without_a_summary_three_and_forty_seven_messages_stay() {
    let mut messages = vec![Message::user("q"), said("a"), Message::user("second")];
    for step in 0..200 {
        messages.push(said(&format!("{step} {}", "word ".repeat(40))));
        messages.push(Message::user(format!("go on with {step}")));
    }
    let done = Case { asks: false, ..Case::new(messages.clone(), 8_000) }.compact().unwrap();
    assert_eq!(done.layer, Layer::Snip);
    assert_eq!(done.messages[..3], messages[..3]);
    let last = done.messages.len() - 4;
    assert!(last <= 47 && done.messages[4..] == messages[messages.len() - last..], "{last}");
    assert!(done.messages[3].text().contains("earlier messages were taken out"), "{}", done.messages[3].text());
}

#[test]
fn the_last_two_results_stay_when_all_else_fails() {
    let mut messages = long_run(3, 700);
    messages.push(said("thinking"));
    let mut case = Case::new(messages, 1_800);
    case.asks = false;
    case.window.output = 100;
    let done = case.with(|input| plan(input).unwrap().apply(input, Layer::Aggressive, "").unwrap());
    let kept: Vec<String> = done
        .messages
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolResult { parts, .. } => Some(parts[0].as_text().chars().take(6).collect()),
            _ => None,
        })
        .collect();
    assert!(kept.iter().rev().take(2).all(|result| !result.starts_with("[Prev")), "{kept:?}");
    assert!(kept.iter().rev().skip(2).all(|result| result.starts_with("[Prev")), "{kept:?}");
}

#[test]
fn an_empty_or_inflated_summary_falls_to_the_next_layer() {
    let case = Case { trigger: Trigger::Manual, ..Case::new(long_run(40, 600), 20_000) };
    case.with(|input| {
        let plan = plan(input).unwrap();
        assert_eq!(plan.layers, [Layer::Summary, Layer::Micro, Layer::Snip, Layer::Aggressive]);
        assert_eq!(plan.apply(input, Layer::Summary, " \n"), Err(Refused::Empty));
        let inflated = plan.apply(input, Layer::Summary, &"word ".repeat(30_000)).unwrap_err();
        assert!(matches!(inflated, Refused::Inflated { .. }), "{inflated}");
        let large = plan.apply(input, Layer::Summary, &"word ".repeat(16_000)).unwrap_err();
        assert!(matches!(large, Refused::NoGain { .. } | Refused::Inflated { .. }), "{large}");
        assert!(plan.apply(input, Layer::Micro, "").is_ok());
    });
}

#[test]
fn what_was_loaded_comes_back_unless_it_is_still_in_view() {
    let mut case = Case::new(long_run(40, 600), 40_000);
    case.trigger = Trigger::Manual;
    let item = |name: &str, call: Option<&str>| Item {
        name: name.into(),
        text: format!("text of {name}"),
        call: call.map(str::to_owned),
    };
    case.restore.tasks = "⏳ [1] look further".into();
    case.restore.skills = vec![item("plotting", Some("c1-0"))];
    case.restore.tools = vec![item("found_tool", None)];
    case.restore.files =
        ["c39-0", "c7-0", "c6-0", "c5-0", "c4-0", "c3-0"].iter().map(|call| item(call, Some(call))).collect();
    let block = inserted(&case.compact().unwrap());
    for part in ["⏳ [1] look further", "## plotting\ntext of plotting", "## found_tool", "## c7-0", "## c4-0"] {
        assert!(block.contains(part), "{part} in {block}");
    }
    assert!(!block.contains("## c39-0"), "its result is still in view: {block}");
    assert!(!block.contains("## c3-0"), "five files at most: {block}");
    case.trigger = Trigger::Auto;
    case.window.tokens = 20_000;
    let micro = case.compact().unwrap();
    assert_eq!(micro.layer, Layer::Micro);
    let block = inserted(&micro);
    assert!(block.contains("## plotting") && block.contains("## c7-0"), "{block}");
    assert!(!block.contains("found_tool") && !block.contains("⏳"), "those messages are still there: {block}");
}

#[test]
fn what_was_attached_to_the_last_question_comes_back_in_front_of_it_as_far_as_it_fits() {
    for (words, whole) in [(20, true), (1_500, false)] {
        let attached = attached_message(vec!["the file says so. ".repeat(words)]);
        let mut messages = long_run(10, 100);
        messages.extend([attached.clone(), Message::user("what does the file say?")]);
        messages.extend(long_run(30, 600).split_off(1));
        let mut case = Case::new(messages, 20_000);
        case.trigger = Trigger::Manual;
        let done = case.compact().unwrap();
        let at = done.messages.iter().position(|message| message.text() == "what does the file say?").unwrap();
        let before = &done.messages[at - 1];
        assert_eq!(before.origin, Origin::Attached);
        assert_eq!(*before == attached, whole, "{}", done.tokens);
        assert!(before.text().contains("the file says so."));
    }
}

#[test]
fn a_front_that_fills_the_window_is_said_with_its_cure() {
    let case = Case { front: 19_000, ..Case::new(long_run(40, 600), 20_000) };
    let reason = case.compact().unwrap_err();
    assert!(reason.contains("19000 tokens of a window of 20000") && reason.contains("ASTRARIUM_CONTEXT_WINDOW"));
    let case = Case { trigger: Trigger::Manual, ..Case::new(vec![Message::user("hi")], 20_000) };
    assert_eq!(case.compact().unwrap_err(), "the conversation is too short to be compacted");
}
