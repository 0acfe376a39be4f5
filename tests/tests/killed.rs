//! The host killed at any moment, 200 times, and resumed: nothing answered is lost, what was interrupted is said to be, and
//! nothing runs twice. Effects are lines of a file, and every call writes a line of its own.

use astrarium::compact::Layer;
use astrarium::store::{NewSession, Store};
use astrarium::transcript::{Block, Message, Part};
use astrarium_tests::laws::assert_accepted;
use astrarium_tests::place::{Place, Ran, program};
use astrarium_tests::strict::{Form, KEY, Piece, Said, Strict};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often a host is killed, over all sessions.
const KILLS: usize = 200;
/// Sessions side by side, each in a home of its own.
const SESSIONS: usize = 4;
/// Steps of a script: more than any run comes to.
const STEPS: usize = 40;

/// What a run said before it was killed: lines of calls that began, and of those that answered.
#[derive(Default)]
struct Told {
    started: BTreeSet<String>,
    answered: BTreeSet<String>,
}

#[test]
fn a_host_that_is_killed_anywhere_loses_no_answer_and_runs_nothing_twice() {
    let given = std::env::var("ASTRARIUM_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed: u64 = given.unwrap_or_else(now) | 1;
    eprintln!("killed at random: ASTRARIUM_SEED={seed}");
    let totals: Vec<BTreeMap<&str, usize>> = thread::scope(|scope| {
        let running: Vec<_> = (0..SESSIONS)
            .map(|at| scope.spawn(move || one_session(seed.wrapping_mul(2 * at as u64 + 3) | 1)))
            .collect();
        running.into_iter().map(|session| session.join().unwrap_or_else(|_| panic!("ASTRARIUM_SEED={seed}"))).collect()
    });
    let sum = |name: &str| totals.iter().map(|totals| totals[name]).sum::<usize>();
    let counted = ["kills", "answered", "interrupted", "compactions"].map(|name| (name, sum(name)));
    eprintln!("{counted:?}");
    assert_eq!(sum("kills"), KILLS, "{counted:?}");
    assert!(sum("answered") > KILLS / 4, "it was killed too early to show anything: ASTRARIUM_SEED={seed} {counted:?}");
    assert!(sum("interrupted") > 0 && sum("compactions") > 0, "nothing was cut off: ASTRARIUM_SEED={seed} {counted:?}");
}

fn one_session(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut random = fastrand::Rng::with_seed(seed);
    let place = Place::bare();
    place.plugin("hostile").config(
        "language: en\ncontext_window: 20000\ngrants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n",
    );
    let store = Store::open(&place.home().join("astrarium.db")).unwrap();
    let id = store.create_session(&NewSession { model: "scripted:t", workspace: "w", title: "t" }).unwrap();
    let mut told = Told::default();
    let mut kills = 0;
    for run in 0..3 * KILLS / SESSIONS {
        // One that came to its end before it was killed shows nothing, so another takes its place.
        kills += usize::from(killed_run(&place, &id, run, &mut random, &mut told));
        if kills == KILLS / SESSIONS {
            break;
        }
    }
    // One that is let be: the session is mended, and answers.
    let end = place.script(&format!("name: t\nsteps:\n{}", "- say: the end\n".repeat(STEPS * 180)));
    let last = place.run(&["run", "and now", "--session", &id, "--model", &end, "--output", "json"]);
    assert_eq!((last.status, last.json()["answer"].as_str()), (0, Some("the end")), "{last:?}");
    let verified = place.run(&["audit", "verify"]);
    assert_eq!(verified.status, 0, "{verified:?}");
    let mut totals = judge(&place, &store, &id, &told);
    totals.insert("kills", kills);
    totals
}

/// The summary is asked for inside of a turn, and the host dies while it is being written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_killed_while_a_summary_is_written_goes_on_from_where_it_was() {
    let place = Place::bare();
    place.plugin("hostile").config(
        "language: en\ncontext_window: 16000\ngrants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n",
    );
    let server = Strict::start().await;
    let more = "measured ".repeat(400);
    for step in 0..30 {
        let input = serde_json::json!({ "line": format!("s{step}"), "more": more }).to_string();
        server.plan(Said::new([Piece::Call(format!("toolu_{step}").leak(), "append", input.leak())]));
    }
    let summary = Said::new([Piece::Text("<summary>1. Goal: lines. 2. Done: some of them.</summary>")]);
    let stalled = summary.clone().form(Form { stall: Some(300), ..Form::default() });
    server.when(HEADINGS, stalled);
    let command = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.address());
        command
    };
    let mut child = command(&["run", "write lines", "--model", "anthropic:strict-1", "--max-steps", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let asked = || server.requests().last().is_some_and(|request| request.to_string().contains(HEADINGS));
    while !asked() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it asked for a summary");
        tokio::task::yield_now().await;
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));

    let written = || std::fs::read_to_string(place.workspace().join("effects")).unwrap().lines().count();
    let before = written();
    let sessions = place.run(&["session", "list", "--json"]).json();
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    let store = Store::open(&place.home().join("astrarium.db")).unwrap();
    assert!(store.compactions(&id).unwrap().is_empty(), "half a summary is none");
    assert_accepted(&store.messages(&id).unwrap());

    server.when(HEADINGS, summary);
    server.forget();
    server.plan(Said::new([Piece::Text("all written")]));
    let mut again = command(&["run", "go on", "--session", &id, "--model", "anthropic:strict-1", "--output", "json"]);
    let ran = tokio::task::spawn_blocking(move || Ran::of(again.output().unwrap())).await.unwrap();
    assert_eq!((ran.status, ran.json()["answer"].as_str()), (0, Some("all written")), "{ran:?}");
    assert_eq!((written(), server.violations()), (before, vec![]), "nothing ran twice");
    let done = store.compactions(&id).unwrap();
    assert!(done.len() == 1 && done[0].layer == Some(Layer::Summary), "{done:?}");
}

/// What every question for a summary contains.
const HEADINGS: &str = "under exactly these five headings";

/// Runs the host and kills it at a random moment: some time after it was started, or after a number of its lines. Whether it
/// was killed, and had not ended by itself.
fn killed_run(place: &Place, id: &str, run: usize, random: &mut fastrand::Rng, told: &mut Told) -> bool {
    let mut script = String::from("name: t\nat_limit: \"<summary>1. Goal: lines</summary>\"\nsteps:\n");
    for step in 0..STEPS {
        let more = "measured ".repeat(120);
        writeln!(
            script,
            "- calls: [{{ tool: append, input: {{ line: r{run}s{step}a, more: \"{more}\" }} }}, {{ tool: ok }}, \
             {{ tool: append, input: {{ line: r{run}s{step}b }} }}]"
        )
        .unwrap();
    }
    let model = place.script(&script);
    let arguments =
        ["run", "go on", "--session", id, "--model", &model, "--output", "stream-json", "--max-steps", "99"];
    assert!(program().exists());
    let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (lines_to_see, pause) = match random.u64(..3) {
        0 => (u64::MAX, Duration::from_micros(random.u64(..600_000))),
        _ => (random.u64(..60), Duration::from_micros(random.u64(..8_000))),
    };
    let child = std::sync::Mutex::new(child);
    let (seen, saw) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let child = &child;
        scope.spawn(move || {
            // Either the lines that it waits for were seen, or it ended, or its time is over.
            let until = Instant::now() + if lines_to_see == u64::MAX { pause } else { Duration::from_secs(20) };
            let _ = saw.recv_timeout(until.saturating_duration_since(Instant::now()));
            if lines_to_see != u64::MAX {
                thread::sleep(pause);
            }
            let _ = child.lock().unwrap().kill();
        });
        for (count, line) in lines.enumerate() {
            if count as u64 == lines_to_see {
                let _ = seen.send(());
            }
            // The last line may be cut.
            let Some(event) = line.ok().and_then(|line| serde_json::from_str::<Value>(&line).ok()) else { break };
            note(&event, told);
        }
        drop(seen);
    });
    let status = child.into_inner().unwrap().wait().unwrap();
    status.signal() == Some(9)
}

fn note(event: &Value, told: &mut Told) {
    let line = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    match event["type"].as_str() {
        Some("call_started") if event["tool"] == "append" => {
            told.started.insert(event["input"]["line"].as_str().unwrap().to_owned());
        }
        Some("call_finished") if event["tool"] == "append" && event["status"] == "ok" => {
            told.answered.insert(line(event["output"].as_str().unwrap()));
        }
        _ => {}
    }
}

/// Holds what is on record against what took effect and what was told.
fn judge(place: &Place, store: &Store, id: &str, told: &Told) -> BTreeMap<&'static str, usize> {
    let mut effects: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(place.workspace().join("effects")).unwrap_or_default().lines() {
        *effects.entry(line.to_owned()).or_default() += 1;
    }
    let messages = store.messages(id).unwrap();
    let copies: Vec<(usize, usize)> = store
        .compactions(id)
        .unwrap()
        .iter()
        .filter(|done| done.layer.is_some())
        .map(|done| (done.first as usize, (done.first + done.messages) as usize))
        .collect();
    let said: Vec<&Message> = messages
        .iter()
        .enumerate()
        .filter(|(at, _)| !copies.iter().any(|(from, to)| (*from..*to).contains(at)))
        .map(|(_, message)| message)
        .collect();
    let first = copies.last().map_or(0, |(from, _)| *from);
    assert_accepted(&messages[first..]);
    let mut results: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    let (mut answered, mut interrupted) = (BTreeSet::new(), BTreeSet::new());
    for pair in said.windows(2) {
        results.clear();
        for block in &pair[1].content {
            if let Block::ToolResult { id, parts, is_error } = block {
                results.insert(id, (parts.iter().map(Part::as_text).collect(), *is_error));
            }
        }
        for block in &pair[0].content {
            let Block::ToolUse { id, name, input, .. } = block else { continue };
            let (text, is_error) = results.get(id.as_str()).unwrap_or_else(|| panic!("{id} has no result"));
            if name != "append" {
                continue;
            }
            let line = input["line"].as_str().unwrap();
            let count = effects.get(line).copied().unwrap_or_default();
            match (is_error, text.as_str()) {
                (false, _) => {
                    assert!(text.starts_with(line), "{line}: {text}");
                    assert_eq!(count, 1, "{line} answered");
                    answered.insert(line.to_owned());
                }
                (true, text) if text.contains("had not begun") => assert_eq!(count, 0, "{line}: {text}"),
                (true, text) => {
                    assert!(text.contains("may or may not have taken effect"), "{line}: {text}");
                    assert!(count <= 1, "{line} took effect {count} times");
                    interrupted.insert(line.to_owned());
                }
            }
        }
    }
    for (line, count) in &effects {
        assert_eq!(*count, 1, "{line} took effect more than once");
        assert!(answered.contains(line) || interrupted.contains(line), "{line} took effect and is not on record");
    }
    let lost: Vec<&String> = told.answered.difference(&answered).collect();
    assert!(lost.is_empty(), "answered and lost: {lost:?}");
    let known: BTreeSet<String> = said
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolUse { name, input, .. } if name == "append" => input["line"].as_str().map(str::to_owned),
            _ => None,
        })
        .collect();
    let unknown: Vec<&String> = told.started.difference(&known).collect();
    assert!(unknown.is_empty(), "begun and not on record: {unknown:?}");
    BTreeMap::from([("answered", answered.len()), ("interrupted", interrupted.len()), ("compactions", copies.len())])
}
