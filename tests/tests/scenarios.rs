//! Turns of the whole host: a scenario is a folder, and adding a test is adding a folder.
//!
//! `scenario.yaml` says what is asked and which plugins are there, `script.yaml` what the model says, `workspace/` what
//! lies in the workspace, `astrarium.yaml` what the operator decided, `expected.txt` the transcript that must come of it.
//! `UPDATE_EXPECT=1 cargo xtask test` writes `expected.txt` anew.

use astrarium::host::Which;
use astrarium::model::scripted::Scripted;
use astrarium::transcript::{Block, Message, Origin, Part};
use astrarium_tests::place::{Place, ask, copy};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    question: String,
    /// What is asked afterwards, each time in a session that is opened anew.
    #[serde(default)]
    then: Vec<String>,
    #[serde(default = "many")]
    max_steps: u32,
    #[serde(default)]
    plugins: Vec<String>,
    #[serde(default)]
    disabled: Vec<String>,
    #[serde(default = "yes")]
    shipped: bool,
}

fn many() -> u32 {
    20
}

fn yes() -> bool {
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_ends_in_its_expected_transcript() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut folders: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 5, "the scenarios are gone");
    for folder in folders {
        let text = run(&folder).await;
        eprintln!("scenario {}", folder.file_name().unwrap().to_string_lossy());
        expect_test::expect_file![folder.join("expected.txt")].assert_eq(&text);
    }
}

async fn run(folder: &Path) -> String {
    let read =
        |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{folder:?}/{name}: {error}"));
    let scenario: Scenario =
        astrarium::yaml::from_str(&read("scenario.yaml")).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let place = if scenario.shipped { Place::new() } else { Place::bare() };
    for plugin in &scenario.plugins {
        place.plugin(plugin);
    }
    for plugin in &scenario.disabled {
        astrarium::config::set_disabled(&place.home(), plugin, true).unwrap();
    }
    if folder.join("astrarium.yaml").exists() {
        place.config(&read("astrarium.yaml"));
    } else {
        place.config("language: en\n");
    }
    if folder.join("workspace").exists() {
        copy(&folder.join("workspace"), &place.workspace());
    }
    let host = place.host().await;
    let model = Arc::new(Scripted::from_str("test", &read("script.yaml")).expect("the script reads"));
    let mut session = host.session(Which::New { title: &scenario.question }, model.clone()).expect("the session opens");
    let cancel = CancellationToken::new();
    let mut turn = ask(&mut session, &scenario.question, scenario.max_steps, &cancel, |_| {}).await;
    for question in &scenario.then {
        let id = session.id.clone();
        drop(session);
        session = host.session(Which::Named(&id), model.clone()).expect("the session opens again");
        turn = ask(&mut session, question, scenario.max_steps, &cancel, |_| {}).await;
    }
    let mut text = String::new();
    for message in session.messages() {
        show(message, &mut text);
    }
    let outcome = turn.outcome;
    writeln!(
        text,
        "== {:?} after {} steps, {} calls, {} refused",
        outcome.reason, outcome.steps, outcome.tool_calls, outcome.refused_calls
    )
    .unwrap();
    if let Some(error) = &outcome.error {
        writeln!(text, "error: {error}").unwrap();
    }
    writeln!(text, "answer: {}", outcome.answer).unwrap();
    let stored = host.store.messages(&session.id).unwrap();
    let seen: Vec<_> = session.messages().iter().map(|message| (**message).clone()).collect();
    assert_eq!(stored, seen, "{folder:?}: what is on record is what the model saw");
    text.replace(&host.options.workspace.display().to_string(), "WORKSPACE").replace(&session.id, "SESSION")
}

fn show(message: &Message, text: &mut String) {
    let who = match message.origin {
        Origin::User => "user",
        Origin::Attached => "attached",
        Origin::Model => "model",
        Origin::Tools => "tools",
        Origin::Host => "host",
        Origin::Compaction => "compaction",
    };
    for block in &message.content {
        let line = match block {
            Block::Text { text } => text.clone(),
            Block::Thinking { text, .. } => format!("(thinking) {text}"),
            Block::ToolUse { id, name, input, malformed } => {
                format!("{id} {name} {}", malformed.clone().unwrap_or_else(|| input.to_string()))
            }
            Block::ToolResult { id, parts, is_error } => {
                let parts: Vec<String> = parts.iter().map(Part::as_text).collect();
                format!("{id} {}\n{}", if *is_error { "error" } else { "ok" }, parts.join("\n"))
            }
            Block::Image { media_type, .. } => format!("[image {media_type}]"),
        };
        writeln!(text, "[{who}] {}", line.replace('\n', "\n    ")).unwrap();
    }
}
