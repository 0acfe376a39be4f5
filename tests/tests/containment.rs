//! Guests that do what no guest should. After each: the call failed with a plain reason, the host's memory is back, and
//! the next call works. Alone in its program, since it looks at the memory of the whole process.

use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, resident};
use serde_json::json;
use std::process::Command;
use tokio_util::sync::CancellationToken;

/// Short limits, so that what never ends is stopped soon.
const CONFIG: &str = "
language: en
limits: { tool_ms: 1500, memory_mib: 128 }
grants:
  - { plugin: hostile, fs: [{ path: workspace, mode: rw }] }
  - { plugin: echo, kv: true }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hostile_guest_is_contained() {
    let place = Place::bare();
    place.plugin("hostile").plugin("echo").config(CONFIG);
    for n in 0..3 {
        place.file(&format!("file{n}.txt"), "text");
    }
    let made = Command::new("mkfifo").arg(place.workspace().join("fifo")).status().expect("mkfifo starts");
    assert!(made.success());
    let host = place.host().await;
    assert!(host.problems.is_empty(), "{:?}", host.problems);
    let never = CancellationToken::new();
    // Warm: pools and caches are filled once and stay.
    assert_eq!(call(&host, "ok", json!({}), &never).await.status, CallStatus::Ok);
    let _ = call(&host, "big_output", json!({}), &never).await;
    let _ = call(&host, "allocate", json!({}), &never).await;
    let before = resident();
    let expected = [
        ("spin", "stopped after 1500 ms"),
        ("sleep", "stopped after 1500 ms"),
        ("recurse", "stack overflow"),
        ("panic", "boom"),
        ("print_forever", "captured_bytes"),
        ("big_output", "host_call_bytes"),
        ("open_many", "handles"),
        ("hold_timers", "handles"),
        ("hold_headers", "handles"),
        ("open_fifo", ""),
        ("log_forever", "stopped after 1500 ms"),
        ("bad_json", "not JSON"),
    ];
    for (tool, reason) in expected {
        let finished = call(&host, tool, json!({}), &never).await;
        let text = text_of(&finished.parts);
        assert_eq!(finished.status, CallStatus::Failed, "{tool}: {text}");
        assert!(text.contains(reason), "{tool}: {text}");
        assert!(text.len() < 1_000, "{tool}: the reason is a page: {text}");
        let next = call(&host, "ok", json!({}), &never).await;
        assert_eq!(text_of(&next.parts), "fine", "after {tool}");
        let grown = resident() - before;
        eprintln!("{tool}: {grown} MiB");
        assert!(grown < 48, "{tool} left {grown} MiB behind");
    }
    let finished = call(&host, "allocate", json!({}), &never).await;
    let text = text_of(&finished.parts);
    assert!(text.contains("refused after 1") || text.contains("memory_mib"), "{text}");
    assert_eq!(host.registry.runtime().stuck_threads(), 0, "nothing had to be given up");
}
