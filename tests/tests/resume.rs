//! Sessions that go on: after an answer, after a crash between a call and its result, and from a second process.

use astrarium::host::Which;
use astrarium::model::scripted::Scripted;
use astrarium::store::NewSession;
use astrarium::transcript::{Block, CallStatus, Message, Origin, Part, Role};
use astrarium_tests::place::{Place, ask};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "glob_files".into(), input: json!({ "pattern": "*" }), malformed: None }
}

fn results(message: &Message) -> Vec<(String, String, bool)> {
    let results = message.content.iter().filter_map(|block| match block {
        Block::ToolResult { id, parts, is_error } => {
            Some((id.clone(), parts.iter().map(Part::as_text).collect::<String>(), *is_error))
        }
        _ => None,
    });
    results.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_cut_off_by_a_crash_are_said_to_be_interrupted_and_none_runs_twice() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    let new = NewSession { model: "scripted:test", workspace: "w", title: "t" };
    let id = host.store.create_session(&new).unwrap();
    host.store.append(&id, &Message::user("question"), None).unwrap();
    let content = vec![Block::Text { text: "calling".into() }, call("a"), call("b"), call("c")];
    let asked = Message { role: Role::Assistant, origin: Origin::Model, content };
    let seq = host.store.append(&id, &asked, None).unwrap();
    // The host died here: one call had ended, one had begun, one had not.
    for (place, call) in [(1, "a"), (2, "b")] {
        host.store.begin_call(&id, seq, place, call, "glob_files", "{}", "files", "d").unwrap();
    }
    let answer = [Part::Text { text: "what a answered".into() }];
    host.store.end_call(&id, seq, 1, CallStatus::Ok, &answer, Duration::ZERO).unwrap();

    let script = "name: after\nsteps:\n- say: never reached, it was answered before\n- say: going on\n";
    let model = Arc::new(Scripted::from_str("after", script).unwrap());
    let mut session = host.session(Which::Named(&id), model).unwrap();
    let mended = results(&session.messages()[2]);
    assert_eq!(mended[0], ("a".into(), "what a answered".into(), false));
    assert!(mended[1].1.contains("may or may not have taken effect") && mended[1].2, "{mended:?}");
    assert!(mended[2].1.contains("had not begun") && mended[2].2, "{mended:?}");
    let turn = ask(&mut session, "and now?", 5, &CancellationToken::new(), |_| {}).await;
    assert_eq!(turn.outcome.answer, "going on");
    assert_eq!(turn.outcome.tool_calls, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_turn_leaves_a_transcript_that_resumes() {
    let place = Place::bare();
    place
        .plugin("hostile")
        .config("language: en\ngrants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n");
    let host = place.host().await;
    let script = "name: c\nsteps:\n- calls: [{ tool: sleep, input: {} }, { tool: ok, input: {} }]\n- say: resumed\n";
    let model = Arc::new(Scripted::from_str("c", script).unwrap());
    let mut session = host.session(Which::New { title: "t" }, model.clone()).unwrap();
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    let turn = ask(&mut session, "sleep", 5, &cancel, move |event| {
        if matches!(event, astrarium::event::Event::CallStarted { .. }) {
            trigger.cancel();
        }
    })
    .await;
    assert_eq!(turn.outcome.reason, astrarium::event::EndReason::Cancelled);
    let id = session.id.clone();
    drop(session);
    let model = Arc::new(Scripted::from_str("c", script).unwrap());
    let mut session = host.session(Which::Named(&id), model).unwrap();
    let last = session.messages().last().unwrap();
    assert_eq!(results(last).len(), 2, "every call has its result");
    let turn = ask(&mut session, "go on", 5, &CancellationToken::new(), |_| {}).await;
    assert_eq!(turn.outcome.answer, "resumed");
}

#[test]
fn a_second_process_goes_on_with_the_same_session() {
    let place = Place::new();
    let model = place.script("name: two\nsteps:\n- say: first answer\n- say: second answer\n  expect: again\n");
    let first = place.run(&["run", "hello", "--model", &model, "--output", "json"]);
    assert_eq!(first.status, 0, "{first:?}");
    let second = place.run(&["run", "again", "--continue", "--model", &model, "--output", "json"]);
    assert_eq!(second.json()["answer"], "second answer", "{second:?}");
    assert_eq!(second.json()["session"], first.json()["session"]);
    let shown = place.run(&["session", "show", first.json()["session"].as_str().unwrap(), "--json"]).json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 4);
    let listed = place.run(&["session", "list", "--json"]).json();
    assert_eq!(listed[0]["title"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_open_elsewhere_is_not_opened_twice() {
    let place = Place::bare();
    let host = place.host().await;
    let model = || Arc::new(Scripted::from_str("t", "name: t\nsteps:\n- say: hi\n").unwrap());
    let session = host.session(Which::New { title: "t" }, model()).unwrap();
    let error = host.session(Which::Named(&session.id), model()).err().unwrap().to_string();
    assert!(error.contains("open in another process"), "{error}");
    let id = session.id.clone();
    drop(session);
    assert!(host.session(Which::Named(&id), model()).is_ok());
}
