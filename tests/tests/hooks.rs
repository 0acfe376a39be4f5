//! Hooks that go wrong in every place, and the plugins that ship for each of them.

use astrarium::audit::{Entry, Kind};
use astrarium::compact::Trigger;
use astrarium::compaction::{self, Work};
use astrarium::event::{EndReason, Event};
use astrarium::host::{Host, Which};
use astrarium::model::scripted::Scripted;
use astrarium::session::Session;
use astrarium::store::{AuditFilter, Task, TaskStatus};
use astrarium::tool_call::text_of;
use astrarium::transcript::{CallStatus, Usage};
use astrarium_tests::place::{Place, ask, call, play};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

const WAYS: [&str; 4] = ["trap", "sleep", "error", "garbage"];

fn rows(host: &Host, hook: &str) -> Vec<Entry> {
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap().into_iter().map(|row| row.entry);
    rows.filter(|entry| entry.kind == Kind::Hook && entry.what == hook && entry.plugin == "hook-hostile").collect()
}

/// A place where one hook goes wrong in one way.
fn hostile(hook: &str, way: &str) -> Place {
    let place = Place::bare();
    place.plugin("versioned-a").plugin("hook-hostile").config(&format!(
        "language: en\nlimits: {{ hook_ms: 250 }}\nplugins: {{ hook-hostile: {{ config: {{ {hook}: {way} }} }} }}\n"
    ));
    place
}

const ONE_CALL: &str = "name: one\nsteps:\n- calls: [{ tool: version, input: {} }]\n- say: done\n";

/// What was said to the model is short of what a hook wanted to say, and moves no cursor.
fn assert_plain(session: &Session) {
    for message in session.messages() {
        let text = message.text();
        assert!(text.len() < 40_000, "{} bytes", text.len());
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\0']), "{text:.200}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_that_goes_wrong_stops_nothing() {
    for hook in ["session-start", "step-complete", "session-stop"] {
        for way in WAYS {
            let place = hostile(hook, way);
            let host = place.host().await;
            let (session, turn) = play(&host, ONE_CALL, "q", 5).await;
            assert_eq!((turn.outcome.reason, turn.outcome.answer.as_str()), (EndReason::Done, "done"), "{hook} {way}");
            assert_eq!(turn.outputs("version"), ["a"], "{hook} {way}");
            assert_plain(&session);
            let told = rows(&host, hook);
            let wanted = if way == "garbage" { "ok" } else { "failed" };
            assert!(!told.is_empty() && told.iter().all(|row| row.outcome == wanted), "{hook} {way}: {told:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_goes_wrong_lets_no_call_through() {
    for way in WAYS {
        let place = hostile("pre-tool-use", way);
        let host = place.host().await;
        let (session, turn) = play(&host, ONE_CALL, "q", 5).await;
        let output = &turn.outputs("version")[0];
        assert!(output.contains("refused by hook-hostile: it cannot judge calls"), "{way}: {output}");
        assert!(output.contains("do not retry") && output.len() < 800, "{way}: {output}");
        assert_eq!(turn.outcome.refused_calls, 1, "{way}");
        assert_eq!(rows(&host, "pre-tool-use")[0].outcome, "failed", "{way}");
        assert_plain(&session);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_while_a_gate_judges_does_not_run_and_blames_nobody() {
    let place = hostile("pre-tool-use", "sleep");
    let config = fs::read_to_string(place.home().join("astrarium.yaml")).unwrap().replace("250", "60000");
    place.config(&config);
    let host = place.host().await;
    let cancel = CancellationToken::new();
    let calling = call(&host, "version", json!({}), &cancel);
    // The gate sleeps for longer than this test may take, so whenever it is cancelled, it has not judged.
    let (finished, ()) = tokio::join!(calling, async { cancel.cancel() });
    let said = text_of(&finished.parts);
    assert!(finished.status != CallStatus::Ok && !said.contains("mend"), "{said}");
    let told = rows(&host, "pre-tool-use");
    assert!(!told.is_empty() && told.iter().all(|row| row.outcome == "cancelled"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutator_that_goes_wrong_lets_no_result_through() {
    for way in WAYS {
        let place = hostile("post-tool-use", way);
        let host = place.host().await;
        let (session, turn) = play(&host, ONE_CALL, "q", 5).await;
        let output = &turn.outputs("version")[0];
        assert!(output.contains("its result is withheld") && output.len() < 800, "{way}: {output}");
        assert_eq!(rows(&host, "post-tool-use")[0].outcome, "failed", "{way}");
        assert_plain(&session);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_of_a_compaction_that_goes_wrong_stops_none() {
    for hook in ["pre-compact", "post-compact"] {
        for way in WAYS {
            let place = hostile(hook, way);
            let host = place.host().await;
            let mut session = long(&host, 20).await;
            let work = Work { step: 0, sink: &|_| {}, cancel: &CancellationToken::new() };
            let done = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await;
            assert!(done.is_ok(), "{hook} {way}: {done:?}");
            assert_eq!(host.store.compactions(&session.id).unwrap().len(), 1, "{hook} {way}");
            let told: Vec<String> = rows(&host, hook).into_iter().map(|row| row.outcome).collect();
            assert_eq!(told, [if way == "garbage" { "ok" } else { "failed" }], "{hook} {way}");
        }
    }
}

/// One call of another agent, which answers at once.
const ONE_AGENT: &str =
    "name: s\nsteps:\n- calls: [{ tool: subagent, input: { task: look around } }]\n- say: found\n- say: done\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_of_another_agent_that_goes_wrong_stops_none() {
    for hook in ["subagent-start", "subagent-stop"] {
        for way in WAYS {
            let mut place = hostile(hook, way);
            place.shipped = true;
            let host = place.host().await;
            let (session, turn) = play(&host, ONE_AGENT, "q", 5).await;
            assert_eq!(turn.outcome.answer, "done", "{hook} {way}");
            assert!(turn.outputs("subagent")[0].starts_with("found"), "{hook} {way}: {:?}", turn.outputs("subagent"));
            assert_plain(&session);
            let child = &host.store.agents_of(&session.id).unwrap()[0].session;
            for message in host.store.messages(child).unwrap() {
                let text = message.text();
                assert!(
                    text.len() < 40_000 && !text.contains(['\u{1b}', '\u{202e}', '\0']),
                    "{hook} {way}: {text:.200}"
                );
            }
            let told: Vec<String> = rows(&host, hook).into_iter().map(|row| row.outcome).collect();
            assert_eq!(told, [if way == "garbage" { "ok" } else { "failed" }], "{hook} {way}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_agents_are_counted_by_how_they_ended() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    let (session, _) = play(
        &host,
        &ONE_AGENT.replace(
            "- say: found\n",
            "- say: found\n- calls: [{ tool: subagent, input: { task: more } }]\n- say: more\n",
        ),
        "q",
        5,
    )
    .await;
    let scope = astrarium::store::KvScope::Session(session.id.clone());
    for key in ["subagents", "subagents-done"] {
        assert_eq!(host.store.kv_get("subagent-log", &scope, key).unwrap(), Some(b"2".to_vec()), "{key}");
    }
}

/// A session that is worth a compaction.
async fn long(host: &Host, steps: usize) -> Session {
    let call = format!("- calls: [{{ tool: version, input: {{ note: \"{}\" }} }}]\n", "word ".repeat(100));
    let summary = "at_limit: \"<summary>1. Goal: x. 2. Done: y.</summary>\"";
    let script = format!("name: t\n{summary}\nsteps:\n{}- say: done\n", call.repeat(steps));
    play(host, &script, "q", 40).await.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_that_fails_three_times_is_left_out_for_the_session() {
    let place = hostile("step-complete", "trap");
    let host = place.host().await;
    let script = format!("name: t\nsteps:\n{}- say: done\n", "- calls: [{ tool: version, input: {} }]\n".repeat(6));
    let (_, turn) = play(&host, &script, "q", 10).await;
    assert_eq!(turn.outcome.answer, "done");
    let told: Vec<String> = rows(&host, "step-complete").into_iter().map(|row| row.outcome).collect();
    assert_eq!(told, ["failed", "failed", "retired"]);
    let notices = turn
        .events
        .iter()
        .filter(|event| matches!(event, Event::Notice { text } if text.contains("hook-hostile has failed 3 times")));
    assert_eq!(notices.count(), 1, "and the user is told once");
    // Another session hears of it anew.
    play(&host, ONE_CALL, "q", 5).await;
    assert_eq!(rows(&host, "step-complete").len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nine_hooks_each_have_a_plugin_that_ships() {
    let host = Place::new().host().await;
    let snapshot = host.registry.snapshot();
    let of = |hook: &str| -> Vec<String> {
        let plugins = snapshot.plugins.iter().filter(|plugin| plugin.hooks().contains(&hook));
        plugins.map(|plugin| format!("{} {:?}", plugin.name, plugin.state).to_lowercase()).collect()
    };
    for (hook, plugin) in [
        ("session-start", "task-recovery live"),
        ("pre-tool-use", "guard live"),
        ("post-tool-use", "redact live"),
        ("step-complete", "step-log live"),
        ("pre-compact", "compaction-log live"),
        ("post-compact", "compaction-log live"),
        ("subagent-start", "subagent-log live"),
        ("subagent-stop", "subagent-log live"),
        ("session-stop", "cancel-cleanup live"),
    ] {
        assert!(of(hook).contains(&plugin.to_owned()), "{hook}: {:?}", of(hook));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_a_file_does_not_reach_the_model_or_the_record() {
    let place = Place::new();
    let secret = "ghp_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5";
    place
        .file("app.env", format!("DEBUG=1\nGITHUB_TOKEN={secret}\nPASSWORD=correct-horse-battery\n"))
        .config("language: en\n");
    let host = place.host().await;
    let script = "name: t\nsteps:\n- calls: [{ tool: read_file, input: { path: app.env } }, { tool: grep_files, input: { pattern: PASS } }]\n- say: done\n";
    let (session, turn) = play(&host, script, "q", 5).await;
    let output = &turn.outputs("read_file")[0];
    assert!(output.contains("DEBUG=1") && output.contains("[redacted: github token]"), "{output}");
    assert!(
        turn.outputs("grep_files")[0].contains("PASSWORD=[redacted: password]"),
        "{:?}",
        turn.outputs("grep_files")
    );
    let record = fs::read(place.home().join("astrarium.db")).unwrap();
    let log = fs::read(place.home().join("astrarium.db-wal")).unwrap_or_default();
    for needle in [secret, "correct-horse-battery"] {
        let holds = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        assert!(!holds(&record) && !holds(&log), "{needle} is on record");
        assert!(session.messages().iter().all(|message| !message.text().contains(needle)));
    }
}

fn task(id: &str, status: TaskStatus) -> Task {
    Task { id: id.into(), content: format!("do {id}"), status, depends_on: Vec::new(), assignee: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_under_way_is_named_when_a_session_goes_on() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    let script = "name: t\nsteps:\n- say: one\n- say: two\n- say: three\n";
    let (session, _) = play(&host, script, "q", 5).await;
    let id = session.id.clone();
    host.store.replace_tasks(&id, &[task("alpha", TaskStatus::InProgress), task("beta", TaskStatus::Pending)]).unwrap();
    drop(session);
    let go_on = async |host: &Host| {
        let model = Arc::new(Scripted::from_str("t", script).unwrap());
        let mut session = host.session(Which::Named(&id), model).unwrap();
        let before = session.messages().len();
        ask(&mut session, "go on", 5, &CancellationToken::new(), |_| {}).await;
        session.messages()[before..].iter().map(|message| message.text()).collect::<Vec<_>>().join("\n")
    };
    let text = go_on(&host).await;
    assert!(text.contains("Still in progress when the last run ended: alpha."), "{text}");
    assert!(text.contains("do beta"), "the host's own block is there: {text}");
    place.config("language: en\nplugins: { task-recovery: { config: { recall: never } } }\n");
    let text = go_on(&place.host().await).await;
    assert!(!text.contains("alpha") && !text.contains("do beta"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compactions_are_counted_and_a_summary_is_told_what_to_mind() {
    let place = Place::new();
    place
        .plugin("versioned-a")
        .config("language: en\nplugins: { compaction-log: { config: { instructions: keep the coordinates } } }\n");
    let host = place.host().await;
    let mut session = long(&host, 20).await;
    let work = Work { step: 0, sink: &|_| {}, cancel: &CancellationToken::new() };
    compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await.unwrap();
    let scope = astrarium::store::KvScope::Session(session.id.clone());
    assert_eq!(host.store.kv_get("compaction-log", &scope, "compactions").unwrap(), Some(b"1".to_vec()));
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap();
    for hook in ["pre-compact", "post-compact"] {
        assert!(
            rows.iter()
                .any(|row| row.entry.what == hook && row.entry.plugin == "compaction-log" && row.entry.outcome == "ok")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_is_tidied_up_after_and_nothing_else_is_touched() {
    let place = Place::new();
    place.plugin("versioned-a").config("language: en\n");
    let left = ".astrarium-631268aa0992af64.tmp";
    for name in [left, "sub/.astrarium-0123456789abcdef.tmp", ".astrarium-mine.tmp", "notes.tmp"] {
        place.file(name, "x");
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join(left), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), place.workspace().join("link")).unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    let age = |path: &str| {
        let file = fs::File::options().write(true).open(place.workspace().join(path)).unwrap();
        file.set_modified(old).unwrap();
    };
    age(left);
    let host = place.host().await;
    let script = "name: t\nsteps:\n- calls: [{ tool: version, input: { wait_ms: 60000 } }]\n- say: never\n";
    let model = Arc::new(Scripted::from_str("t", script).unwrap());
    let mut session = host.session(Which::New { title: "q" }, model).unwrap();
    host.store
        .replace_tasks(&session.id, &[task("alpha", TaskStatus::InProgress), task("beta", TaskStatus::Completed)])
        .unwrap();
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    let turn = ask(&mut session, "q", 5, &cancel, move |event| {
        if matches!(event, Event::CallStarted { .. }) {
            trigger.cancel();
        }
    })
    .await;
    assert_eq!(turn.outcome.reason, EndReason::Cancelled);
    let tasks = host.store.tasks(&session.id).unwrap();
    assert_eq!((tasks[0].status, tasks[1].status), (TaskStatus::Pending, TaskStatus::Completed));
    for gone in [left, "sub/.astrarium-0123456789abcdef.tmp"] {
        assert!(!place.workspace().join(gone).exists(), "{gone}");
    }
    for there in [".astrarium-mine.tmp", "notes.tmp"] {
        assert!(place.workspace().join(there).exists(), "{there}");
    }
    assert!(outside.path().join(left).exists(), "no link is followed");
}
