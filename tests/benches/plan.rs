//! What planning a compaction costs at 10,000 messages, beside serialising the request that it replaces, and whether twice
//! the history takes twice the time. It judges nothing: it prints each ratio beside the one to reach.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use astrarium::compact::{Input, Layer, Restore, Texts, Trigger, Window, plan};
use astrarium::prompt::Language;
use astrarium::tokens::{self, Tokenizer};
use astrarium::transcript::{Block, Message, Origin, Part, Role};
use serde_json::json;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

fn main() {
    let (small, large) = (history(5_000), history(10_000));
    for layer in [Layer::Micro, Layer::Summary, Layer::Snip, Layer::Aggressive] {
        let (half, whole) = (planning(&small, layer), planning(&large, layer));
        let request = median(|| {
            black_box(serde_json::to_string(black_box(&large)).expect("messages serialise"));
        });
        println!("{layer:?}: 10,000 messages in {whole:?}, their request serialised in {request:?}");
        println!("  planning to serialising {:.2} (reach 2)", ratio(whole, request));
        println!("  10,000 to 5,000 messages {:.2} (linear is 2)", ratio(whole, half));
    }
    let counting = median(|| {
        black_box(large.iter().map(|message| tokens::message(message, Tokenizer::O200k)).sum::<u64>());
    });
    println!("counting all tokens anew {counting:?}; a session does so once for each message");
}

/// The plan and the new conversation, with sizes that the session knows.
fn planning(messages: &[Message], layer: Layer) -> Duration {
    let sizes: Vec<u64> = messages.iter().map(|message| tokens::message(message, Tokenizer::O200k)).collect();
    let total: u64 = sizes.iter().sum();
    let (restore, texts) = (Restore::default(), Texts::built_in(Language::En));
    let input = Input {
        messages,
        sizes: &sizes,
        front: 1_000,
        scale: 1.0,
        tokenizer: Tokenizer::O200k,
        window: Window { tokens: total, output: 8_192 },
        trigger: Trigger::Manual,
        asks: true,
        restore: &restore,
        texts: &texts,
    };
    median(|| {
        let plan = plan(black_box(&input)).expect("there is room");
        black_box(plan.apply(&input, layer, "a summary")).expect("the layer does");
    })
}

/// Questions, calls with results of about a kilobyte, and answers.
fn history(count: usize) -> Vec<Message> {
    let text = "The redshift of this galaxy was measured twice, 两次测量的结果一致。 ";
    let mut messages = Vec::with_capacity(count);
    for step in 0..count / 4 {
        let id = format!("call_{step}");
        messages.push(Message::user(format!("question {step}: {text}")));
        let input = json!({ "path": format!("data/{step}.txt") });
        let call = Block::ToolUse { id: id.clone(), name: "look".into(), input, malformed: None };
        messages.push(Message { role: Role::Assistant, origin: Origin::Model, content: vec![call] });
        let parts = vec![Part::Text { text: text.repeat(12) }];
        let result = Block::ToolResult { id, parts, is_error: false };
        messages.push(Message { role: Role::User, origin: Origin::Tools, content: vec![result] });
        let answer = Block::Text { text: text.repeat(4) };
        messages.push(Message { role: Role::Assistant, origin: Origin::Model, content: vec![answer] });
    }
    messages
}

fn median(mut body: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            body();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
