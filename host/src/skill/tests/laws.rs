//! What holds for any file: it is read, findings stand on its lines, and what is quoted comes back.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::time::{Duration, Instant};

/// Runs a law over 2,000 generated cases.
fn holds<S: Strategy>(strategy: S, law: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    holds_for(0, strategy, law);
}

/// Runs a law over generated cases for so many seconds, 2,000 cases at the least.
fn holds_for<S: Strategy>(seconds: u64, strategy: S, law: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let (began, mut cases) = (Instant::now(), 0);
    loop {
        let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
        runner.run(&strategy, &law).unwrap_or_else(|failure| panic!("{failure}"));
        cases += 2_000;
        if began.elapsed() >= Duration::from_secs(seconds) {
            break eprintln!("{cases} cases");
        }
    }
}

/// Files made of what trips readers up.
fn files() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "---",
        "---\n",
        "\n---\n",
        "...\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "- ",
        ": ",
        ":",
        "#",
        " # ",
        ",",
        "[",
        "]",
        "{",
        "}",
        "|\n",
        ">-\n",
        "|9+\n",
        "\"",
        "'",
        "\\",
        "\\u12",
        "&a ",
        "*a ",
        "*b",
        "!t ",
        "!!str ",
        "? ",
        "<<: *a",
        "@",
        "`",
        "%YAML 1.2\n",
        "name: ",
        "description: ",
        "when_to_use: ",
        "allowed-tools: ",
        "paths: ",
        "context: fork\n",
        "Version: 1.10\n",
        "metadata:\n",
        "disable-model-invocation: yes\n",
        "effort: ",
        "x",
        "1e999",
        "0x1f",
        "~",
        "null",
        "true",
        "星系",
        "é",
        "\u{feff}",
        "\u{202e}",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "**/*.rs",
        "{a,b}",
        "[!a-]",
        "*.rs, *.toml",
        "# T\n",
        "body\n",
    ];
    let word = proptest::sample::select(words.map(str::as_bytes).to_vec()).prop_map(<[u8]>::to_vec);
    // What is nested deep, refers to itself again and again, or is longer than a frontmatter may be.
    let again = (word.clone(), 1..2_000usize).prop_map(|(word, times)| word.repeat(times));
    let piece = prop_oneof![24 => word, 1 => again, 2 => proptest::collection::vec(any::<u8>(), 0..6), 2 => "[a-z ]{1,80}".prop_map(String::into_bytes)];
    let text = proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat());
    (any::<bool>(), text).prop_map(|(opened, text)| if opened { [b"---\n", text.as_slice()].concat() } else { text })
}

#[test]
fn any_bytes_give_a_skill_and_findings_on_its_lines() {
    // CI gives it a minute.
    let seconds = std::env::var("ASTRARIUM_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    holds_for(seconds, files(), |bytes| {
        let skill = read(&bytes, "folder");
        let (text, _) = source::decode(&bytes);
        prop_assert!(!skill.name.is_empty() && !skill.name.contains(char::is_control), "{:?}", skill.name);
        prop_assert!(text.contains(&skill.body));
        for finding in skill.findings.iter().chain(&strict::check(&bytes, "folder")) {
            prop_assert!((1..=text.lines().count() + 1).contains(&finding.line), "{finding:?}");
            prop_assert!(!finding.text.contains(char::is_control), "{finding:?}");
        }
        for path in ["src/main.rs", "", "a"] {
            skill.paths.matches(path);
        }
        prop_assert!(serde_json::to_string(&skill.frontmatter).is_ok());
        Ok(())
    });
}

#[test]
fn line_ends_and_a_byte_order_mark_change_nothing() {
    holds(files(), |bytes| {
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        let text = text.replace('\r', "");
        let text = text.trim_start_matches('\u{feff}');
        let other = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        prop_assert_eq!(read(text.as_bytes(), "folder"), read(other.as_bytes(), "folder"));
        Ok(())
    });
}

#[test]
fn what_is_quoted_comes_back_as_it_was_written() {
    let text = "[^\\p{C}\\p{Z}][^\\p{C}]{0,60}";
    holds((text, text, "[a-z_]{1,12}", "[^\\p{C}]{0,200}"), |(description, when, tool, body)| {
        let quoted = |text: &str| serde_json::to_string(text).expect("a text is JSON");
        let file = format!(
            "---\nname: a-b\nallowed-tools: {tool}\ndescription: {}\nwhen_to_use: {}\n---\n{body}\n",
            quoted(&description),
            quoted(&when)
        );
        let skill = read(file.as_bytes(), "a-b");
        prop_assert_eq!(skill.description.as_deref(), Some(description.trim()));
        prop_assert_eq!(skill.when_to_use.as_deref(), Some(when.trim()));
        prop_assert_eq!(skill.allowed_tools, [tool]);
        prop_assert_eq!(skill.body, body.trim_start_matches([' ', '\t', '\n']).trim_end());
        prop_assert!(
            skill.findings.iter().all(|finding| finding.text.contains("no instructions")),
            "{:?}",
            skill.findings
        );
        Ok(())
    });
}
