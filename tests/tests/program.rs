//! The program as its users meet it: exit status, standard output, and one clear line for each mistake.

use astrarium_tests::place::{Place, Ran, guests, program};
use astrarium_tests::strict::{Form, KEY, Piece, Plan, Said, Strict, Wire};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

fn refused(ran: &Ran, status: i32, words: &[&str]) {
    assert_eq!(ran.status, status, "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "one line: {ran:?}");
    for word in words {
        assert!(lines[0].contains(word), "{word:?} is missing in {:?}", lines[0]);
    }
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn the_demo_shows_calls_with_plugin_hash_time_and_outcome() {
    let place = Place::new();
    let ran = place.run(&[]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("A scripted model answers"), "{ran:?}");
    let calls: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" ms  ")).collect();
    assert!(calls.len() >= 5, "{calls:?}");
    assert!(calls.iter().all(|line| line.contains("@")), "{calls:?}");
    assert!(ran.stderr.contains("refused by guard"), "{ran:?}");
    assert!(ran.stderr.contains("+3. Magnitudes are AB: m = -2.5 log10(f / µJy) + 23.9"), "{ran:?}");
    assert!(ran.stderr.contains("ANTHROPIC_API_KEY"), "{ran:?}");
    assert!(ran.stdout.contains("mended line 5"), "{ran:?}");
}

#[test]
fn plugin_list_is_an_array_for_scripts() {
    let place = Place::new();
    place.plugin("echo");
    let list = place.run(&["plugin", "list", "--json"]).json();
    let find = |name: &str| list.as_array().unwrap().iter().find(|plugin| plugin["name"] == name).cloned().unwrap();
    for key in ["name", "version", "digest", "enabled", "state", "tools", "hooks", "granted", "missing", "error"] {
        assert!(find("files").get(key).is_some(), "{key}");
    }
    assert_eq!(find("files")["state"], "live");
    assert_eq!(find("guard")["hooks"], serde_json::json!(["pre-tool-use"]));
    assert_eq!(find("echo")["state"], "waiting");
    let shown = place.run(&["plugin", "show", "echo"]);
    assert!(shown.stdout.contains("- { plugin: echo, kv: true }"), "{shown:?}");
    // The line that is shown is the line that grants.
    place.config("grants:\n- { plugin: echo, kv: true }\n");
    assert_eq!(place.run(&["plugin", "show", "echo", "--json"]).json()["state"], "live");
}

#[test]
fn a_plugin_is_switched_off_and_on() {
    let place = Place::new();
    assert_eq!(place.run(&["plugin", "disable", "guard"]).status, 0);
    assert_eq!(place.run(&["plugin", "show", "guard", "--json"]).json()["enabled"], false);
    let write = ["tool", "call", "file_write", r#"{"path":".env","content":"x"}"#];
    assert_eq!(place.run(&write).status, 0, "nobody guards any more");
    assert_eq!(place.run(&["plugin", "enable", "guard", "--yes"]).status, 0);
    refused(&place.run(&write), 3, &["guard", ".env"]);
}

#[test]
fn a_tool_is_called_by_hand() {
    let place = Place::new();
    place.file("src/main.rs", "fn main() {}\n");
    let ran = place.run(&["tool", "call", "grep_files", r#"{"pattern":"fn main"}"#, "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let answer = ran.json();
    assert_eq!(answer["plugin"], "files");
    assert!(answer["parts"][0]["text"].as_str().unwrap().starts_with("src/main.rs:1:fn main() {}"), "{answer}");
    refused(&place.run(&["tool", "call", "grep_file", "{}"]), 2, &["grep_file", "tool list"]);
    refused(&place.run(&["tool", "call", "grep_files", "{pattern"]), 2, &["not JSON"]);
    refused(&place.run(&["tool", "call", "grep_files", r#"{"patern":"x"}"#]), 2, &["patern", "pattern"]);
    refused(&place.run(&["tool", "call", "grep_files", r#"{"pattern":"("}"#]), 1, &["unclosed group"]);
    refused(&place.run(&["tool", "call", "read_file", r#"{"path":"../x"}"#]), 1, &["../x", "workspace"]);
}

#[test]
fn mistakes_on_the_command_line_get_one_line_and_status_2() {
    let place = Place::new();
    refused(&place.run(&["run", "  "]), 2, &["empty"]);
    refused(&place.run(&["run", "x", "--session", "nope"]), 2, &["nope", "session list"]);
    refused(&place.run(&["run", "x", "--model", "gpt"]), 2, &["anthropic:", "openai:", "scripted:"]);
    refused(&place.run(&["run", "x", "--model", "scripted:absent.yaml"]), 2, &["absent.yaml"]);
    refused(&place.run(&["run", "x", "--model", "anthropic:claude"]), 2, &["ANTHROPIC_API_KEY"]);
    assert_eq!(place.run(&["run", "x", "--max-steps", "0"]).status, 2);
    assert_eq!(place.run(&["walk"]).status, 2);
    refused(&place.run(&["plugin", "show", "nope"]), 2, &["nope", "plugin list"]);
    refused(&place.run(&["plugin", "list", "--workspace", "absent"]), 2, &["absent", "workspace"]);
    refused(&place.run(&["plugin", "list", "--plugins", "absent"]), 2, &["absent", "plugin folder"]);
    refused(&place.run(&["plugin", "list", "--config", "absent.yaml"]), 2, &["absent.yaml", "config"]);
    let home = place.home().display().to_string();
    refused(&place.run(&["plugin", "list", "--workspace", &home]), 2, &["workspace", "home"]);
}

#[test]
fn a_config_that_does_not_read_is_named_with_its_mistake() {
    let place = Place::new();
    for (text, words) in [
        ("model: [", vec!["astrarium.yaml"]),
        ("modle: x\n", vec!["astrarium.yaml", "modle"]),
        ("limits: { tool_ms: 0 }\n", vec!["tool_ms", "from 1"]),
        ("limits: { parallel_calls: 4611686018427387904 }\n", vec!["parallel_calls", "256"]),
        ("limits: { component_bytes: 18446744073709551615 }\n", vec!["component_bytes"]),
        ("limits: { tool_ms: -3 }\n", vec!["astrarium.yaml"]),
        ("grants:\n- { plugin: a, kvv: true }\n", vec!["kvv"]),
        ("grants:\n- { kv: true }\n", vec!["plugin"]),
        ("grants:\n- { plugin: a, process: [{ program: git }] }\n", vec!["astrarium.yaml", "names no folder"]),
        ("process: { without_landlock: maybe }\n", vec!["astrarium.yaml", "maybe"]),
        ("model: a\nmodel: b\n", vec!["model"]),
        ("a: &a [x]\n", vec!["astrarium.yaml"]),
    ] {
        place.config(text);
        refused(&place.run(&["plugin", "list"]), 2, &words);
    }
}

#[test]
fn a_config_or_a_plugin_folder_in_the_workspace_changes_nothing() {
    let place = Place::new();
    place.file("astrarium.yaml", "grants:\n- { plugin: echo, kv: true }\n");
    place.file("plugins/evil/plugin.yaml", "name: evil\nversion: 1.0.0\n");
    place.plugin("echo");
    let list = place.run(&["plugin", "list", "--json"]).json();
    let names: Vec<&str> = list.as_array().unwrap().iter().filter_map(|plugin| plugin["name"].as_str()).collect();
    assert!(!names.contains(&"evil"), "{names:?}");
    assert_eq!(place.run(&["plugin", "show", "echo", "--json"]).json()["state"], "waiting");
}

#[test]
fn a_bad_plugin_is_listed_with_its_reason_and_hides_no_other() {
    let place = Place::new();
    let put = |name: &str, manifest: Option<&str>, wasm: Option<&[u8]>| {
        let folder = place.plugins().join(name);
        fs::create_dir_all(&folder).unwrap();
        if let Some(text) = manifest {
            fs::write(folder.join("plugin.yaml"), text).unwrap();
        }
        if let Some(bytes) = wasm {
            fs::write(folder.join(format!("{name}.wasm")), bytes).unwrap();
        }
    };
    put("no-manifest", None, None);
    put("broken-yaml", Some("name: [\n"), None);
    put("other-name", Some("name: another\nversion: 1.0.0\n"), None);
    put("unknown-key", Some("name: unknown-key\nversion: 1.0.0\nrequest: {}\n"), None);
    put("no-wasm", Some("name: no-wasm\nversion: 1.0.0\n"), None);
    put("text-wasm", Some("name: text-wasm\nversion: 1.0.0\n"), Some(b"hello, this is no wasm"));
    put("core-wasm", Some("name: core-wasm\nversion: 1.0.0\n"), Some(b"\0asm\x01\0\0\0"));
    put("empty-component", Some("name: empty-component\nversion: 1.0.0\n"), Some(b"\0asm\x0d\0\x01\0"));
    place.plugin("echo").plugin("tool-twin");
    let asks = fs::read(guests().join("versioned-a/versioned_a.wasm")).unwrap();
    put("asks-in-vain", Some("name: asks-in-vain\nversion: 1.0.0\nrequests: { kv: true }\n"), Some(&asks));
    place.config("grants:\n- { plugin: echo, kv: true }\n");
    let list = place.run(&["plugin", "list", "--json"]).json();
    let error = |name: &str| {
        let plugin = list.as_array().unwrap().iter().find(|plugin| plugin["name"] == name);
        plugin.and_then(|plugin| plugin["error"].as_str()).unwrap_or_else(|| panic!("{name}: {list}")).to_owned()
    };
    for (name, words) in [
        ("no-manifest", "no plugin.yaml"),
        ("broken-yaml", "plugin.yaml"),
        ("other-name", "differs"),
        ("unknown-key", "request"),
        ("no-wasm", "is missing"),
        ("text-wasm", "not WebAssembly"),
        ("core-wasm", "core module"),
        ("empty-component", "exports nothing"),
        ("tool-twin", "also a tool of"),
        ("asks-in-vain", "does not import"),
    ] {
        assert!(error(name).contains(words), "{name}: {}", error(name));
        assert_eq!(error(name).lines().count(), 1, "{name}");
    }
    assert_eq!(place.run(&["tool", "call", "glob_files", r#"{"pattern":"*"}"#]).status, 0);
}

#[test]
fn a_prompt_comes_from_standard_input() {
    let place = Place::new();
    let model = place.script("name: in\nsteps:\n- say: heard\n  expect: from a pipe\n");
    let mut child = place
        .command(&["run", "-", "--model", &model])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"from a pipe").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "heard\n"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}'), "no colours and no spinner in a pipe: {ran:?}");
}

#[test]
fn stream_json_is_a_line_for_each_event() {
    let place = Place::new();
    let model =
        place.script("name: s\nsteps:\n- calls: [{ tool: glob_files, input: { pattern: '*' } }]\n- say: two words\n");
    let ran = place.run(&["run", "x", "--model", &model, "--output", "stream-json"]);
    let kinds: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("started"), "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("done"), "{kinds:?}");
    for kind in ["call_started", "call_finished", "step", "text"] {
        assert!(kinds.iter().any(|seen| seen == kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn the_step_limit_is_said_in_words_too() {
    let place = Place::new();
    let steps = "- calls: [{ tool: glob_files, input: { pattern: '*' } }]\n".repeat(5);
    let model = place.script(&format!("name: long\nsteps:\n{steps}at_limit: I stopped.\n"));
    let ran = place.run(&["run", "x", "--model", &model, "--max-steps", "2"]);
    assert!(ran.stdout.contains("I stopped.") && ran.stdout.contains("step limit of 2 was reached"), "{ran:?}");
}

#[test]
fn the_step_limit_still_ends_in_an_answer_that_says_so() {
    let place = Place::new();
    let steps = "- calls: [{ tool: glob_files, input: { pattern: '*' } }]\n".repeat(5);
    let model = place.script(&format!("name: long\nsteps:\n{steps}"));
    let ran = place.run(&["run", "x", "--model", &model, "--max-steps", "2", "--output", "json"]);
    let document = ran.json();
    assert_eq!((ran.status, document["reason"].as_str()), (0, Some("step-limit")), "{ran:?}");
    assert_eq!(document["steps"], 2);
    assert!(document["answer"].as_str().unwrap().contains("step limit of 2 was reached"), "{document}");
}

#[test]
fn ctrl_c_ends_the_run_with_status_130_and_the_session_goes_on() {
    let place = Place::new();
    place.plugin("hostile").config("grants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n");
    let model = place.script("name: c\nsteps:\n- calls: [{ tool: sleep, input: {} }]\n- say: back again\n");
    let mut child = place
        .command(&["run", "x", "--model", &model, "--output", "stream-json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    while !seen.contains("call_started") {
        let mut buffer = [0; 256];
        let read = stdout.read(&mut buffer).unwrap();
        assert!(read > 0, "the program ended early: {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 130, "{ran:?}");
    let again = place.run(&["run", "y", "--continue", "--model", &model]);
    assert_eq!(again.stdout, "back again\n", "{again:?}");
}

#[test]
fn a_database_of_a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    place.run(&["session", "list"]);
    let path = place.home().join("astrarium.db");
    let set = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.execute('pragma user_version = 99')\nc.commit()\nc.close()\n";
    let status = Command::new("python3").args(["-c", set]).arg(&path).status().unwrap();
    assert!(status.success());
    let before = fs::read(&path).unwrap();
    refused(&place.run(&["session", "list"]), 2, &["schema 99", "newer"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::write(&path, b"this is no database, but it is somebody's file, long enough to be looked at by SQLite").unwrap();
    refused(&place.run(&["session", "list"]), 2, &["astrarium.db"]);
}

#[test]
fn a_read_only_home_is_named_with_its_cure() {
    let place = Place::new();
    fs::set_permissions(place.home(), fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write everywhere, so the program runs as somebody else there. What it needs must be readable to all.
    let folder = place.home().parent().unwrap().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.join("astrarium");
    fs::copy(program(), &copy).unwrap();
    let root = fs::metadata("/proc/self").map(|me| std::os::unix::fs::MetadataExt::uid(&me)).unwrap() == 0;
    let mut command = Command::new(if root { "setpriv" } else { copy.to_str().unwrap() });
    if root {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    }
    let output = command
        .args(["session", "list", "--home"])
        .arg(place.home())
        .env_clear()
        .current_dir(place.workspace())
        .output()
        .unwrap();
    fs::set_permissions(place.home(), fs::Permissions::from_mode(0o755)).unwrap();
    refused(&Ran::of(output), 2, &["home", "--home"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_run_on_each_wire_is_accepted_by_the_strict_server() {
    for (wire, name, key, base, path) in [
        (Wire::Anthropic, "anthropic:strict", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
        (Wire::OpenAi, "openai:strict", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    ] {
        let server = Strict::start().await;
        let place = Place::new();
        place.file("a.txt", "alpha\n").file("b.txt", "beta\n");
        server.plan(Said::new([
            Piece::Text("Reading both."),
            Piece::Call("call_1", "read_file", r#"{"path":"a.txt"}"#),
            Piece::Call("call_2", "read_file", r#"{"path":"b.txt"}"#),
        ]));
        server.plan(Said::new([Piece::Call("call_3", "file_write", r#"{"path":".env","content":"x"}"#)]));
        server.plan(Said::new([Piece::Text("alpha and beta")]));
        let mut command = place.command(&["run", "read both files", "--model", name, "--output", "json"]);
        command.env(key, KEY).env(base, format!("{}{path}", server.address()));
        let ran = tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap();
        assert_eq!(ran.status, 0, "{wire:?}: {ran:?}");
        assert_eq!(server.violations(), Vec::<String>::new(), "{wire:?}");
        assert_eq!(ran.json()["answer"], "alpha and beta", "{wire:?}");
        assert_eq!(ran.json()["refused_calls"], 1);
        assert_eq!(server.requests().len(), 3);
    }
}

fn status(status: u16, kind: &'static str) -> Plan {
    Plan::Status { status, kind, message: "not now".into(), retry_after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_gets_one_line_and_loses_nothing() {
    let server = Strict::start().await;
    let place = Place::new();
    // How often it is asked again is tested by itself.
    place.config("retry: { attempts: 1 }\n");
    for (plan, words) in [
        (status(401, "authentication_error"), "ANTHROPIC_API_KEY"),
        (status(429, "rate_limit_error"), "429"),
        (status(500, "api_error"), "500"),
        (
            Said::new([Piece::Text("half an answer")]).form(Form { cut: Some(400), ..Form::default() }).into(),
            "broke off",
        ),
    ] {
        server.plan(plan);
        let mut command = place.command(&["run", "q", "--model", "anthropic:strict"]);
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.address());
        let ran = tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap();
        refused(&ran, 1, &[words]);
        assert!(!ran.stderr.contains(KEY));
    }
    let mut command = place.command(&["run", "q", "--model", "anthropic:strict"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    refused(&Ran::of(command.output().unwrap()), 1, &["127.0.0.1:1", "reach"]);
    let sessions = place.run(&["session", "list", "--json"]).json();
    assert_eq!(sessions.as_array().unwrap().len(), 5, "every question is on record");
}

#[test]
fn a_plugin_is_switched_off_whatever_else_is_broken() {
    let place = Place::new();
    place.config("model: [\n");
    assert_eq!(place.run(&["plugin", "disable", "guard"]).status, 0);
    refused(&place.run(&["plugin", "disable", "Bad_Name"]), 2, &["Bad_Name"]);
    let noted = place.run(&["plugin", "disable", "nope"]);
    assert!(noted.status == 0 && noted.stderr.contains("nope"), "{noted:?}");
    let doctor = place.run(&["doctor", "--json"]);
    assert_eq!(doctor.status, 1);
    let host = doctor.json().as_array().unwrap().iter().find(|check| check["what"] == "host").cloned().unwrap();
    assert!(host["said"].as_str().unwrap().contains("astrarium.yaml"), "{host}");
}

#[test]
fn without_a_model_a_script_says_what_it_is_and_changes_nothing() {
    let place = Place::new();
    place.file("notes/reduction.md", "log10(f / µJy) + 29.9\n");
    let ran = place.run(&["run", "summarise", "--output", "json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(ran.json()["model"], "scripted:no-model");
    assert!(ran.json()["answer"].as_str().unwrap().contains("no answer to your question"), "{ran:?}");
    assert_eq!(place.text("notes/reduction.md"), "log10(f / µJy) + 29.9\n");
}

#[test]
fn a_reader_of_standard_error_that_goes_away_does_not_end_the_run() {
    let place = Place::new();
    let model =
        place.script("name: e\nsteps:\n- calls: [{ tool: glob_files, input: { pattern: '*' } }]\n- say: whole\n");
    let mut child =
        place.command(&["run", "x", "--model", &model]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "whole\n"), "{ran:?}");
}

#[test]
fn a_tool_name_cannot_forge_a_line_on_the_terminal() {
    let place = Place::new();
    let model = place.script("name: f\nsteps:\n- calls: [{ tool: \"nope\\e[2J\\nFORGED\", input: {} }]\n- say: done\n");
    let ran = place.run(&["run", "x", "--model", &model]);
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.lines().any(|line| line.starts_with("FORGED")), "{ran:?}");
}

#[test]
fn doctor_names_what_is_missing() {
    let place = Place::new();
    let ran = place.run(&["doctor", "--json"]);
    let checks = ran.json();
    for what in ["toolchain", "config", "plugins", "model", "database"] {
        assert!(checks.as_array().unwrap().iter().any(|check| check["what"] == what), "{what}");
    }
    assert_eq!(ran.status, 0, "{ran:?}");
    let bad = place.run(&["doctor", "--model", "anthropic:x"]);
    assert!(bad.status == 1 && bad.stdout.contains("ANTHROPIC_API_KEY"), "{bad:?}");
}

#[test]
fn a_wait_before_the_question_is_asked_again_is_counted_down() {
    let place = Place::bare();
    let busy = "{ status: 429, message: slow down, kind: rate_limit_error, retry_after: 2 }";
    let model = place.script(&format!("name: t\nsteps:\n- fail: {busy}\n- say: here it is\n"));
    let ran = place.run(&["run", "x", "--model", &model, "--output", "stream-json"]);
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let seconds: Vec<u64> =
        events.filter(|event| event["type"] == "waiting").map(|event| event["seconds"].as_u64().unwrap()).collect();
    assert!(seconds[0] >= 2, "no sooner than the server asked for: {ran:?}");
    assert!(seconds.windows(2).all(|pair| pair[1] + 1 == pair[0]), "second by second: {seconds:?}");
    assert!(seconds.last() <= Some(&1), "to its end: {seconds:?}");
    let model = place.script(&format!("name: t\nsteps:\n- fail: {busy}\n- say: here it is\n"));
    let ran = place.run(&["run", "x", "--model", &model]);
    assert_eq!(ran.stdout, "here it is\n", "{ran:?}");
    assert_eq!(ran.stderr.matches("slow down").count(), 1, "the reason is said once: {ran:?}");
    assert!(ran.stderr.contains("; asked again in "), "{ran:?}");
}

#[test]
fn an_answer_has_its_price_where_the_table_knows_the_model_and_none_where_it_does_not() {
    let place = Place::new();
    let model = place.script("name: p\nsteps:\n- say: hi\n  usage: { input: 10, output: 5, cache_read: 100 }\n");
    let priced = |name: &str| {
        place.config(&format!(
            "language: en\nprices: {{ '{name}': {{ input: 1000, output: 2000, cache_read: 100 }} }}\n"
        ));
        let ran = place.run(&["run", "hi", "--model", &model, "--output", "json"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        ran.json()
    };
    let known = priced(&model);
    assert_eq!((&known["usage"]["input"], &known["usage"]["cache_read"]), (&json!(10), &json!(100)), "{known}");
    assert!((known["cost"].as_f64().unwrap() - 0.03).abs() < 1e-9, "{known}");
    assert_eq!(priced("anthropic:another")["cost"], Value::Null);
    let shown = place.run(&["prompt", "show", "--session", known["session"].as_str().unwrap()]);
    assert!(shown.stdout.contains("prices"), "the cure is named: {shown:?}");
}

#[test]
fn an_instruction_file_that_is_cut_or_left_out_is_told_and_a_missing_persona_is_a_mistake_of_the_config() {
    let place = Place::new();
    let model = place.script("name: p\nsteps:\n- say: hi\n");
    place.config("language: en\n").file("AGENTS.md", "word ".repeat(200_000));
    std::os::unix::fs::symlink("/etc/hostname", place.workspace().join("CLAUDE.md")).unwrap();
    let ran = place.run(&["run", "hi", "--model", &model]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("AGENTS.md is cut") && ran.stderr.contains("CLAUDE.md is left out"), "{ran:?}");
    place.config("language: en\npersona: nosuch\n");
    refused(&place.run(&["run", "hi", "--model", &model]), 2, &["nosuch", "astro, general"]);
}
