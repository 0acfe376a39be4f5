//! The estimator against counts of real tokenizers, recorded beside their texts, and what holds for any text.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const SAMPLES: [(&str, &str); 10] = [
    ("english", include_str!("samples/english.txt")),
    ("european", include_str!("samples/european.txt")),
    ("chinese", include_str!("samples/chinese.txt")),
    ("traditional", include_str!("samples/traditional.txt")),
    ("japanese", include_str!("samples/japanese.txt")),
    ("korean", include_str!("samples/korean.txt")),
    ("cyrillic", include_str!("samples/cyrillic.txt")),
    ("code", include_str!("samples/code.txt")),
    ("json", include_str!("samples/json.txt")),
    ("mixed", include_str!("samples/mixed.txt")),
];

#[test]
fn estimates_are_within_a_tenth_of_real_counts_on_each_script() {
    let recorded: Value = serde_json::from_str(include_str!("samples/counts.json")).unwrap();
    let mut wrong = Vec::new();
    for (name, sample) in SAMPLES {
        for (key, tokenizer) in [("o200k", Tokenizer::O200k), ("claude", Tokenizer::Claude)] {
            let real = recorded["counts"][name][key].as_u64().unwrap();
            let ours = text(sample, tokenizer);
            if ours * 10 < real * 9 || ours * 10 > real * 11 {
                wrong.push(format!("{name} {key}: {ours} for {real}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(recorded["counts"].as_object().unwrap().len(), SAMPLES.len());
}

#[test]
fn the_characters_of_traditional_chinese_are_sorted() {
    // They are found by binary search.
    let cost = |text: &str| self::text(text, Tokenizer::O200k);
    for c in "來國學這點".chars() {
        assert!(cost(&c.to_string().repeat(10)) > cost(&"的".repeat(10)), "{c}");
    }
}

#[test]
fn schemas_calls_results_and_pictures_count() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tool = tool("read_file", "Reads a file.", &schema.into(), Tokenizer::O200k);
    assert!((30..60).contains(&tool), "{tool}");
    let result = |parts| Block::ToolResult { id: "a".into(), parts, is_error: false };
    let picture = Part::Image { media_type: "image/png".into(), data: "A".repeat(1 << 20) };
    assert!((500..2_000).contains(&block(&result(vec![picture]), Tokenizer::O200k)), "pixels count, not bytes");
    assert!(block(&result(vec![]), Tokenizer::O200k) > 0);
    let call = |input| Block::ToolUse { id: "a".into(), name: "t".into(), input, malformed: None };
    let (small, large) = (call(json!({})), call(json!({"text": "word ".repeat(100)})));
    assert!(block(&large, Tokenizer::O200k) > block(&small, Tokenizer::O200k) + 70);
}

proptest! {
    #[test]
    fn where_a_piece_ends_does_not_matter(text in "\\PC{0,80}", cut in 0usize..80) {
        let cut = text.floor_char_boundary(cut.min(text.len()));
        for tokenizer in [Tokenizer::O200k, Tokenizer::Claude] {
            let mut counter = Counter::new(tokenizer);
            counter.feed(&text[..cut]);
            let before = counter.tokens();
            counter.feed(&text[cut..]);
            prop_assert_eq!(counter.tokens(), super::text(&text, tokenizer));
            prop_assert!(before <= counter.tokens());
        }
    }
}
