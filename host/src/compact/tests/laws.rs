//! The laws of a compaction, over random histories, windows and limits.

use super::*;
use proptest::prelude::*;

fn words() -> impl Strategy<Value = String> {
    let unit = prop_oneof![
        Just("The light of a distant star. "),
        Just("星系的旋转曲线说明有暗物质，"),
        Just("星が生まれる場所は暗い雲の中です。"),
        Just("별이 태어나는 곳은 구름 속이다. "),
        Just("let x = vec![1, 2];\n"),
        Just("{\"z\": 0.0043, \"id\": 17}"),
        Just(" "),
        Just("🪐"),
    ];
    (unit, prop_oneof![Just(0usize), 1..20usize, 20..400usize, 2_000..4_000usize])
        .prop_map(|(unit, times)| unit.repeat(times))
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => words().prop_map(text),
        1 => words().prop_map(|text| Part::Json { value: json!({ "text": text, "list": [1, 2, 3] }).into() }),
        1 => Just(Part::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".repeat(2_000) }),
        1 => Just(Part::File { path: "out/plot.png".into(), note: Some("a plot".into()) }),
    ]
}

/// One round: a question or a reminder, steps with calls side by side, an answer or none.
fn round() -> impl Strategy<Value = Vec<Message>> {
    let question = (words(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(text, host, picture, always)| {
        let text = if always { format!("Always say so. {text}") } else { format!("q{text}") };
        let mut message = if host { Message::host(text) } else { Message::user(text) };
        if picture {
            let data = "iVBORw0KGgo=".repeat(100);
            message.content.push(Block::Image { media_type: "image/png".into(), data });
        }
        message
    });
    let step = (words(), any::<bool>(), prop::collection::vec(prop::collection::vec(part(), 0..3), 0..4));
    let attached = prop::option::weighted(0.3, prop::collection::vec(words(), 1..3));
    (attached, question, prop::collection::vec(step, 0..6)).prop_map(|(attached, question, steps)| {
        let mut messages: Vec<Message> = attached.map(attached_message).into_iter().chain([question]).collect();
        for (number, (text, thinks, parts)) in steps.into_iter().enumerate() {
            let ids: Vec<usize> = (0..parts.len()).collect();
            let mut asked = calls(number, &ids, "look");
            if !text.is_empty() {
                asked.content.insert(0, Block::Text { text });
            }
            if thinks {
                let thought = Block::Thinking { text: "hm".into(), signature: Some("s".into()), redacted: None };
                asked.content.insert(0, thought);
            }
            if asked.content.iter().all(|block| matches!(block, Block::Thinking { .. })) {
                continue;
            }
            messages.push(asked);
            if !parts.is_empty() {
                messages.push(results(number, parts));
            }
        }
        messages
    })
}

fn case() -> impl Strategy<Value = Case> {
    let restore = (words(), words(), prop::collection::vec(words(), 0..8)).prop_map(|(tasks, skill, files)| Restore {
        identity: "You are a test.".into(),
        instructions: vec!["Always answer in French.".into(), "Never guess.".into()],
        tasks,
        skills: vec![Item { name: "skill".into(), text: skill, call: None }],
        tools: vec![Item { name: "tool".into(), text: "{}".into(), call: None }],
        outputs: vec!["/session/a.txt: look".into()],
        files: files.into_iter().map(|text| Item { name: "file".into(), text, call: None }).collect(),
    });
    let trigger = prop_oneof![Just(Trigger::Auto), Just(Trigger::Overflow), Just(Trigger::Tool), Just(Trigger::Manual)];
    let rounds = prop::collection::vec(round(), 1..12);
    let window = (500u64..60_000, 1u64..20_000, 0u64..4_000, 0.5f64..3.0);
    (rounds, window, trigger, any::<bool>(), restore, any::<bool>()).prop_map(
        |(rounds, (window, output, front, scale), trigger, asks, restore, zh)| {
            // Ids are unique within a conversation.
            let mut messages: Vec<Message> = Vec::new();
            for (number, round) in rounds.into_iter().enumerate() {
                messages.extend(round.into_iter().map(|mut message| {
                    for block in &mut message.content {
                        if let Block::ToolUse { id, .. } | Block::ToolResult { id, .. } = block {
                            *id = format!("r{number}{id}");
                        }
                    }
                    message
                }));
            }
            let window = Window { tokens: window, output };
            let language = if zh { Language::Zh } else { Language::En };
            Case { messages, window, front, scale, trigger, asks, restore, language }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_for_any_history_and_any_window(case in case(), words in words()) {
        let before = sizes(&case.messages);
        let total: u64 = before.iter().sum();
        case.with(|input| {
            let planned = plan(input);
            let due = |tokens: u64| (tokens + case.front) as f64 * case.scale >= case.window.due() as f64;
            let pressing = due(total) || case.trigger == Trigger::Overflow;
            // Room beside tools and system prompt, as a server counts it.
            let free = case.window.due() as f64 - case.front as f64 * case.scale;
            let plan = match planned {
                Ok(plan) => plan,
                Err(Stuck::Front { .. }) => {
                    prop_assert!(free < 257.0 * case.scale, "the front fills a window with {free} tokens free");
                    return Ok(());
                }
                Err(Stuck::Short) => {
                    prop_assert!(!due(total), "a full window is never too short to be compacted");
                    return Ok(());
                }
            };
            if pressing {
                prop_assert!(
                    plan.apply(input, Layer::Aggressive, "").is_ok(),
                    "the last layer always does: {:?}", plan.apply(input, Layer::Aggressive, "")
                );
            }
            for layer in &plan.layers {
                let done = match plan.apply(input, *layer, &words) {
                    Ok(done) => done,
                    Err(_) => continue,
                };
                prop_assert_eq!(broken(&done.messages), None, "{:?}", layer);
                let real: u64 = sizes(&done.messages).iter().sum();
                prop_assert!(real <= done.tokens, "{layer:?}: {real} is more than it says: {}", done.tokens);
                prop_assert!(done.tokens < total, "{layer:?} makes it larger");
                prop_assert!(!due(done.tokens), "{layer:?} leaves it due");
                let fifth = case.window.fifth() as f64 / case.scale;
                prop_assert!(done.restored as f64 <= fifth.ceil(), "{layer:?} restores {} of {fifth}", done.restored);
                // A second compaction of what came of the first keeps the laws too.
                let again = Case { messages: done.messages, trigger: Trigger::Overflow, ..case.clone() };
                if let Ok(done) = again.compact() {
                    prop_assert_eq!(broken(&done.messages), None, "again after {:?}", layer);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_last_words_of_the_user_stay_word_for_word(case in case()) {
        let own = |message: &&Message| message.origin == Origin::User && !message.text().trim().is_empty();
        let Some(last) = case.messages.iter().rev().find(own) else { return Ok(()) };
        // Longer ones than an eighth of the window are cut.
        let size = (tokens::message(last, Tokenizer::O200k) as f64 * case.scale) as u64;
        if size >= case.window.tokens / 8 || size + case.front * 3 >= case.window.due() / 8 {
            return Ok(());
        }
        if let Ok(done) = case.compact() {
            let text: String = last.text().trim().into();
            prop_assert!(done.messages.iter().any(|message| message.text().contains(&text)), "{:?}", done.layer);
        }
    }
}
