//! What operators do with plugins: grant, take back, switch, install, go back; and that nothing but their files decides.

use astrarium::audit::Kind;
use astrarium::host::Host;
use astrarium::plugin::State;
use astrarium::store::AuditFilter;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, Ran, at_a_terminal, call, copy, guests, share};
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

fn ok(ran: &Ran) -> &Ran {
    assert_eq!(ran.status, 0, "{ran:?}");
    ran
}

fn refused(ran: &Ran, status: i32, words: &[&str]) {
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(ran.status == status && errors.len() == 1, "{ran:?}");
    assert!(words.iter().all(|word| errors[0].contains(word)), "{words:?}: {ran:?}");
}

fn state(place: &Place, name: &str) -> Value {
    place.run(&["plugin", "show", name, "--json"]).json()["state"].clone()
}

#[test]
fn a_grant_is_written_beside_the_operators_own_file_and_taken_back_again() {
    let place = Place::new();
    let config = "# mine\nlanguage: en   # and this stays\n";
    place.plugin("echo").config(config);
    assert_eq!(state(&place, "echo"), "waiting");
    let shown = place.run(&["plugin", "show", "echo"]);
    assert!(shown.stdout.contains("to grant: - { plugin: echo, kv: true }"), "{shown:?}");
    assert!(shown.stdout.contains("or: astrarium plugin grant echo"), "{shown:?}");
    ok(&place.run(&["plugin", "grant", "echo"]));
    assert_eq!(state(&place, "echo"), "live");
    let shown = place.run(&["plugin", "show", "echo"]);
    assert!(shown.stdout.contains("by ") && shown.stdout.contains("grants.yaml: line"), "{shown:?}");
    ok(&place.run(&["plugin", "revoke", "echo"]));
    assert_eq!(state(&place, "echo"), "waiting");
    assert_eq!(fs::read_to_string(place.home().join("astrarium.yaml")).unwrap(), config);
    // What is taken back is gone whoever granted it, until it is granted anew.
    place.config("grants: [{ plugin: echo, kv: true }]\n");
    assert_eq!(state(&place, "echo"), "waiting");
    ok(&place.run(&["plugin", "grant", "echo", "kv"]));
    assert_eq!(state(&place, "echo"), "live");
    let told = place.run(&["audit", "--json", "--plugin", "echo", "--all"]).stdout;
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let commands: Vec<&str> =
        told.iter().filter(|row| row["kind"] == "operator").filter_map(|row| row["what"].as_str()).collect();
    assert_eq!(commands, ["grant", "revoke", "grant"]);
}

#[test]
fn what_ships_can_be_taken_back_and_narrowed() {
    let place = Place::new();
    place.file("a.txt", "hello\n").config("language: en\n");
    ok(&place.run(&["plugin", "revoke", "files", "fs:workspace:rw"]));
    let status = place.run(&["plugin", "show", "files", "--json"]).json();
    assert_eq!(status["state"], "waiting");
    let folders = ["workspace", "session", "skills"].map(|path| json!({ "path": path, "mode": "ro" }));
    assert_eq!(status["granted"], json!({ "fs": folders }));
    assert_eq!(status["grant_line"], Value::Null, "a line in astrarium.yaml would not undo it");
    assert!(status["taken_back"][0].as_str().unwrap().contains("grants.yaml"), "{status}");
    let call = place.run(&["tool", "call", "read_file", r#"{"path":"a.txt"}"#]);
    refused(&call, 3, &["took back", "astrarium plugin grant files"]);
    ok(&place.run(&["plugin", "grant", "files"]));
    assert_eq!(state(&place, "files"), "live");
}

#[test]
fn a_grant_names_what_is_asked_for_and_nothing_else() {
    let place = Place::new();
    place.plugin("hostile").plugin("echo");
    refused(&place.run(&["plugin", "grant", "echo", "tasks"]), 2, &["tasks", "is not among", "kv: true"]);
    refused(&place.run(&["plugin", "grant", "echo", "root"]), 2, &["root", "names no capability"]);
    refused(&place.run(&["plugin", "grant", "nobody"]), 2, &["nobody", "plugin list"]);
    refused(&place.run(&["plugin", "revoke", "nobody"]), 2, &["nobody", "plugin list"]);
    refused(&place.run(&["plugin", "grant", "../x"]), 2, &["no plugin name"]);
    ok(&place.run(&["plugin", "grant", "hostile", "fs:workspace:ro"]));
    let status = place.run(&["plugin", "show", "hostile", "--json"]).json();
    assert_eq!(status["granted"], json!({ "fs": [{ "path": "workspace", "mode": "ro" }] }));
    assert_eq!(status["state"], "waiting");
    // A grant for this build is for no other.
    ok(&place.run(&["plugin", "grant", "echo", "--this-build"]));
    assert_eq!(state(&place, "echo"), "live");
    let wasm = place.plugins().join("echo/echo.wasm");
    fs::copy(guests().join("shout/shout.wasm"), &wasm).unwrap();
    fs::write(place.plugins().join("echo/plugin.yaml"), "name: echo\nversion: 2.0.0\nrequests: { kv: true }\n")
        .unwrap();
    assert_ne!(state(&place, "echo"), "live");
}

#[test]
fn granting_and_switching_help_where_no_host_opens() {
    let place = Place::new();
    place.plugin("echo").config("nonsense: [\n");
    ok(&place.run(&["plugin", "grant", "echo"]));
    ok(&place.run(&["plugin", "disable", "guard"]));
    ok(&place.run(&["plugin", "revoke", "files"]));
    place.config("language: en\n");
    assert_eq!(state(&place, "echo"), "live");
    assert_eq!(state(&place, "guard"), "disabled");
    assert_eq!(state(&place, "files"), "waiting");
    // A file of ours that does not read is named, and not written over.
    fs::write(place.home().join("grants.yaml"), "grants: [{ plugin: a, kvv: true }]\n").unwrap();
    refused(&place.run(&["plugin", "grant", "echo"]), 1, &["grants.yaml", "line 1", "kvv", "mend it"]);
    refused(&place.run(&["plugin", "list"]), 2, &["grants.yaml", "line 1", "kvv"]);
}

#[test]
fn enable_shows_what_is_asked_for_and_asks() {
    let place = Place::new();
    place.plugin("echo").config("language: en\n");
    ok(&place.run(&["plugin", "disable", "echo"]));
    refused(&place.run(&["plugin", "enable", "echo"]), 2, &["--yes"]);
    assert_eq!(state(&place, "echo"), "disabled");
    let (status, shown) = at_a_terminal(&place, &["plugin", "enable", "echo"], "yes or no › ", "no\n");
    assert!(status == 3 && shown.contains("asks for: kv: true") && shown.contains("missing:  kv: true"), "{shown}");
    assert_eq!(state(&place, "echo"), "disabled");
    let (status, shown) = at_a_terminal(&place, &["plugin", "enable", "echo"], "yes or no › ", "yes\n");
    assert_eq!(status, 0, "{shown}");
    assert_eq!(state(&place, "echo"), "waiting", "to switch on is not to grant");
    ok(&place.run(&["plugin", "disable", "echo"]));
    ok(&place.run(&["plugin", "enable", "echo", "--yes"]));
    assert_eq!(state(&place, "echo"), "waiting");
}

/// A folder of the plugin `versioned`, ready to be installed.
fn package(folder: &Path, which: &str, version: &str) -> PathBuf {
    let package = folder.join(format!("package-{which}"));
    fs::create_dir_all(&package).unwrap();
    fs::copy(guests().join(format!("versioned-{which}/versioned_{which}.wasm")), package.join("v.wasm")).unwrap();
    fs::write(package.join("plugin.yaml"), format!("name: versioned\nversion: {version}\ncomponent: v.wasm\n"))
        .unwrap();
    package
}

async fn answers(host: &Host) -> String {
    text_of(&call(host, "version", json!({}), &CancellationToken::new()).await.parts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_host_takes_what_is_installed_and_what_is_gone_back_to() {
    let place = Place::bare();
    let folder = tempfile::tempdir().unwrap();
    let host = place.host().await;
    let (sender, mut changed) = tokio::sync::mpsc::unbounded_channel();
    let _watching = host.watch(move |line| drop(sender.send(line))).unwrap();
    let mut becomes = async |wanted: &str| {
        while answers(&host).await != wanted {
            changed.recv().await.unwrap();
        }
    };
    let a = package(folder.path(), "a", "1.0.0").display().to_string();
    let b = package(folder.path(), "b", "1.1.0").display().to_string();
    let installed = place.run(&["plugin", "install", &a]);
    assert!(ok(&installed).stdout.contains("tools:    version"), "{installed:?}");
    becomes("a").await;
    let installed = place.run(&["plugin", "install", &b]);
    assert!(ok(&installed).stderr.contains("in place of 1.0.0"), "{installed:?}");
    becomes("b").await;
    ok(&place.run(&["plugin", "rollback", "versioned"]));
    becomes("a").await;
    refused(&place.run(&["plugin", "rollback", "versioned"]), 1, &["no version before", "1.0.0", "1.1.0"]);
    ok(&place.run(&["plugin", "rollback", "versioned", "1.1.0"]));
    becomes("b").await;
    ok(&place.run(&["plugin", "remove", "versioned"]));
    while host.registry.snapshot().plugin("versioned").is_some() {
        changed.recv().await.unwrap();
    }
    refused(&place.run(&["plugin", "remove", "versioned"]), 1, &["no plugin versioned is installed"]);
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap().into_iter().map(|row| row.entry);
    let told: Vec<String> = rows
        .filter(|entry| entry.plugin == "versioned" && entry.kind == Kind::Operator)
        .map(|entry| entry.what)
        .collect();
    assert_eq!(told, ["install", "install", "rollback", "rollback", "remove"]);
}

#[test]
fn what_is_not_right_is_not_installed() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let good = package(folder.path(), "a", "1.0.0");
    let path = good.display().to_string();
    let digest = place.run(&["plugin", "check", &path, "--json"]).json()["digest"].as_str().unwrap().to_owned();
    refused(
        &place.run(&["plugin", "install", &path, "--digest", &"0".repeat(64)]),
        1,
        &[&digest, "nothing is installed"],
    );
    assert!(!place.home().join("plugins/versioned").exists());
    ok(&place.run(&["plugin", "install", &path, "--digest", &format!("sha256:{digest}")]));
    fs::write(good.join("v.wasm"), b"\0asm\x01\0\0\0").unwrap();
    refused(&place.run(&["plugin", "install", &path]), 1, &["core module", "nothing is installed"]);
    assert_eq!(state(&place, "versioned"), "live");
    // A folder that somebody put there is not taken away.
    copy(&guests().join("shout"), &place.home().join("plugins/shout"));
    let shout = guests().join("shout").display().to_string();
    refused(&place.run(&["plugin", "install", &shout]), 1, &["put there by hand"]);
    refused(&place.run(&["plugin", "remove", "shout"]), 1, &["put there by hand"]);
    refused(&place.run(&["plugin", "install", "nowhere"]), 2, &["neither"]);
    refused(&place.run(&["plugin", "remove", "files"]), 1, &["no plugin files is installed"]);
}

#[test]
fn check_finds_what_loading_would_and_publishes_nothing() {
    let place = Place::new();
    place.plugin("echo").config("language: en\n");
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &Path| place.run(&["plugin", "check", &path.display().to_string(), "--json"]);
    let good = package(folder.path(), "a", "1.0.0");
    let found = check(&good);
    assert_eq!((found.status, &found.json()["problems"]), (0, &json!([])), "{found:?}");
    assert_eq!(found.json()["tools"], json!(["version"]));
    let wrong = |manifest: &str, words: &str| {
        fs::write(good.join("plugin.yaml"), manifest).unwrap();
        let found = check(&good);
        let problems = found.json()["problems"].to_string();
        assert!(found.status == 1 && problems.contains(words), "{words}: {found:?}");
    };
    wrong("name: versioned\nversion: 1.0.0\n", "is missing");
    wrong("name: versioned\n", "version");
    wrong("name: versioned\nversion: 1\ncomponent: v.wasm\nrequests: { kv: true }\n", "does not import");
    wrong(
        "name: versioned\nversion: 1\ncomponent: v.wasm\nrequests: { fs: [{ path: data, mode: ro }] }\n",
        "absolute folder",
    );
    wrong("name: guard\nversion: 1.0.0\ncomponent: v.wasm\n", "another build");
    // A tool that another plugin has, and a gate.
    let twin = check(&guests().join("tool-twin"));
    assert!(twin.json()["problems"].to_string().contains("also a tool of echo"), "{twin:?}");
    let gate = check(&guests().join("gate-ask"));
    assert!(gate.status == 0 && gate.json()["notes"].to_string().contains("sees every call"), "{gate:?}");
    assert!(fs::read_dir(place.home().join("plugins")).unwrap().next().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_is_fetched_from_an_address_within_bounds() {
    let place = Place::new();
    place.config("language: en\nlimits: { component_bytes: 1000000 }\n");
    let folder = tempfile::tempdir().unwrap();
    let package = package(folder.path(), "a", "1.0.0");
    let read = |name: &str| fs::read(package.join(name)).unwrap();
    let (manifest, wasm) = (read("plugin.yaml"), read("v.wasm"));
    let (large, loops) = (vec![0u8; 2_000_000], axum::response::Redirect::temporary("/loop"));
    let away = axum::response::Redirect::temporary("http://203.0.113.7/x.wasm");
    let routes = Router::new()
        .route("/p/plugin.yaml", get(move || async move { manifest }))
        .route(
            "/p/v.wasm",
            get({
                let wasm = wasm.clone();
                move || async move { wasm }
            }),
        )
        .route("/alone_here.wasm", get(move || async move { wasm }))
        .route("/large.wasm", get(move || async move { large }))
        .route("/away.wasm", get(move || async move { away }))
        .route(
            "/loop",
            get({
                let loops = loops.clone();
                move || async move { loops }
            }),
        )
        .route("/loop.wasm", get(move || async move { loops }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let install = |path: &str| place.run(&["plugin", "install", &format!("{base}{path}")]);
    tokio::task::block_in_place(|| {
        refused(&install("/large.wasm"), 1, &["larger than 1000000 bytes"]);
        refused(&install("/absent/plugin.yaml"), 1, &["404"]);
        refused(&install("/loop.wasm"), 1, &["cannot fetch", "redirects too often"]);
        refused(&install("/away.wasm"), 1, &["cannot fetch", "plain HTTP"]);
        refused(&install("/p"), 2, &["names no plugin"]);
        refused(&place.run(&["plugin", "install", "http://203.0.113.7/x.wasm"]), 2, &["plain HTTP", "--digest"]);
        let pinned = ["plugin", "install", "http://203.0.113.7/x/plugin.yaml", "--digest", &"0".repeat(64)];
        refused(&place.run(&pinned), 2, &["plain HTTP", "a digest pins the component only"]);
        assert!(fs::read_dir(place.home().join("plugins")).unwrap().next().is_none());
        ok(&install("/p/"));
        assert_eq!(state(&place, "versioned"), "live");
        ok(&place.run(&["plugin", "remove", "versioned"]));
        ok(&install("/alone_here.wasm"));
        assert_eq!(state(&place, "alone-here"), "live");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_ships_is_for_the_manifest_too() {
    let place = Place::new();
    place.config("language: en\n");
    // The guard's own build, with nothing left that it protects.
    copy(&share().join("plugins/guard"), &place.plugins().join("guard"));
    let manifest = place.plugins().join("guard/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let (head, _) = text.split_once("config:").unwrap();
    fs::write(&manifest, format!("{head}config: {{ allow_write: [\"**\"], deny_write: [], protected: [] }}\n"))
        .unwrap();
    // The file tools' own build, before the gates.
    copy(&share().join("plugins/files"), &place.plugins().join("files"));
    let manifest = place.plugins().join("files/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\norder: -5\n")).unwrap();
    let host = place.host().await;
    assert_eq!(host.registry.snapshot().plugin("files").unwrap().state, State::Waiting);
    let finished = call(&host, "todo_write", json!({ "tasks": [] }), &CancellationToken::new()).await;
    assert_eq!(finished.status, CallStatus::Refused);
    assert!(text_of(&finished.parts).contains("another build"), "{finished:?}");
}

#[test]
fn a_grant_for_this_build_is_for_its_manifest_too() {
    let place = Place::new();
    place.plugin("echo").config("language: en\n");
    ok(&place.run(&["plugin", "grant", "echo", "--this-build"]));
    assert_eq!(state(&place, "echo"), "live");
    let granted = fs::read_to_string(place.home().join("grants.yaml")).unwrap();
    assert!(granted.contains("digest: sha256:") && granted.contains("manifest: sha256:"), "{granted}");
    let manifest = place.plugins().join("echo/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}config: {{ a: 1 }}\n")).unwrap();
    assert_eq!(state(&place, "echo"), "waiting");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_switched_off_is_not_loaded() {
    let place = Place::new();
    place.plugin("echo").config("language: en\n");
    ok(&place.run(&["plugin", "grant", "echo"]));
    ok(&place.run(&["plugin", "disable", "echo"]));
    fs::write(place.plugins().join("echo/echo.wasm"), b"\0asm").unwrap();
    let status = place.run(&["plugin", "show", "echo", "--json"]).json();
    assert_eq!(
        (&status["state"], &status["error"], &status["loaded"]),
        (&json!("disabled"), &Value::Null, &json!(false))
    );
    assert_eq!(status["granted"], json!({ "kv": true }), "what it may do is known all the same");
    let called = call(&place.host().await, "echo", json!({ "text": "x" }), &CancellationToken::new()).await;
    assert!(text_of(&called.parts).contains("the operator has disabled echo, so do not retry"), "{called:?}");
    // Switched on, it is found to be broken; a running host sees it come whole.
    ok(&place.run(&["plugin", "enable", "echo", "--yes"]));
    assert_eq!(state(&place, "echo"), "failed");
    let told = place.run(&["audit", "--json", "--plugin", "echo", "--all"]).stdout;
    assert!(!told.contains("\"gone\""), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_went_away_while_no_host_ran_opens_nothing() {
    let place = Place::new();
    place.plugin("gate-rewrite").config("language: en\n");
    drop(place.host().await);
    let gate = place.plugins().join("gate-rewrite");
    let away = place.home().join("away");
    fs::rename(&gate, &away).unwrap();
    let ask = async |host: &Host| {
        let finished = call(host, "glob_files", json!({ "pattern": "*" }), &CancellationToken::new()).await;
        (finished.status, text_of(&finished.parts))
    };
    let (status, text) = ask(&place.host().await).await;
    assert!(
        status == CallStatus::Refused && text.contains("gate-rewrite") && text.contains("folder is gone"),
        "{text}"
    );
    // A host that was not asked to load that folder does not miss it.
    let options = astrarium::host::Options { plugins: Vec::new(), ..place.options() };
    assert_eq!(ask(&Host::open(options).await.unwrap()).await.0, CallStatus::Ok);
    // Put back it judges again; switched off it is missed no longer.
    fs::rename(&away, &gate).unwrap();
    assert_eq!(ask(&place.host().await).await.0, CallStatus::Ok);
    fs::remove_dir_all(&gate).unwrap();
    assert_eq!(ask(&place.host().await).await.0, CallStatus::Refused);
    ok(&place.run(&["plugin", "disable", "gate-rewrite"]));
    assert_eq!(ask(&place.host().await).await.0, CallStatus::Ok);
}

#[test]
fn what_lies_in_a_workspace_decides_nothing() {
    let place = Place::new();
    place.config("language: en\n");
    let grant = "grants: [{ plugin: echo, kv: true }, { plugin: shout, kv: true }]\npermissions: { deny: ['*'] }\n";
    for name in ["astrarium.yaml", "grants.yaml", ".astrarium/astrarium.yaml", ".astrarium/grants.yaml"] {
        place.file(name, grant);
    }
    place.file("plugin-state.json", r#"{"disabled":["guard"]}"#);
    for folder in ["plugins", ".astrarium/plugins", ".claude/plugins"] {
        copy(&guests().join("shout"), &place.workspace().join(folder).join("shout"));
    }
    place.plugin("echo");
    let list = place.run(&["plugin", "list", "--json"]).json();
    let states: Vec<(&str, &str)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| (plugin["name"].as_str().unwrap(), plugin["state"].as_str().unwrap()))
        .collect();
    assert!(states.contains(&("echo", "waiting")) && states.contains(&("guard", "live")), "{states:?}");
    assert!(!states.iter().any(|(name, _)| *name == "shout"), "{states:?}");
    ok(&place.run(&["tool", "call", "glob_files", r#"{"pattern":"*"}"#]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plugin_asks_for_does_not_flood_the_model() {
    let place = Place::bare();
    place.plugin("echo").config("language: en\n");
    let names: Vec<String> = (0..2_000).map(|n| format!("IGNORE_ALL_RULES_{n}")).collect();
    let manifest = format!("name: echo\nversion: 1.0.0\nrequests: {{ kv: true, env: [{}] }}\n", names.join(", "));
    fs::write(place.plugins().join("echo/plugin.yaml"), manifest).unwrap();
    let host = place.host().await;
    let finished = call(&host, "echo", json!({ "text": "x" }), &CancellationToken::new()).await;
    let text = text_of(&finished.parts);
    assert!(finished.status == CallStatus::Refused && text.contains("do not retry") && text.len() < 800, "{text}");
}

#[test]
fn doctor_asks_the_gates_before_a_call_depends_on_them() {
    let place = Place::new();
    place.config("language: en\n");
    let gates = |place: &Place| {
        let checks = place.run(&["doctor", "--json"]).json();
        checks.as_array().unwrap().iter().find(|check| check["what"] == "gates").unwrap().clone()
    };
    let found = gates(&place);
    assert!(found["ok"] == true && found["said"].as_str().unwrap().contains("can judge"), "{found}");
    place.plugin("gate-broken");
    let found = gates(&place);
    assert!(found["ok"] == false && found["said"].as_str().unwrap().contains("gate-broken: it crashed"), "{found}");
    ok(&place.run(&["plugin", "disable", "gate-broken"]));
    assert_eq!(gates(&place)["ok"], true);
    // A rule that nobody can follow would refuse every call that changes something.
    place.config("language: en\nplugins: { guard: { config: { deny_write: ['a[']} } }\n");
    let found = gates(&place);
    assert!(found["ok"] == false && found["said"].as_str().unwrap().contains("guard: deny_write"), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_config_is_told_on_one_line_and_the_one_before_stays() {
    let place = Place::new();
    let good = "language: en\npermissions: { deny: [file_edit] }\n";
    place.plugin("echo").config(good);
    let host = place.host().await;
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let _watching = host.watch(move |line| drop(sender.send(line))).unwrap();
    let long = format!("language: en # {}\n", "x".repeat(2_000_000));
    // Where the values are free, so that they are read and not refused for their names.
    let free = |lines: String| format!("language: en\nplugins:\n  echo:\n    config:\n{lines}");
    let deep = free(format!("      a: {}\n", "[".repeat(1_000_000)));
    let chain =
        |n: usize| format!("      c{n}: &c{n} [{}]\n", if n == 0 { "x".into() } else { format!("*c{}", n - 1) });
    let anchors = free((0..20_000).map(chain).collect());
    let nine = |n: usize| vec![format!("*a{}", n - 1); 9].join(", ");
    let bomb: String = (1..40).map(|n| format!("      a{n}: &a{n} [{}]\n", nine(n))).collect();
    let bomb = free(format!("      a0: &a0 [x]\n{bomb}"));
    for (text, words) in [
        ("limits: { tool_ms: 0 }\n", vec!["line 1", "tool_ms", "from 1"]),
        ("language: en\nlimits:\n  tool_ms: -1\n", vec!["line 3", "whole number from 0"]),
        ("language: en\nmax_steps: 0\n", vec!["line 2", "max_steps"]),
        ("language: en\nlanguage: zh\n", vec!["line 2", "write it once"]),
        ("grants:\n\t- { plugin: echo }\n", vec!["line 2", "tab"]),
        ("grants:\n- { plugin: echo, http: [{ origin: 'https://*.*' }] }\n", vec!["line 2", "echo", "https"]),
        ("grants:\n- { plugin: echo, fs: [{ path: data, mode: ro }] }\n", vec!["line 2", "absolute folder"]),
        ("grants:\n- { plugin: echo, digest: abc }\n", vec!["line 2", "64 hex digits"]),
        ("permissions: { deny: [{ tool: a, with: b }] }\n", vec!["line 1", "with"]),
        (deep.as_str(), vec!["line 5", "nested too deep; write it flatter"]),
        (long.as_str(), vec!["larger than 1048576 bytes"]),
        (anchors.as_str(), vec!["line ", "; write "]),
        (bomb.as_str(), vec!["line ", "; "]),
    ] {
        place.config(text);
        let line = loop {
            let line = told.recv().await.unwrap();
            if line.contains("stays in force") {
                break line;
            }
        };
        let shown: String = text.chars().take(60).collect();
        assert!(line.contains("astrarium.yaml") && line.lines().count() == 1 && line.len() < 1_000, "{shown}: {line}");
        assert!(words.iter().all(|word| line.contains(word)), "{shown}: {words:?} in {line}");
        let denied = call(
            &host,
            "file_edit",
            json!({ "path": "a", "old_text": "a", "new_text": "b" }),
            &CancellationToken::new(),
        )
        .await;
        assert_eq!(denied.status, CallStatus::Refused, "{shown}: the rules before are in force");
    }
}

#[test]
fn odd_grants_are_told_with_file_and_line_and_the_others_hold() {
    let place = Place::new();
    place.plugin("echo").plugin("hostile").config(
        "language: en\ngrants:\n- { plugin: ecko, kv: true }\n- { plugin: echo, kv: true }\n- { plugin: hostile, fs: [{ path: /no/such/folder, mode: ro }] }\n",
    );
    let model = place.script("name: t\nsteps:\n- say: done\n");
    let ran = place.run(&["run", "go", "--model", &model]);
    let notes: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("astrarium.yaml: line")).collect();
    assert!(notes[0].contains("line 3: there is no plugin ecko") && notes[0].contains("nearest is echo"), "{ran:?}");
    assert!(notes[1].contains("line 5: hostile: the folder /no/such/folder is not there"), "{ran:?}");
    assert_eq!(state(&place, "echo"), "live");
}
