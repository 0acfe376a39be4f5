//! The audit as an operator reads it: every call, decision and turn of a plugin's life is there, nothing happens that cannot
//! be recorded, and who changes the record is found out.

use astrarium::audit::{Entry, Kind};
use astrarium::host::Host;
use astrarium::store::{AuditFilter, Verified};
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, guests, play};
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use tokio_util::sync::CancellationToken;

fn rows(host: &Host) -> Vec<Entry> {
    host.store.audit_rows(&AuditFilter::default()).unwrap().into_iter().map(|row| row.entry).collect()
}

fn of(host: &Host, kind: Kind) -> Vec<Entry> {
    rows(host).into_iter().filter(|entry| entry.kind == kind).collect()
}

/// Names and outcomes, as a story.
fn story(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| format!("{} {} {}", entry.what, entry.plugin, entry.outcome)).collect()
}

/// What someone with the file and a SQLite of his own can do.
fn by_hand(place: &Place, sql: &str) {
    Connection::open(place.home().join("astrarium.db")).unwrap().execute_batch(sql).unwrap();
}

async fn one(host: &Host, tool: &str, input: serde_json::Value) -> astrarium::tool_call::Finished {
    call(host, tool, input, &CancellationToken::new()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_leaves_every_call_hook_and_capability_on_the_audit() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    let script = "
name: a
steps:
- calls: [{ tool: file_write, input: { path: a.txt, content: hi } }, { tool: file_write, input: { path: .git/x, content: hi } }]
- calls: [{ tool: no_such_tool, input: {} }]
- say: done
";
    let (session, _) = play(&host, script, "q", 5).await;
    let all = rows(&host);
    let calls: Vec<&Entry> = all.iter().filter(|entry| entry.kind == Kind::Call).collect();
    let told: Vec<String> =
        calls.iter().map(|e| format!("{} {} {} {} {}", e.step, e.call, e.what, e.plugin, e.outcome)).collect();
    assert_eq!(
        told,
        [
            "1 call_1_1 file_write files begun",
            "1 call_1_1 file_write files ok",
            "1 call_1_2 file_write files refused",
            "2 call_2_1 no_such_tool  failed",
        ]
    );
    let digest = host.registry.snapshot().plugin("files").unwrap().digest().to_owned();
    let arguments = astrarium::audit::digest(&json!({ "path": "a.txt", "content": "hi" }));
    let done = calls[1];
    assert_eq!((&done.session, &done.digest, &done.arguments), (&session.id, &digest, &arguments));
    assert!(done.duration_us.unwrap() > 0 && done.memory.unwrap() > 1 << 16, "{done:?}");
    assert!(calls[2].reason.contains("protected"), "{:?}", calls[2]);
    // The gate's decision comes before the call that it is about, and names the tool.
    let gate: Vec<&Entry> = all.iter().filter(|entry| entry.what == "pre-tool-use").collect();
    let told: Vec<String> =
        gate.iter().map(|e| format!("{} {} {} {}", e.plugin, e.target, e.call, e.outcome)).collect();
    assert_eq!(told, ["guard file_write call_1_1 proceed", "guard file_write call_1_2 block"]);
    assert_eq!(gate[0].arguments, arguments);
    let place_of = |wanted: &Entry| all.iter().position(|entry| entry == wanted).unwrap();
    assert!(place_of(gate[0]) < place_of(calls[0]));
    // What the guest did with its grant, by the rule.
    let written: Vec<&Entry> = all
        .iter()
        .filter(|entry| entry.kind == Kind::Capability && entry.target == "/workspace/a.txt" && entry.plugin == "files")
        .collect();
    assert!(written.iter().any(|entry| entry.rule == "/workspace rw" && entry.outcome == "allowed"), "{written:?}");
    for hook in ["session-start", "step-complete", "session-stop"] {
        assert!(
            all.iter().any(|e| e.kind == Kind::Hook && e.what == hook && e.plugin == "step-log" && e.outcome == "ok")
        );
    }
    assert!(matches!(host.store.verify_audit(None).unwrap(), Verified::Whole(head) if head.seq == all.len() as u64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_guest_is_refused_is_there_with_the_rule() {
    let place = Place::bare();
    place.plugin("hostile").config("grants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n");
    let fifo = place.workspace().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let host = place.host().await;
    one(&host, "open_fifo", json!({})).await;
    let refused: Vec<Entry> = of(&host, Kind::Capability).into_iter().filter(|e| e.outcome == "refused").collect();
    let told: Vec<String> = refused.iter().map(|e| format!("{} {} by {}", e.what, e.target, e.rule)).collect();
    assert_eq!(told, ["fs /workspace/fifo by special files are not opened"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_is_stopped_leaves_its_time_and_memory() {
    let place = Place::bare();
    place.plugin("hostile").config(
        "limits: { tool_ms: 300, memory_mib: 32 }\ngrants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n",
    );
    let host = place.host().await;
    one(&host, "spin", json!({})).await;
    one(&host, "allocate", json!({})).await;
    one(&host, "panic", json!({ "message": "\u{202e}evil\u{9b}2J" })).await;
    let ended: Vec<Entry> = of(&host, Kind::Call).into_iter().filter(|entry| entry.outcome != "begun").collect();
    assert_eq!(story(&ended), ["spin hostile failed", "allocate hostile ok", "panic hostile failed"]);
    assert!(ended[0].duration_us.unwrap() >= 300_000 && ended[0].memory.unwrap() > 0, "{:?}", ended[0]);
    assert!(ended[1].memory.unwrap() > 16 << 20, "{:?}", ended[1]);
    let reason = &ended[2].reason;
    assert!(!reason.contains(['\u{202e}', '\u{9b}']) && reason.contains("evil"), "{reason}");
}

fn versioned(place: &Place, which: &str, manifest: &str) {
    let folder = place.plugins().join("versioned");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(guests().join(format!("versioned-{which}/versioned_{which}.wasm")), folder.join("new.tmp")).unwrap();
    fs::rename(folder.join("new.tmp"), folder.join("versioned.wasm")).unwrap();
    fs::write(folder.join("plugin.yaml"), manifest).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugins_life_is_told_once_and_in_order() {
    let place = Place::bare();
    versioned(&place, "a", "name: versioned\nversion: 1.0.0\n");
    let host = place.host().await;
    let other = place.host().await;
    // Nothing new: nothing is told, whoever looks.
    host.registry.refresh().await;
    versioned(&place, "b", "name: versioned\nversion: 1.1.0\n");
    host.registry.refresh().await;
    other.registry.refresh().await;
    fs::write(place.plugins().join("versioned/versioned.wasm"), b"\0asm").unwrap();
    host.registry.refresh().await;
    host.registry.refresh().await;
    versioned(&place, "b", "name: versioned\nversion: 1.1.0\n");
    host.registry.refresh().await;
    astrarium::config::set_disabled(&place.home(), "versioned", true).unwrap();
    let host = place.host().await;
    astrarium::config::set_disabled(&place.home(), "versioned", false).unwrap();
    let host_again = place.host().await;
    drop(host);
    fs::remove_dir_all(place.plugins().join("versioned")).unwrap();
    host_again.registry.refresh().await;
    place.host().await;
    let life: Vec<String> = of(&host_again, Kind::Plugin).iter().map(|e| format!("{} {}", e.what, e.outcome)).collect();
    assert_eq!(
        life,
        [
            "loaded live",
            "swapped live",
            "refused live",
            "changed live",
            "disabled disabled",
            "enabled live",
            "vanished gone"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_and_the_ratchet_are_told_with_what_was_granted() {
    let place = Place::bare();
    place.plugin("hostile");
    let grant = |mode: &str| {
        place.config(&format!("grants:\n- {{ plugin: hostile, fs: [{{ path: workspace, mode: {mode} }}] }}\n"));
    };
    let manifest = place.plugins().join("hostile/plugin.yaml");
    let asks_more = fs::read_to_string(&manifest).unwrap().replace("0.1.0", "0.2.0");
    let asks_less = asks_more.replace("mode: rw", "mode: ro").replace("0.2.0", "0.1.0");
    fs::write(&manifest, &asks_less).unwrap();
    place.host().await;
    grant("ro");
    let host = place.host().await;
    fs::write(&manifest, asks_more).unwrap();
    let lines = host.registry.refresh().await;
    assert!(lines.iter().any(|line| line.contains("asks for more")), "{lines:?}");
    host.registry.refresh().await;
    fs::write(&manifest, asks_less).unwrap();
    host.registry.refresh().await;
    place.config("grants: []\n");
    let host = place.host().await;
    let told: Vec<String> = of(&host, Kind::Plugin)
        .iter()
        .map(|e| {
            let life = e.life.as_ref().unwrap();
            format!("{} {} {} {}", e.what, e.outcome, life.version, life.granted.contains("mode: ro"))
        })
        .collect();
    let expected = [
        "loaded waiting 0.1.0 false",
        "granted live 0.1.0 true",
        "held-back live 0.1.0 true",
        "changed live 0.1.0 true",
        "revoked waiting 0.1.0 false",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_be_recorded_does_not_run() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    by_hand(&place, "create trigger full before insert on audit begin select raise(abort, 'disk is full'); end");
    let finished = one(&host, "file_write", json!({ "path": "a.txt", "content": "x" })).await;
    assert_eq!(finished.status, CallStatus::Refused, "{finished:?}");
    let text = text_of(&finished.parts);
    assert!(text.contains("recorded") && text.contains("did not run") && text.contains("disk is full"), "{text}");
    assert!(!place.workspace().join("a.txt").exists());
    by_hand(&place, "drop trigger full");
    assert_eq!(one(&host, "file_write", json!({ "path": "a.txt", "content": "x" })).await.status, CallStatus::Ok);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_cannot_be_recorded_is_withheld() {
    let place = Place::new();
    place.file("secret.txt", "the secret").config("language: en\n");
    let host = place.host().await;
    by_hand(
        &place,
        "create trigger full before insert on audit when new.entry ->> 'outcome' = 'ok'
         begin select raise(abort, 'disk is full'); end",
    );
    let finished = one(&host, "read_file", json!({ "path": "secret.txt" })).await;
    let text = text_of(&finished.parts);
    assert_eq!(finished.status, CallStatus::Failed, "{text}");
    assert!(text.contains("withheld") && !text.contains("the secret"), "{text}");
}

#[test]
fn the_program_shows_follows_and_verifies() {
    let place = Place::new();
    place.file("a.txt", "hello").config("language: en\n");
    assert_eq!(place.run(&["tool", "call", "read_file", r#"{"path":"a.txt"}"#]).status, 0);
    place.run(&["plugin", "disable", "planner"]);
    let shown = place.run(&["audit"]);
    assert!(shown.status == 0 && shown.stdout.contains("read_file") && shown.stdout.contains("operator"), "{shown:?}");
    let lines = place.run(&["audit", "--json", "--plugin", "files"]);
    let documents: Vec<serde_json::Value> =
        lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(documents.iter().all(|document| document["plugin"] == "files"), "{lines:?}");
    assert!(documents.iter().any(|document| document["what"] == "read_file" && document["outcome"] == "ok"));
    let verified = place.run(&["audit", "verify", "--json"]).json();
    assert_eq!(verified["whole"], true);
    let noted = format!("{}:{}", verified["rows"], verified["hash"].as_str().unwrap());
    assert_eq!(place.run(&["audit", "verify", "--since", &noted]).status, 0);
    assert_eq!(place.run(&["audit", "verify", "--since", "nonsense"]).status, 2);

    let mut following = place.command(&["audit", "--follow", "--last", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(seen.next().unwrap().unwrap().contains("disable"), "the last row there is");
    place.run(&["plugin", "enable", "planner", "--yes"]);
    assert!(seen.next().unwrap().unwrap().contains("enable"), "the next as it comes");
    following.kill().unwrap();
    following.wait().unwrap();

    by_hand(&place, "drop trigger audit_unchanged; update audit set entry = '{}' where seq = 2");
    let broken = place.run(&["audit", "verify"]);
    assert!(broken.status == 1 && broken.stderr.contains("row 2 is not as it was written"), "{broken:?}");
    let sick = place.run(&["doctor"]);
    assert!(sick.stdout.contains("audit") && sick.stdout.contains("audit_unchanged"), "{sick:?}");
    // It reads where the host does not open.
    place.config("nonsense: [\n");
    assert_eq!(place.run(&["audit", "--last", "1"]).status, 0);
}

#[test]
fn two_processes_at_once_keep_one_chain() {
    let place = Place::new();
    place.file("a.txt", "hello").config("language: en\n");
    place.run(&["plugin", "list"]);
    let running: Vec<_> = (0..4)
        .map(|_| {
            place.command(&["tool", "call", "read_file", r#"{"path":"a.txt"}"#]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut process in running {
        assert!(process.wait().unwrap().success());
    }
    let verified = place.run(&["audit", "verify", "--json"]).json();
    assert_eq!(verified["whole"], true, "{verified}");
    let lines = place.run(&["audit", "--json", "--all"]).stdout;
    let ended = lines.lines().filter(|line| line.contains("read_file") && line.contains("\"outcome\":\"ok\"")).count();
    assert_eq!(ended, 4);
}
