//! The operator's file and the plugin folders while a host runs: what is edited holds at once, what cannot is said, and a
//! folder that goes and comes back is watched as before.

use astrarium::host::{Host, Which};
use astrarium::model::scripted::Scripted;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, copy, guests};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

const GRANT: &str = "language: en\ngrants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n";

async fn calls(host: &Host, tool: &str, input: Value) -> (CallStatus, String) {
    let finished = call(host, tool, input, &CancellationToken::new()).await;
    (finished.status, text_of(&finished.parts))
}

/// The next line that says this.
async fn line(told: &mut UnboundedReceiver<String>, words: &str) -> String {
    loop {
        let line = told.recv().await.expect("the host watches");
        if line.contains(words) {
            return line;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_rules_and_settings_of_plugins_hold_at_once_and_the_rest_is_said() {
    let place = Place::new();
    place.plugin("hostile").config(GRANT);
    let host = place.host().await;
    let (sender, mut told) = unbounded_channel();
    let _watching = host.watch(move |line| drop(sender.send(line))).unwrap();
    let model = || Arc::new(Scripted::from_str("t", "name: t\nsteps:\n- say: done\n").unwrap());
    let open = host.session(Which::New { title: "open" }, model()).unwrap();
    assert!(open.price.is_none());

    place.config(&format!("{GRANT}limits: {{ tool_ms: 150, memory_mib: 4000, parallel_calls: 3 }}\n"));
    let said = line(&mut told, "limits: ").await;
    assert!(said.contains("memory_mib, parallel_calls needs a restart"), "{said}");
    let (status, said) = calls(&host, "spin", json!({})).await;
    assert!(status == CallStatus::Failed && said.contains("150 ms"), "{said}");

    place.config(&format!("{GRANT}prices: {{ 'scripted:t': {{ input: 1, output: 2 }} }}\nmax_output_tokens: 99\n"));
    let said = line(&mut told, "from the next session on").await;
    assert!(said.contains("max_output_tokens, prices counts"), "{said}");
    let next = host.session(Which::New { title: "next" }, model()).unwrap();
    assert!(next.price.is_some() && next.max_output_tokens == 99);
    assert!(open.price.is_none() && open.max_output_tokens != 99, "an open one stays as it began");

    let write = || calls(&host, "file_write", json!({ "path": "notes/a.txt", "content": "x" }));
    assert_eq!(write().await.0, CallStatus::Ok);
    place.config(&format!("{GRANT}plugins: {{ guard: {{ config: {{ deny_write: ['notes/**'] }} }} }}\n"));
    while write().await.0 != CallStatus::Refused {}
    place.config(&format!("{GRANT}permissions: {{ deny: [ok] }}\n"));
    while write().await.0 != CallStatus::Ok {}
    assert_eq!(calls(&host, "ok", json!({})).await.0, CallStatus::Refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_folder_that_goes_and_comes_back_is_watched_as_before() {
    let place = Place::bare();
    let root = place.plugins();
    let put = |which: &str| {
        let folder = root.join("versioned");
        fs::create_dir_all(&folder).unwrap();
        let component = format!("versioned-{which}/versioned_{which}.wasm");
        fs::copy(guests().join(component), folder.join(format!("{which}.wasm"))).unwrap();
        fs::write(folder.join("plugin.yaml"), format!("name: versioned\nversion: 1.0.0\ncomponent: {which}.wasm\n"))
            .unwrap();
    };
    put("a");
    let host = place.host().await;
    let (sender, mut told) = unbounded_channel::<String>();
    let _watching = host.watch(move |line| drop(sender.send(line))).unwrap();
    let mut becomes = async |wanted: &str| {
        while calls(&host, "version", json!({})).await.1 != wanted {
            told.recv().await.unwrap();
        }
    };
    becomes("a").await;
    for _ in 0..2 {
        // Moved away whole, and made anew by a copy: another folder of the same name.
        let away = place.home().join("away");
        fs::rename(&root, &away).unwrap();
        put("a");
        becomes("a").await;
        put("b");
        becomes("b").await;
        fs::remove_dir_all(&root).unwrap();
        copy(&away, &root);
        becomes("a").await;
        put("b");
        becomes("b").await;
        put("a");
        becomes("a").await;
        fs::remove_dir_all(&away).unwrap();
    }
}
