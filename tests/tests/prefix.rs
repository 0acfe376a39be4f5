//! The cache's law on both wires: within an epoch every request begins with the whole of the one before, whatever
//! happens to plugins, tools and tasks meanwhile; and a warm resume in a second process goes on with the same bytes.

use astrarium::host::{Host, Which};
use astrarium::model::select;
use astrarium::model::wire::Limits;
use astrarium::session::Session;
use astrarium_tests::place::{Place, Ran, ask, guests};
use astrarium_tests::strict::{KEY, Piece, Said, Strict, Wire};
use serde_json::{Value, json};
use std::fs;
use tokio_util::sync::CancellationToken;

const WIRES: [(Wire, &str); 2] = [(Wire::Anthropic, "anthropic:strict-1"), (Wire::OpenAi, "openai:strict-1")];

/// A request in render order, cache marks left out: tools, system, then each block with its role.
fn rendered(body: &Value) -> Vec<String> {
    fn strip(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(key, _)| *key != "cache_control");
                Value::Object(kept.map(|(key, value)| (key.clone(), strip(value))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(strip).collect()),
            other => other.clone(),
        }
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut pieces: Vec<String> = list(&body["tools"]).iter().map(|tool| strip(tool).to_string()).collect();
    pieces.extend(list(&body["system"]).iter().map(|segment| strip(segment).to_string()));
    for message in list(&body["messages"]) {
        let message = strip(&message);
        match message["content"].as_array() {
            Some(blocks) => pieces.extend(blocks.iter().map(|block| format!("{} {block}", message["role"]))),
            None => pieces.push(message.to_string()),
        }
    }
    pieces
}

#[track_caller]
fn assert_each_begins_with_the_one_before(requests: &[Value]) {
    for (at, pair) in requests.windows(2).enumerate() {
        let (before, after) = (rendered(&pair[0]), rendered(&pair[1]));
        for (piece, (old, new)) in before.iter().zip(&after).enumerate() {
            assert_eq!(old, new, "request {} parts from the one before at piece {piece}", at + 2);
        }
        assert!(after.len() > before.len(), "request {} is longer", at + 2);
    }
}

fn marks(body: &Value) -> usize {
    body.to_string().matches("cache_control").count()
}

fn put_version(place: &Place, which: &str) {
    let folder = place.plugins().join("versioned");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(guests().join(format!("versioned-{which}/versioned_{which}.wasm")), folder.join("new")).unwrap();
    fs::rename(folder.join("new"), folder.join("versioned.wasm")).unwrap();
    fs::write(folder.join("plugin.yaml"), "name: versioned\nversion: 0.1.0\n").unwrap();
}

/// A call with an id of its own, as models give them.
fn call(id: usize, tool: &str, input: Value) -> Piece {
    let text = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    Piece::Call(text(format!("toolu_{id}")), text(tool.to_owned()), text(input.to_string()))
}

fn session(host: &Host, model: &str, server: &Strict) -> Session {
    let model = select::open(model, &server.endpoints(Limits::default())).unwrap();
    host.session(Which::New { title: "prefix" }, model).unwrap()
}

fn put_skill(place: &Place, name: &str, version: u32) {
    let folder = place.home().join("skills").join(name);
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "---\nname: {name}\ndescription: about {name}, edition {version}\n---\nDo {name}, edition {version}.\n"
    );
    fs::write(folder.join("new"), text).unwrap();
    fs::rename(folder.join("new"), folder.join("SKILL.md")).unwrap();
}

fn todo(status: &str) -> Value {
    json!({ "tasks": [{ "id": "a", "content": "look", "status": status }] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_turns_of_changes_re_bill_nothing() {
    for (wire, model) in WIRES {
        let place = Place::new();
        put_version(&place, "a");
        put_skill(&place, "fits", 1);
        place.plugin("json1k").file("AGENTS.md", "Prefer short answers.").file("notes.txt", "one\n");
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = session(&host, model, &server);
        for turn in 0..30 {
            match turn {
                5 => put_version(&place, "b"),
                9 => {
                    place.plugin("shout");
                }
                12 => astrarium::config::set_disabled(&place.home(), "json1k", true).unwrap(),
                // A person edits a memory beside the session.
                16 => {
                    let path = place.home().join("library/memory/fact-3.md");
                    let text = fs::read_to_string(&path).unwrap();
                    fs::write(&path, format!("{text}\nAnd one line more.\n")).unwrap();
                }
                20 => fs::remove_dir_all(place.plugins().join("shout")).unwrap(),
                // Two edits of skills: of one that is loaded, and one that is new.
                22 => put_skill(&place, "fits", 2),
                25 => put_skill(&place, "spectra", 1),
                _ => {}
            }
            if matches!(turn, 22 | 25) {
                host.skills.refresh();
            }
            if matches!(turn, 5 | 9 | 12 | 20) {
                let disabled = astrarium::config::disabled(&place.home()).unwrap();
                let settings = host.registry.settings();
                host.registry.set_settings(astrarium::plugin::Settings { disabled, ..settings });
                host.registry.refresh().await;
            }
            let piece = match turn {
                2 => Some(call(turn, "todo_write", todo("pending"))),
                4 | 6 => Some(call(turn, "version", json!({}))),
                10 => Some(call(turn, "call_tool", json!({ "name": "shout", "input": { "text": "hi" } }))),
                13 => Some(call(turn, "crunch", json!({ "doc": 1 }))),
                15 => Some(call(turn, "todo_write", todo("completed"))),
                17 => Some(call(turn, "read_file", json!({ "path": "notes.txt" }))),
                3 | 8 | 14 => {
                    let name = format!("fact {turn}");
                    let input = json!({ "name": name, "type": "project", "description": "d", "content": "c" });
                    Some(call(turn, "save_memory", input))
                }
                18 | 19 | 23 => Some(call(turn, "load_skill", json!({ "skill_name": "fits" }))),
                21 => Some(call(turn, "call_tool", json!({ "name": "shout", "input": { "text": "gone" } }))),
                _ => None,
            };
            if let Some(piece) = piece {
                server.plan(Said::new([piece]));
            }
            server.plan(Said::new([Piece::Text("Well.")]));
            let question = format!("question {turn}");
            let done = ask(&mut session, &question, 5, &CancellationToken::new(), |_| {}).await;
            assert_eq!(done.outcome.error, None, "{wire:?} turn {turn}");
            let outputs = |tool: &str| done.outputs(tool).concat();
            match turn {
                4 => assert_eq!(outputs("version"), "a"),
                6 => assert_eq!(outputs("version"), "b", "a swap takes effect at once"),
                10 => assert_eq!(outputs("shout"), "HI", "call_tool is unwrapped"),
                13 => assert!(outputs("crunch").contains("disabled by the operator"), "{}", outputs("crunch")),
                18 => assert!(outputs("load_skill").contains("Do fits, edition 1."), "{}", outputs("load_skill")),
                19 => assert!(!outputs("load_skill").contains("Do fits"), "a body stands in a conversation once"),
                23 => assert!(outputs("load_skill").contains("Do fits, edition 2."), "{}", outputs("load_skill")),
                21 => assert!(outputs("shout").contains("no tool \"shout\""), "{}", outputs("shout")),
                _ => {}
            }
        }
        assert_eq!(server.violations(), Vec::<String>::new(), "{wire:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 44);
        assert_each_begins_with_the_one_before(&requests);
        assert!(requests.iter().all(|body| marks(body) <= 4 && !body.to_string().contains("DYNAMIC_BOUNDARY")));
        let last = requests.last().unwrap().to_string();
        assert_eq!(last.matches("- shout: ").count(), 1, "a new tool is announced once");
        assert!(last.matches("fact-3").count() > 1, "what a person changed is told at the tail");
        assert!(last.contains("Prefer short answers."), "AGENTS.md stands in front");
        for news in
            ["- [changed] fits: about fits, edition 2", "- fits: its loaded text has changed", "- [new] spectra: about"]
        {
            assert_eq!(last.matches(news).count(), 1, "{news} is told once, at the tail");
        }
        assert!(last.contains("- fits: about fits, edition 1"), "and the list in front is as it was");
        let ledger = host.store.requests(&session.id).unwrap();
        assert_eq!(ledger.len(), 44);
        for pair in ledger.windows(2) {
            assert_eq!(pair[1].shared_bytes, pair[0].bytes, "the ledger says so, too: {pair:?}");
        }
        assert!(ledger.iter().all(|request| request.epoch == 1));
    }
}

/// Goes on with the last session in a process of its own.
async fn go_on(place: &Place, server: &Strict, model: &str, more: &[&str]) -> Ran {
    let mut arguments = vec!["run", "--continue", "--model", model];
    arguments.extend(more);
    arguments.push("and now?");
    let mut command = place.command(&arguments);
    command
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", server.address())
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", format!("{}/v1", server.address()));
    Ran::of(tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_continue_in_a_second_process_sends_the_same_bytes() {
    for (wire, model) in WIRES {
        let place = Place::new();
        put_skill(&place, "fits", 1);
        let server = Strict::start().await;
        {
            let host = place.host().await;
            let mut session = session(&host, model, &server);
            server.plan(Said::new([call(1, "glob_files", json!({ "pattern": "*" }))]));
            server.plan(Said::new([Piece::Text("Nothing there.")]));
            ask(&mut session, "what is here?", 5, &CancellationToken::new(), |_| {}).await;
        }
        // A plugin and a skill that came meanwhile, and a skill that was edited, are news at the tail and no new prefix.
        place.plugin("shout");
        put_skill(&place, "fits", 2);
        put_skill(&place, "spectra", 1);
        server.plan(Said::new([Piece::Text("Still nothing.")]));
        let ran = go_on(&place, &server, model, &[]).await;
        assert_eq!(ran.status, 0, "{wire:?} {ran:?}");
        assert_eq!(server.violations(), Vec::<String>::new());
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert_each_begins_with_the_one_before(&requests);
        for news in ["- shout: ", "- [changed] fits: about fits, edition 2", "- [new] spectra: about"] {
            assert!(requests[2].to_string().contains(news), "{news}: {}", requests[2]);
        }
        let diff = place.run(&["prompt", "diff", "1", "3", "--json"]).json();
        assert_eq!(diff["place"], Value::Null, "{diff}");
        let shown = place.run(&["prompt", "show", "--session", &latest(&place), "--json"]).json();
        assert_eq!(shown["epoch"]["number"], 1, "{shown}");
        assert_eq!(shown["requests"][2]["shared_bytes"], shown["requests"][1]["bytes"]);
    }
}

fn latest(place: &Place) -> String {
    let sessions = place.run(&["session", "list", "--json"]).json();
    sessions[0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_resumed_after_a_persona_edit_gets_the_new_prompt() {
    let place = Place::new();
    let server = Strict::start().await;
    let model = "anthropic:strict-1";
    {
        let host = place.host().await;
        let mut session = session(&host, model, &server);
        server.plan(Said::new([Piece::Text("Yes.")]));
        ask(&mut session, "are you there?", 5, &CancellationToken::new(), |_| {}).await;
    }
    let persona = place.home().join("personas/astro");
    fs::create_dir_all(&persona).unwrap();
    fs::write(persona.join("identity.md"), "You are somebody else now.").unwrap();
    server.plan(Said::new([Piece::Text("Yes.")]));
    let ran = go_on(&place, &server, model, &[]).await;
    assert_eq!(ran.status, 0, "{ran:?}");
    let requests = server.requests();
    assert!(requests[1]["system"][0]["text"].as_str().unwrap().contains("somebody else"), "{}", requests[1]["system"]);
    let diff = place.run(&["prompt", "diff", "1", "2", "--json"]).json();
    assert_eq!(diff["place"], json!({ "kind": "segment", "name": "identity" }), "{diff}");
    let shown = place.run(&["prompt", "show", "--session", &latest(&place), "--json"]).json();
    assert_eq!((&shown["epoch"]["number"], &shown["epoch"]["reason"]), (&json!(2), &json!("resume")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flags_reach_the_wire() {
    let place = Place::new();
    place.file("digger.md", "---\nname: digger\n---\nDig deep.\n");
    let server = Strict::start().await;
    let model = "anthropic:strict-1";
    {
        let host = place.host().await;
        let mut session = session(&host, model, &server);
        server.plan(Said::new([Piece::Text("Yes.")]));
        ask(&mut session, "are you there?", 5, &CancellationToken::new(), |_| {}).await;
    }
    let system = async |flags: &[&str]| {
        server.plan(Said::new([Piece::Text("Yes.")]));
        let ran = go_on(&place, &server, model, flags).await;
        assert_eq!(ran.status, 0, "{flags:?} {ran:?}");
        let last = server.requests().pop().unwrap();
        let texts = last["system"].as_array().cloned().unwrap_or_default();
        texts.iter().map(|text| text["text"].as_str().unwrap().lines().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        system(&["--override-system-prompt", "Only this.", "--append-system-prompt", "x"]).await,
        ["Only this."]
    );
    assert_eq!(system(&["--system-prompt", "Mine.", "--append-system-prompt", "Last."]).await, ["Mine.", "Last."]);
    place.config("prompt: { memory_mechanics: true }\n");
    let told = system(&["--system-prompt", "Mine."]).await;
    assert!(told.len() == 2 && told[1].contains("save_memory"), "{told:?}");
    let agent = system(&["--agent", "digger.md"]).await;
    assert_eq!(agent[0], "Dig deep.");
    let proactive = system(&["--agent", "digger.md", "--mode", "proactive"]).await;
    assert!(proactive.contains(&"# Custom Agent Instructions".to_owned()), "{proactive:?}");
    let missing = place.run(&["run", "--agent", "nobody.md", "hello"]);
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("the agent nobody.md does not read"), "{}", missing.stderr);
    fs::write(place.home().join("astrarium.yaml"), "persona: nobody\n").unwrap();
    let unknown = place.run(&["run", "hello"]);
    assert!(unknown.stderr.contains("there is no persona \"nobody\""), "{}", unknown.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_resumed_after_the_caches_life_begins_a_new_epoch_and_an_hours_life_keeps_it() {
    for (life, epoch) in [("5m", 2), ("1h", 1)] {
        let place = Place::new();
        place.config(&format!("language: en\ncache_life: {life}\n"));
        let server = Strict::start().await;
        {
            let host = place.host().await;
            let mut session = session(&host, "anthropic:strict-1", &server);
            server.plan(Said::new([Piece::Text("Nothing.")]));
            ask(&mut session, "what is here?", 5, &CancellationToken::new(), |_| {}).await;
        }
        let database = rusqlite::Connection::open(place.home().join("astrarium.db")).unwrap();
        let aged = "update requests set created = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-20 minutes')";
        assert_eq!(database.execute(aged, []).unwrap(), 1);
        drop(database);
        place.plugin("shout");
        server.plan(Said::new([Piece::Text("Still nothing.")]));
        let ran = go_on(&place, &server, "anthropic:strict-1", &[]).await;
        assert_eq!(ran.status, 0, "{life}: {ran:?}");
        let shown = place.run(&["prompt", "show", "--session", &latest(&place), "--json"]).json();
        assert_eq!(shown["epoch"]["number"], epoch, "{life}: {shown}");
        let last = server.requests().pop().unwrap();
        let in_front = last["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "shout");
        assert_eq!(in_front, epoch == 2, "{life}: a new epoch has new tools in front, an old one tells of them");
        assert_eq!(last.to_string().contains("\"ttl\":\"1h\""), life == "1h");
        assert_eq!(server.violations(), Vec::<String>::new());
    }
}

/// A provider looks 20 blocks back from a mark, so a step of many calls must leave one where the request before ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_of_more_blocks_than_a_provider_looks_back_keeps_the_mark_of_the_request_before() {
    let place = Place::new();
    let host = place.host().await;
    let server = Strict::start().await;
    let mut session = session(&host, "anthropic:strict-1", &server);
    let calls: Vec<Piece> = (0..25).map(|id| call(id, "glob_files", json!({ "pattern": format!("*{id}") }))).collect();
    server.plan(Said::new(calls));
    server.plan(Said::new([Piece::Text("Nothing there.")]));
    ask(&mut session, "what is here?", 5, &CancellationToken::new(), |_| {}).await;
    let requests = server.requests();
    assert_each_begins_with_the_one_before(&requests);
    // The last mark of the first request, as a place among all blocks, is marked in the second one too.
    let marked = |body: &Value| -> Vec<usize> {
        let blocks =
            body["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array().unwrap());
        let places = blocks.enumerate().filter(|(_, block)| block.get("cache_control").is_some());
        places.map(|(at, _)| at).collect()
    };
    let (before, after) = (marked(&requests[0]), marked(&requests[1]));
    assert!(after.contains(before.last().unwrap()), "{before:?} {after:?}");
    assert!(after.last().unwrap() - before.last().unwrap() > 20, "{before:?} {after:?}");
    assert!(marks(&requests[1]) <= 4);
    assert_eq!(server.violations(), Vec::<String>::new());
}
