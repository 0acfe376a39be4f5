//! Large results: kept in a file of their session, pointed to, opened by the file tools, and by no other session.

use astrarium::compact::Trigger;
use astrarium::compaction::{self, Work};
use astrarium::host::Host;
use astrarium::session::Session;
use astrarium::transcript::{Block, Part, Usage};
use astrarium_tests::place::{Place, go_on, play};
use std::fmt::Write as _;
use std::fs;
use tokio_util::sync::CancellationToken;

const MIB: usize = 1 << 20;

fn place(config: &str) -> Place {
    let place = Place::new();
    place.plugin("echo").config(&format!("language: en\ngrants:\n- {{ plugin: echo, kv: true }}\n{config}"));
    place
}

fn large(kind: &str, bytes: usize) -> String {
    format!("- calls: [{{ tool: large, input: {{ kind: {kind}, bytes: {bytes} }} }}]\n")
}

fn read(path: &str, rest: &str) -> String {
    format!("- calls: [{{ tool: read_file, input: {{ path: \"{path}\"{rest} }} }}]\n")
}

fn done(steps: &str) -> String {
    format!("{steps}- say: done\n")
}

/// The pointers of a conversation, in order.
fn pointers(session: &Session) -> Vec<(String, String)> {
    let blocks = session.conversation().iter().flat_map(|message| &message.content);
    let parts = blocks.filter_map(|block| match block {
        Block::ToolResult { parts, .. } => Some(parts),
        _ => None,
    });
    let files = parts.flatten().filter_map(|part| match part {
        Part::File { path, note } => Some((path.clone(), note.clone().unwrap_or_default())),
        _ => None,
    });
    files.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_megabytes_are_a_pointer_that_opens_at_any_line_also_after_resume_and_compaction() {
    let place = place("");
    let host = place.host().await;
    let (session, turn) =
        play(&host, &format!("name: t\nsteps:\n{}- say: ok\n", large("lines", 10 * MIB)), "q", 9).await;
    assert_eq!(turn.outcome.answer, "ok", "{:?}", turn.outcome.error);
    let [(path, note)] = &pointers(&session)[..] else { panic!("{:?}", session.conversation()) };
    let seen = turn.outputs("large").join("");
    assert!(seen.len() < 20_000 && seen.starts_with("line 1:") && seen.contains(path.as_str()), "{}", seen.len());
    let lines: usize = note.split(" lines").next().and_then(|head| head.rsplit(' ').next()).unwrap().parse().unwrap();
    assert!(seen.trim_end().contains(&format!("line {lines}:")), "the end stands there too");
    let file = host.options.session_folder(&session.id).join(path.strip_prefix("/session/").unwrap());
    assert!(fs::metadata(&file).unwrap().len() as usize >= 10 * MIB - 64);

    // Resumed: the path is given to the tool as it stands there.
    let id = session.id.clone();
    drop(session);
    let middle = lines / 2;
    let steps = read(path, &format!(", offset: {middle}, limit: 2")) + &read(path, &format!(", offset: {lines}"));
    let (mut session, turn) = go_on(&host, &id, &done(&steps)).await;
    let read_back = turn.outputs("read_file");
    assert!(read_back[0].contains(&format!("{middle}\tline {middle}:")), "{read_back:?}");
    assert!(read_back[0].contains(&format!("go on with offset {}", middle + 2)), "{read_back:?}");
    assert!(read_back[1].contains(&format!("line {lines}:")), "{read_back:?}");

    // Compacted: the pointer stays, whatever the layer, and still opens.
    let cancel = CancellationToken::new();
    for step in 0..30 {
        let text = format!("step {step} {}", "word ".repeat(200));
        session.append(astrarium::transcript::Message::user(text), None).unwrap();
    }
    let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
    let made = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await;
    let shown: String =
        session.conversation().iter().map(|message| serde_json::to_string(&**message).unwrap()).collect();
    assert!(made.is_ok() && shown.contains(path.as_str()), "{made:?} {shown}");
    drop(session);
    let (_, turn) = go_on(&host, &id, &done(&read(path, ", limit: 1"))).await;
    assert!(turn.outputs("read_file")[0].contains("line 1:"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_session_and_no_other_way_opens_them() {
    let place = place("");
    let mut options = place.options();
    // The home lies in the workspace, so that its path can be named.
    options.workspace = place.home().parent().unwrap().to_owned();
    let host = Host::open(options).await.unwrap();
    let (session, _) = play(&host, &format!("name: t\nsteps:\n{}- say: ok\n", large("lines", MIB)), "q", 9).await;
    let path = pointers(&session)[0].0.clone();
    let real = host.options.session_folder(&session.id).join(path.strip_prefix("/session/").unwrap());
    assert!(real.exists());
    let relative = real.strip_prefix(&host.options.workspace).unwrap().display().to_string();
    let file_write = format!("- calls: [{{ tool: file_write, input: {{ path: \"{path}\", content: x }} }}]\n");
    let grep = "- calls: [{ tool: grep_files, input: { pattern: \"line 1:\", path: /session } }]\n";
    let climb = read("/session/../astrarium.yaml", "");
    let own = [read(&path, ", limit: 1"), read(&relative, ""), file_write, grep.into(), climb].concat();
    let id = session.id.clone();
    drop(session);
    let (_, turn) = go_on(&host, &id, &done(&own)).await;
    let read_file = turn.outputs("read_file");
    assert!(read_file[0].contains("line 1:"), "{read_file:?}");
    assert!(read_file[1].contains("not allowed"), "by its real path: {read_file:?}");
    assert!(!read_file[2].contains("language"), "{read_file:?}");
    let written = turn.outputs("file_write");
    assert!(written[0].contains("outside the workspace"), "{written:?}");
    assert!(turn.outputs("grep_files")[0].contains("1: 两次测量"), "{:?}", turn.outputs("grep_files"));
    assert_eq!(fs::read_to_string(&real).unwrap().lines().next(), Some("line 1: 两次测量的结果一致"));

    let script = format!("name: t\nsteps:\n{}{}- say: ok\n", large("json", MIB), read(&path, ""));
    let (other, turn) = play(&host, &script, "q", 9).await;
    assert_ne!(pointers(&other)[0].0, path, "the ids differ, so this says something");
    assert!(turn.outputs("read_file")[0].contains("another session's"), "{:?}", turn.outputs("read_file"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_and_one_long_line_are_laid_out_so_that_they_can_be_read() {
    let place = place("");
    let host = place.host().await;
    let steps = large("json", 2 * MIB) + &large("line", 2 * MIB) + &large("picture", MIB);
    let (session, _) = play(&host, &format!("name: t\nsteps:\n{steps}- say: ok\n"), "q", 9).await;
    let pointers = pointers(&session);
    let endings: Vec<&str> = pointers.iter().map(|(path, _)| path.rsplit('.').next().unwrap()).collect();
    assert_eq!(endings, ["json", "txt", "png"], "{pointers:?}");
    let id = session.id.clone();
    let folder = host.options.session_folder(&id);
    let bytes = fs::read(folder.join(pointers[2].0.strip_prefix("/session/").unwrap())).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() == MIB + 8, "a picture is kept as it was");
    drop(session);
    let steps: String = pointers.iter().map(|(path, _)| read(path, ", offset: 5000, limit: 2")).collect();
    let (_, turn) = go_on(&host, &id, &done(&steps)).await;
    let read_back = turn.outputs("read_file");
    assert!(read_back[0].contains("\"n\": ") || read_back[0].contains("\"s\": "), "{read_back:?}");
    assert!(!read_back[0].contains("were cut"), "{read_back:?}");
    assert!(read_back[1].contains("there is no line 5,000") || read_back[1].contains("word word"), "{read_back:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_window_gets_small_results_and_a_full_folder_drops_the_oldest() {
    let place = place("context_window: 20000\nlimits: { kept_bytes: 3000000 }\n");
    let host = place.host().await;
    let mut script = String::from("name: t\nat_limit: ok\nsteps:\n");
    script.push_str(&large("lines", 12_000));
    for _ in 0..4 {
        script.push_str(&large("lines", MIB));
    }
    writeln!(script, "- say: ok").unwrap();
    let (session, turn) = play(&host, &script, "q", 9).await;
    assert_eq!(turn.outcome.answer, "ok", "{:?}", turn.outcome.error);
    let outputs = turn.outputs("large");
    assert!(outputs.iter().all(|seen| seen.contains("/session/") && seen.len() < 10_500), "half a byte a token");
    let kept: u64 = fs::read_dir(host.options.session_folder(&session.id))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept <= 3_000_000 && kept > 2 * MIB as u64, "{kept}");
}
