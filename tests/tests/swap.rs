//! Live swap: a plugin is replaced while the host runs, and nothing waits, mixes or is lost.

use astrarium::event::Event;
use astrarium::host::{Host, Which};
use astrarium::model::scripted::Scripted;
use astrarium::plugin::State;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, Turn, ask, call, guests, share};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const MANIFEST: &str = "name: versioned\nversion: 0.1.0\n";

/// Replaces the component as an editor or a build does: written beside, then renamed over.
fn put(place: &Place, which: &str) {
    let folder = place.plugins().join("versioned");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(guests().join(format!("versioned-{which}/versioned_{which}.wasm")), folder.join("new.tmp")).unwrap();
    fs::rename(folder.join("new.tmp"), folder.join("versioned.wasm")).unwrap();
    if !folder.join("plugin.yaml").exists() {
        fs::write(folder.join("plugin.yaml"), MANIFEST).unwrap();
    }
}

async fn turn(host: &Host, script: &str, seen: impl Fn(&Event) + Send + Sync) -> Turn {
    let model = Arc::new(Scripted::from_str("swap", script).unwrap());
    let mut session = host.session(Which::New { title: "swap" }, model).unwrap();
    ask(&mut session, "which version?", 20, &CancellationToken::new(), seen).await
}

const ONE_CALL: &str = "name: one\nsteps:\n- calls: [{ tool: version, input: {} }]\n- say: done\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_call_in_flight_ends_on_the_old_version_and_the_next_takes_the_new_one() {
    let place = Place::bare();
    put(&place, "a");
    let host = Arc::new(place.host().await);
    let started = Arc::new(Notify::new());
    let script = "name: two\nsteps:\n- calls: [{ tool: version, input: { wait_ms: 1500 } }]\n- calls: [{ tool: version, input: {} }]\n- say: done\n";
    let running = tokio::spawn({
        let (host, started) = (host.clone(), started.clone());
        async move {
            turn(&host, script, |event| {
                if matches!(event, Event::CallStarted { .. }) {
                    started.notify_one();
                }
            })
            .await
        }
    });
    started.notified().await;
    put(&place, "b");
    let lines = host.registry.refresh().await;
    assert!(lines.iter().any(|line| line.starts_with("plugin versioned is now ")), "{lines:?}");
    let turn = running.await.unwrap();
    assert_eq!(turn.outputs("version"), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watcher_sees_a_rename_an_added_folder_and_a_removed_one() {
    let place = Place::bare();
    put(&place, "a");
    let host = place.host().await;
    let changed = Arc::new(Notify::new());
    let _watching = {
        let changed = changed.clone();
        host.watch(move |_| changed.notify_one()).unwrap()
    };
    assert_eq!(turn(&host, ONE_CALL, |_| {}).await.outputs("version"), ["a"]);
    put(&place, "b");
    changed.notified().await;
    assert_eq!(turn(&host, ONE_CALL, |_| {}).await.outputs("version"), ["b"]);
    fs::remove_dir_all(place.plugins().join("versioned")).unwrap();
    changed.notified().await;
    while host.registry.snapshot().tool("version").is_some() {
        changed.notified().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_version_leaves_the_old_one_running_and_says_why() {
    let place = Place::bare();
    put(&place, "a");
    let host = place.host().await;
    let wasm = place.plugins().join("versioned/versioned.wasm");
    let good = fs::read(&wasm).unwrap();
    let core_module = b"\0asm\x01\0\0\0".to_vec();
    let bad: [(&str, Vec<u8>); 4] = [
        ("too short", b"\0asm".to_vec()),
        ("core module", core_module),
        ("not a valid component", good[..good.len() / 2].to_vec()),
        ("not WebAssembly", b"#!/bin/sh\necho hello\n".to_vec()),
    ];
    for (reason, bytes) in bad {
        fs::write(&wasm, bytes).unwrap();
        host.registry.refresh().await;
        let snapshot = host.registry.snapshot();
        let status = snapshot.plugin("versioned").unwrap().status();
        let error = status.error.unwrap_or_default();
        assert!(error.contains(reason) && error.contains("goes on"), "{reason}: {error}");
        assert_eq!(turn(&host, ONE_CALL, |_| {}).await.outputs("version"), ["a"], "{reason}");
    }
    fs::write(&wasm, good).unwrap();
    host.registry.refresh().await;
    assert_eq!(host.registry.snapshot().plugin("versioned").unwrap().error, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_asks_for_more_than_is_granted_is_held_back() {
    let place = Place::bare();
    place.plugin("hostile").config("grants:\n- { plugin: hostile, fs: [{ path: workspace, mode: ro }] }\n");
    let manifest = place.plugins().join("hostile/plugin.yaml");
    let asks_for_more = fs::read_to_string(&manifest).unwrap();
    assert!(asks_for_more.contains("mode: rw") && asks_for_more.contains("version: 0.1.0"), "{asks_for_more}");
    fs::write(&manifest, asks_for_more.replace("mode: rw", "mode: ro")).unwrap();
    let host = place.host().await;
    assert!(host.problems.is_empty(), "{:?}", host.problems);
    fs::write(&manifest, asks_for_more.replace("0.1.0", "0.2.0")).unwrap();
    host.registry.refresh().await;
    let status = host.registry.snapshot().plugin("hostile").unwrap().status();
    let error = status.error.unwrap_or_default();
    assert!(error.contains("asks for more than is granted") && error.contains("mode: rw"), "{error}");
    assert_eq!((status.version.as_str(), status.state), ("0.1.0", astrarium::plugin::State::Live));
    assert_eq!(status.granted.to_string(), "fs: [{ path: workspace, mode: ro }]");
    // The operator grants it, and it takes over.
    place.config("grants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n");
    let host = place.host().await;
    assert_eq!(host.registry.snapshot().plugin("hostile").unwrap().status().version, "0.2.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_is_not_swapped_for_a_version_that_judges_nothing() {
    let place = Place::new();
    place.plugin("gate-rewrite").config("language: en\n");
    let host = place.host().await;
    let gate = place.plugins().join("gate-rewrite");
    fs::copy(guests().join("versioned-a/versioned_a.wasm"), component(&gate)).unwrap();
    host.registry.refresh().await;
    let snapshot = host.registry.snapshot();
    let plugin = snapshot.plugin("gate-rewrite").unwrap();
    let error = plugin.error.clone().unwrap_or_default();
    assert!(plugin.state == State::Live && plugin.is_gate() && error.contains("no longer exports the gate"), "{error}");
    drop((snapshot, host));
    // Nor while no host runs: a new process has none to go on with, and lets nothing through.
    for _ in 0..2 {
        let script = ONE_CALL.replace("version, input: {}", "glob_files, input: { pattern: x }");
        let outputs = turn(&place.host().await, &script, |_| {}).await.outputs("glob_files");
        assert!(outputs[0].contains("no longer exports the gate"), "{outputs:?}");
    }
    // Switched off and on again it is another decision.
    assert_eq!(place.run(&["plugin", "disable", "gate-rewrite"]).status, 0);
    assert_eq!(place.run(&["plugin", "enable", "gate-rewrite", "--yes"]).status, 0);
    for _ in 0..2 {
        assert_eq!(turn(&place.host().await, ONE_CALL, |_| {}).await.outputs("version"), ["a"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_for_calls_and_results_is_not_swapped_for_one_that_judges_results_alone() {
    let place = Place::bare();
    place.plugin("hook-hostile").config("language: en\n");
    let host = place.host().await;
    fs::copy(share().join("plugins/redact/redact.wasm"), component(&place.plugins().join("hook-hostile"))).unwrap();
    host.registry.refresh().await;
    let snapshot = host.registry.snapshot();
    let plugin = snapshot.plugin("hook-hostile").unwrap();
    let error = plugin.error.clone().unwrap_or_default();
    assert!(plugin.state == State::Live && error.contains("no longer exports the gate"), "{error}");
    assert!(plugin.status().hooks.iter().any(|hook| hook == "pre-tool-use"), "{:?}", plugin.status());
    drop((snapshot, host));
    // Nor while no host runs.
    put(&place, "a");
    for _ in 0..2 {
        let outputs = turn(&place.host().await, ONE_CALL, |_| {}).await.outputs("version");
        assert!(outputs[0].contains("no longer exports the gate pre-tool-use that calls rely on"), "{outputs:?}");
    }
    assert_eq!(place.run(&["plugin", "disable", "hook-hostile"]).status, 0);
    assert_eq!(place.run(&["plugin", "enable", "hook-hostile", "--yes"]).status, 0);
    for _ in 0..2 {
        assert_eq!(turn(&place.host().await, ONE_CALL, |_| {}).await.outputs("version"), ["a"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_cannot_load_keeps_every_call_out_until_it_is_disabled() {
    let place = Place::bare();
    put(&place, "a");
    place.plugin("gate-rewrite");
    let host = place.host().await;
    assert_eq!(turn(&host, ONE_CALL, |_| {}).await.outputs("version"), ["a"]);
    drop(host);
    // In a new process there is no old version to go on with.
    fs::write(component(&place.plugins().join("gate-rewrite")), b"\0asm").unwrap();
    let host = place.host().await;
    let outputs = turn(&host, ONE_CALL, |_| {}).await.outputs("version");
    assert!(outputs[0].contains("gate-rewrite") && outputs[0].contains("disables"), "{outputs:?}");
    astrarium::config::set_disabled(&place.home(), "gate-rewrite", true).unwrap();
    let host = place.host().await;
    assert_eq!(turn(&host, ONE_CALL, |_| {}).await.outputs("version"), ["a"]);
}

fn component(folder: &Path) -> std::path::PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "wasm")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_cache_is_a_miss_and_no_failure() {
    let place = Place::bare();
    put(&place, "a");
    let mut options = place.options();
    options.cache = place.home().join("own-cache");
    drop(Host::open(options.clone()).await.unwrap());
    let mut artefacts = 0;
    for entry in walk(&options.cache) {
        if entry.extension().is_some_and(|end| end == "cwasm") {
            let mut bytes = fs::read(&entry).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            fs::remove_file(&entry).unwrap();
            fs::write(&entry, bytes).unwrap();
            artefacts += 1;
        }
    }
    assert_eq!(artefacts, 1);
    let host = Host::open(options).await.unwrap();
    assert_eq!(turn(&host, ONE_CALL, |_| {}).await.outputs("version"), ["a"]);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guard_that_ships_cannot_be_replaced_by_something_that_does_not_judge() {
    let place = Place::new();
    let guard = place.plugins().join("guard");
    fs::create_dir_all(&guard).unwrap();
    fs::copy(guests().join("versioned-a/versioned_a.wasm"), guard.join("guard.wasm")).unwrap();
    fs::write(guard.join("plugin.yaml"), "name: guard\nversion: 9.0.0\n").unwrap();
    let host = place.host().await;
    let outputs = turn(&host, ONE_CALL, |_| {}).await.outputs("version");
    assert!(outputs[0].contains("refused by guard: it cannot judge calls"), "{outputs:?}");
    // Broken from the first start on, so that nobody has ever seen it judge.
    fs::write(guard.join("guard.wasm"), b"\0asm").unwrap();
    put(&place, "a");
    let host = place.host().await;
    let outputs = turn(&host, ONE_CALL, |_| {}).await.outputs("version");
    assert!(outputs[0].contains("refused by guard: it cannot judge calls"), "{outputs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_takes_no_tool_of_another_plugin_and_breaks_only_itself() {
    // Whatever the order of their names.
    for (updated, other) in [("aaa", "echo"), ("zzz", "echo")] {
        let place = Place::bare();
        place.plugin("echo").config("grants:\n- { plugin: echo, kv: true }\n");
        let folder = place.plugins().join(updated);
        let put = |component: &str, version: &str| {
            fs::create_dir_all(&folder).unwrap();
            let manifest = format!("name: {updated}\nversion: {version}\n");
            fs::copy(guests().join(component), folder.join(format!("{updated}.wasm"))).unwrap();
            fs::write(folder.join("plugin.yaml"), manifest).unwrap();
        };
        put("versioned-a/versioned_a.wasm", "1.0.0");
        let host = place.host().await;
        let owner = |tool: &str| host.registry.snapshot().tool(tool).map(|(plugin, _)| plugin.name.clone());
        assert_eq!(owner("version").as_deref(), Some(updated));
        put("tool-twin/tool_twin.wasm", "2.0.0");
        for _ in 0..2 {
            let told = host.registry.refresh().await.join("\n");
            assert_eq!((owner("echo").as_deref(), owner("version").as_deref()), (Some(other), Some(updated)), "{told}");
            let snapshot = host.registry.snapshot();
            let (kept, held) = (snapshot.plugin(updated).unwrap(), snapshot.plugin(other).unwrap());
            assert_eq!((kept.state, held.state, &held.error), (State::Live, State::Live, &None));
            let error = kept.error.clone().unwrap();
            assert!(error.contains("version 2.0.0 lists the tool echo, which is a tool of echo; rename it"), "{error}");
        }
        // When the other one is gone the name is free, and the version that waited takes it.
        fs::remove_dir_all(place.plugins().join("echo")).unwrap();
        host.registry.refresh().await;
        assert_eq!((owner("echo").as_deref(), owner("version")), (Some(updated), None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_updates_may_hand_a_tool_over() {
    let place = Place::bare();
    let put = |name: &str, component: &str| {
        let folder = place.plugins().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(guests().join(component), folder.join(format!("{name}.wasm"))).unwrap();
        fs::write(folder.join("plugin.yaml"), format!("name: {name}\nversion: 1.0.0\n")).unwrap();
    };
    let (version, twin) = ("versioned-a/versioned_a.wasm", "tool-twin/tool_twin.wasm");
    put("one", version);
    put("two", twin);
    let host = place.host().await;
    put("one", twin);
    put("two", version);
    host.registry.refresh().await;
    let snapshot = host.registry.snapshot();
    let owner = |tool: &str| snapshot.tool(tool).unwrap().0.name.clone();
    assert_eq!((owner("echo"), owner("version")), ("one".into(), "two".into()));
    assert!(snapshot.plugins.iter().all(|plugin| plugin.error.is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_plugin_keeps_its_tool_names_from_nobody() {
    let place = Place::bare();
    place.plugin("echo").plugin("tool-twin").config("grants:\n- { plugin: echo, kv: true }\n");
    let host = place.host().await;
    let snapshot = host.registry.snapshot();
    assert_eq!(snapshot.tool("echo").unwrap().0.name, "echo");
    assert!(snapshot.plugin("tool-twin").unwrap().error.as_ref().unwrap().contains("also a tool of echo"));
    astrarium::config::set_disabled(&place.home(), "echo", true).unwrap();
    let host = place.host().await;
    assert_eq!(host.registry.snapshot().tool("echo").unwrap().0.name, "tool-twin");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_host_sees_a_switch_a_grant_and_a_revocation() {
    let place = Place::bare();
    place.plugin("echo");
    let host = place.host().await;
    let changed = Arc::new(Notify::new());
    let _watching = {
        let changed = changed.clone();
        host.watch(move |_| changed.notify_one()).unwrap()
    };
    let state = || host.registry.snapshot().plugin("echo").unwrap().state;
    assert_eq!(state(), State::Waiting);
    let becomes = async |wanted: State| {
        while state() != wanted {
            changed.notified().await;
        }
    };
    place.config("grants:\n- { plugin: echo, kv: true }\n");
    becomes(State::Live).await;
    astrarium::config::set_disabled(&place.home(), "echo", true).unwrap();
    becomes(State::Disabled).await;
    astrarium::config::set_disabled(&place.home(), "echo", false).unwrap();
    becomes(State::Live).await;
    // A broken version lies in the folder, and the grant goes: the version that runs loses it too.
    fs::write(component(&place.plugins().join("echo")), b"\0asm").unwrap();
    place.config("grants: []\n");
    becomes(State::Waiting).await;
    assert!(host.registry.snapshot().plugin("echo").unwrap().status().granted.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_back_holds_though_the_config_does_not_read_and_before_anything_is_watched() {
    let place = Place::bare();
    let good = "grants:\n- { plugin: echo, kv: true }\n";
    place.plugin("echo").config(good);
    let host = place.host().await;
    let state = || host.registry.snapshot().plugin("echo").unwrap().state;
    assert_eq!(state(), State::Live);
    // Between the first look and the watch.
    astrarium::config::set_disabled(&place.home(), "echo", true).unwrap();
    let changed = Arc::new(Notify::new());
    let _watching = {
        let changed = changed.clone();
        host.watch(move |_| changed.notify_one()).unwrap()
    };
    let becomes = async |wanted: State| {
        while state() != wanted {
            changed.notified().await;
        }
    };
    becomes(State::Disabled).await;
    astrarium::config::set_disabled(&place.home(), "echo", false).unwrap();
    becomes(State::Live).await;
    place.config("grants: [\n");
    assert_eq!(place.run(&["plugin", "revoke", "echo"]).status, 0);
    becomes(State::Waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_whose_folder_goes_away_opens_nothing() {
    let place = Place::bare();
    put(&place, "a");
    place.plugin("gate-rewrite");
    let host = place.host().await;
    fs::remove_dir_all(place.plugins().join("gate-rewrite")).unwrap();
    for _ in 0..2 {
        host.registry.refresh().await;
        let outputs = turn(&host, ONE_CALL, |_| {}).await.outputs("version");
        assert!(outputs[0].contains("gate-rewrite") && outputs[0].contains("its folder is gone"), "{outputs:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_judges_after_the_guard_that_calls_rely_on() {
    let place = Place::new();
    place.plugin("gate-rewrite");
    let manifest = place.plugins().join("gate-rewrite/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\norder: 100000\n")).unwrap();
    let host = place.host().await;
    let snapshot = host.registry.snapshot();
    let order: Vec<&str> =
        snapshot.hooks(|exports| exports.pre_tool_use.is_some()).map(|(plugin, ..)| plugin.name.as_str()).collect();
    assert_eq!(order, ["gate-rewrite", "guard"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_folder_does_not_take_the_place_of_a_plugin_that_reads() {
    let place = Place::new();
    let host = place.host().await;
    let folder = place.home().join("plugins/files");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("README"), "no plugin").unwrap();
    let lines = host.registry.refresh().await;
    assert!(lines.iter().any(|line| line.contains("does not take the place")), "{lines:?}");
    assert_eq!(host.registry.snapshot().plugin("files").unwrap().state, State::Live);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_a_granted_folder_opens_nothing_else() {
    let place = Place::bare();
    place.plugin("hostile");
    let granted = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc", granted.path().join("link")).unwrap();
    let manifest = place.plugins().join("hostile/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let asked = granted.path().join("link").display().to_string();
    fs::write(&manifest, text.replace("path: workspace", &format!("path: {asked}"))).unwrap();
    place.config(&format!(
        "grants:\n- {{ plugin: hostile, fs: [{{ path: {}, mode: rw }}] }}\n",
        granted.path().display()
    ));
    let status = place.host().await.registry.snapshot().plugin("hostile").unwrap().status();
    assert_eq!(status.state, State::Waiting, "{status:?}");
    // Nor does a grant reach what is kept out.
    let home = place.home().canonicalize().unwrap().display().to_string();
    fs::write(&manifest, text.replace("path: workspace", &format!("path: {home}"))).unwrap();
    place.config(&format!("grants:\n- {{ plugin: hostile, fs: [{{ path: {home}, mode: rw }}] }}\n"));
    let status = place.host().await.registry.snapshot().plugin("hostile").unwrap().status();
    assert_eq!(status.state, State::Waiting, "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_granted_folder_that_becomes_a_link_opens_nothing() {
    let place = Place::bare();
    place.plugin("hostile");
    let workspace = place.workspace().canonicalize().unwrap();
    let data = workspace.join("data");
    fs::create_dir(&data).unwrap();
    let manifest = place.plugins().join("hostile/plugin.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let rules = format!("[{{ path: workspace, mode: rw }}, {{ path: {}, mode: rw }}]", data.display());
    fs::write(&manifest, text.replace("[{ path: workspace, mode: rw }]", &rules)).unwrap();
    place.config(&format!("grants:\n- {{ plugin: hostile, fs: {rules} }}\n"));
    let host = place.host().await;
    let never = CancellationToken::new();
    let append = async || call(&host, "append", json!({ "line": "x" }), &never).await;
    let done = append().await;
    assert_eq!(done.status, CallStatus::Ok, "{done:?}");
    // Whoever may write in the workspace can do this while the host runs, and before it starts.
    for leads_to in [place.home(), std::path::PathBuf::from("/etc")] {
        fs::remove_file(&data).or_else(|_| fs::remove_dir(&data)).unwrap();
        std::os::unix::fs::symlink(leads_to, &data).unwrap();
        let done = append().await;
        assert!(done.status == CallStatus::Failed && text_of(&done.parts).contains("has become a link"), "{done:?}");
        let anew = place.host().await;
        let status = anew.registry.snapshot().plugin("hostile").unwrap().status();
        assert_eq!(status.state, State::Waiting, "{status:?}");
    }
    assert_eq!(place.text("effects"), "x\n");
}
