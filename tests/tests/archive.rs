//! Sessions that travel: exported and imported without loss, refused when damaged, branched where nothing is torn, removed.

use astrarium::archive::{self, ArchiveError};
use astrarium::host::{Host, Which};
use astrarium::model::scripted::Scripted;
use astrarium::store::{Task, TaskStatus};
use astrarium_tests::laws::assert_accepted;
use astrarium_tests::place::{Place, go_on, play};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

fn place() -> Place {
    let place = Place::new();
    place.plugin("echo").config("language: en\ncontext_window: 20000\ngrants:\n- { plugin: echo, kv: true }\n");
    place
}

/// A session with everything: calls, a kept result, tasks, a plugin's own keys, compactions, a ledger.
async fn full_session(host: &Host) -> String {
    let mut script = String::from("name: t\nat_limit: \"<summary>1. Goal: kept</summary>\"\nsteps:\n");
    script
        .push_str("- calls: [{ tool: large, input: { kind: lines, bytes: 400000 } }, { tool: kv_count, input: {} }]\n");
    for step in 0..60 {
        let text = format!("{step} 星 {}", "measured ".repeat(60));
        writeln!(script, "- calls: [{{ tool: echo, input: {{ text: \"{text}\" }} }}]").unwrap();
    }
    script.push_str("- say: done\n");
    let (session, turn) = play(host, &script, "Always be brief. Measure it.", 90).await;
    assert_eq!(turn.outcome.answer, "done", "{:?}", turn.outcome.error);
    assert!(host.store.compactions(&session.id).unwrap().iter().any(|done| done.layer.is_some()));
    let task = Task {
        id: "a".into(),
        content: "measure".into(),
        status: TaskStatus::InProgress,
        depends_on: vec![],
        assignee: Some("me".into()),
    };
    host.store.replace_tasks(&session.id, &[task]).unwrap();
    host.store.set_skill_view(&session.id, "{}").unwrap();
    session.id.clone()
}

fn exported(host: &Host, id: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    archive::export(&host.store, &|id: &str| host.options.session_folder(id), id, &mut bytes).unwrap();
    bytes
}

fn import(host: &Host, bytes: &[u8], copy: bool) -> Result<String, ArchiveError> {
    let folder = |id: &str| host.options.session_folder(id);
    archive::import(&host.store, &folder, &mut &bytes[..], copy).map(|taken| taken.id)
}

fn files(host: &Host, id: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(host.options.session_folder(id)) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (PathBuf::from(entry.file_name()), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_imported_is_what_was_exported_row_by_row_and_goes_on() {
    let (here, there) = (place(), place());
    let (host, other) = (here.host().await, there.host().await);
    let id = full_session(&host).await;
    let bytes = exported(&host, &id);
    assert_eq!(import(&other, &bytes, false).unwrap(), id);
    let tables: std::collections::BTreeSet<String> =
        host.store.session_rows(&id).unwrap().into_iter().map(|row| row.table).collect();
    for table in ["sessions", "messages", "calls", "tasks", "kv", "epochs", "prefixes", "requests", "compactions"] {
        assert!(tables.contains(table), "{table} is not in {tables:?}, so this shows nothing of it");
    }
    assert_eq!(other.store.session_rows(&id).unwrap(), host.store.session_rows(&id).unwrap());
    assert_eq!(files(&other, &id), files(&host, &id));
    assert_eq!(files(&host, &id).len(), 1);
    assert_eq!(exported(&other, &id), bytes, "and so does a second journey");

    // It is refused where it is, and taken in as a copy.
    assert!(matches!(import(&other, &bytes, false), Err(ArchiveError::Exists(_))));
    let copy = import(&other, &bytes, true).unwrap();
    assert_ne!(copy, id);
    assert_eq!(other.store.messages(&copy).unwrap(), host.store.messages(&id).unwrap());

    // It goes on with the same view, and its calls do not run again.
    let model = || Arc::new(Scripted::from_str("t", "name: t\nsteps:\n- say: on\n").unwrap());
    let seen = host.session(Which::Named(&id), model()).unwrap().conversation().to_vec();
    assert_eq!(other.session(Which::Named(&id), model()).unwrap().conversation(), seen);
    let (session, turn) = go_on(&other, &id, "- say: on\n").await;
    assert_eq!((turn.outcome.answer.as_str(), turn.outcome.tool_calls), ("on", 0));

    // Removed, nothing is left of it.
    drop(session);
    other.store.remove_session(&id).unwrap();
    assert!(other.store.session_rows(&id).unwrap().is_empty());
    assert!(!other.store.session_rows(&copy).unwrap().is_empty(), "the copy stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused_by_its_line_and_leaves_nothing() {
    let (here, there) = (place(), place());
    let (host, other) = (here.host().await, there.host().await);
    let id = full_session(&host).await;
    let bytes = exported(&host, &id);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let refused = |bytes: &[u8], what: &str| {
        let error = import(&other, bytes, false).expect_err(what).to_string();
        assert!(other.store.sessions().unwrap().is_empty(), "{what}: {error}");
        let left = fs::read_dir(other.options.home.join("sessions")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{what}: {error}");
        error
    };
    for at in (0..lines.len()).step_by(7).chain([lines.len() - 1]) {
        let number = at + 1;
        let with = |line: &[u8]| [&lines[..at].concat(), line, &lines[at + 1..].concat()].concat();
        let cut = [&lines[..at].concat(), &lines[at][..lines[at].len() / 2]].concat();
        let error = refused(&cut, "cut in a line");
        assert!(error.starts_with(&format!("line {number}: ")) && error.contains("export"), "{error}");
        let error = refused(&with(b"{\"table\": 7}\n"), "another line");
        assert!(error.starts_with(&format!("line {number}: ")), "{error}");
        refused(&with(b""), "a line left out");
        if at > 0 {
            let error = refused(&lines[..at].concat(), "cut between lines");
            assert!(error.contains(&format!("line {number}: the file ends before its last line")), "{error}");
        }
    }
    // A byte that still reads is noticed by the seal.
    let text = String::from_utf8(bytes.clone()).unwrap();
    let error = refused(text.replacen("measured measured", "measured Measured", 1).as_bytes(), "a word changed");
    assert!(error.contains(&format!("line {}: a line before this one was changed", lines.len())), "{error}");
    let error = refused(&[bytes.as_slice(), b"{}\n"].concat(), "more after the end");
    assert!(error.starts_with(&format!("line {}: ", lines.len() + 1)), "{error}");
    let error = refused(text.replacen("\"astrarium_session\":2", "\"astrarium_session\":3", 1).as_bytes(), "newer");
    assert!(error.contains("newer Astrarium (format 3"), "{error}");
    let newer = format!("\"schema\":{}", astrarium::store::schema_version() + 1);
    let schema = format!("\"schema\":{}", astrarium::store::schema_version());
    let error = refused(text.replacen(&schema, &newer, 1).as_bytes(), "newer");
    assert!(error.contains("newer Astrarium (schema"), "{error}");
    refused(b"", "nothing");
    refused(b"hello\n", "no session");
    assert!(import(&other, &bytes, false).is_ok(), "the whole one is taken in after all that");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_branches_after_any_message_where_nothing_is_torn() {
    let place = place();
    let host = place.host().await;
    let id = full_session(&host).await;
    let folder = |id: &str| host.options.session_folder(id);
    let messages = host.store.messages(&id).unwrap();
    let (mut forked, mut torn) = (0, 0);
    for at in 0..=messages.len() as u64 + 1 {
        match archive::fork(&host.store, &folder, &id, Some(at)) {
            Ok(new) => {
                forked += 1;
                assert_eq!(host.store.messages(&new).unwrap(), messages[..at as usize]);
                assert_eq!(files(&host, &new), files(&host, &id));
                if forked % 9 == 0 {
                    let (session, turn) = go_on(&host, &new, "- say: a branch\n").await;
                    assert_eq!(turn.outcome.answer, "a branch", "{at}: {:?}", turn.outcome.error);
                    assert_accepted(session.conversation());
                }
            }
            Err(ArchiveError::Torn { reason, .. }) => {
                torn += 1;
                assert!(reason.contains("it can after") || reason.contains("it has") || at == 0, "{reason}");
            }
            Err(error) => panic!("{at}: {error}"),
        }
    }
    assert!(forked > 50 && torn > 50, "{forked} {torn}");
    // The one that was branched is as it was.
    assert_eq!(host.store.messages(&id).unwrap(), messages);
}

#[test]
fn the_commands_take_a_session_from_home_to_home() {
    let (here, there) = (Place::new(), Place::new());
    let model = here.script("name: two\nsteps:\n- say: first answer\n- say: second answer\n");
    let ran = here.run(&["run", "hello", "--model", &model, "--output", "json"]);
    let id = ran.json()["session"].as_str().unwrap().to_owned();
    let file = here.workspace().join("session.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(here.run(&["session", "export", &id, file]).status, 0);
    let again = here.run(&["session", "export", &id, file]);
    assert!(again.status != 0 && again.stderr.contains("not there yet"), "a file is never written over: {again:?}");
    let taken = there.run(&["session", "import", file]);
    assert_eq!((taken.status, taken.stdout.trim()), (0, id.as_str()), "{taken:?}");
    let go_on = there.run(&["run", "more", "--session", &id, "--model", &model, "--output", "json"]);
    assert_eq!(go_on.json()["answer"], "second answer", "{go_on:?}");

    let fork = there.run(&["session", "fork", &id, "--at", "2"]);
    let branch = fork.stdout.trim().to_owned();
    assert_eq!(there.run(&["session", "show", &branch, "--json"]).json()["messages"].as_array().unwrap().len(), 2);
    let beyond = there.run(&["session", "fork", &id, "--at", "9"]);
    assert!(beyond.status != 0 && beyond.stderr.contains("it has 4"), "{beyond:?}");
    assert_eq!(there.run(&["session", "remove", &id]).status, 0);
    assert!(there.run(&["session", "show", &id]).stderr.contains("no session"));
    assert_eq!(there.run(&["session", "show", &branch]).status, 0);
    let none = there.run(&["session", "import", "nothing.jsonl"]);
    assert!(none.status != 0 && none.stderr.contains("nothing.jsonl"), "{none:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_go_with_the_session_that_they_worked_for() {
    let (here, there) = (place(), place());
    let (host, other) = (here.host().await, there.host().await);
    let script = "name: t\nsteps:\n\
        - calls: [{ tool: subagent, input: { task: look at the lines } }]\n\
        - calls: [{ tool: large, input: { kind: lines, bytes: 400000 } }]\n\
        - say: many lines\n\
        - say: done\n";
    let (session, turn) = play(&host, script, "what is there?", 20).await;
    assert_eq!(turn.outcome.answer, "done", "{:?}", turn.outcome.error);
    let id = session.id.clone();
    drop(session);
    let [agent] = &host.store.agents_of(&id).unwrap()[..] else { panic!("one agent worked") };
    assert_eq!(files(&host, &agent.session).len(), 1, "with a kept result of its own");

    let bytes = exported(&host, &id);
    assert_eq!(import(&other, &bytes, false).unwrap(), id);
    assert_eq!(other.store.session_rows(&id).unwrap(), host.store.session_rows(&id).unwrap());
    assert_eq!(&other.store.agents_of(&id).unwrap()[..], std::slice::from_ref(agent));
    assert_eq!(files(&other, &agent.session), files(&host, &agent.session));

    let copy = import(&other, &bytes, true).unwrap();
    let [copied] = &other.store.agents_of(&copy).unwrap()[..] else { panic!("its agent came along") };
    assert_ne!(copied.session, agent.session);
    assert_eq!(files(&other, &copied.session), files(&host, &agent.session));
    assert_eq!(other.store.messages(&copied.session).unwrap(), host.store.messages(&agent.session).unwrap());

    // Without the session that it worked for, an agent's is a session like any other.
    let alone = exported(&host, &agent.session);
    let refused = import(&other, &alone, false).unwrap_err().to_string();
    assert!(refused.contains("is in this home already"), "{refused}");
    let alone = import(&other, &alone, true).unwrap();
    assert!(other.store.agent(&alone).unwrap().is_none());

    other.store.remove_session(&copy).unwrap();
    assert!(other.store.messages(&copied.session).unwrap().is_empty(), "and they go with it");
    // A file whose agent's rows were given to another one.
    let text = String::from_utf8(bytes).unwrap();
    let line = text.lines().position(|line| line.contains("\"messages\"") && line.contains(&agent.session)).unwrap();
    let torn: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(at, text)| if at == line { text.replace(&agent.session, &id) } else { text.to_owned() })
        .collect();
    let refused =
        import(&place().host().await, format!("{}\n", torn.join("\n")).as_bytes(), false).unwrap_err().to_string();
    assert!(refused.contains(&format!("line {}", line + 1)) && refused.contains("among those of"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_would_not_be_taken_in_again_is_not_let_out() {
    let place = place();
    let host = place.host().await;
    let (session, _) = play(&host, "name: t\nsteps:\n- say: hi\n", "hello", 5).await;
    let database = rusqlite::Connection::open(place.home().join("astrarium.db")).unwrap();
    database.execute("update messages set message = 'garbage' where seq = 1", []).unwrap();
    let folder = |id: &str| host.options.session_folder(id);
    let refused = archive::export(&host.store, &folder, &session.id, &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("message 1 of session") && refused.contains("put a copy of the database"), "{refused}");
}
