//! Components that hoard by many memories, tables and instances, or never come to an end while they start: real ones, made
//! of a guest that behaves and of core modules put behind it byte by byte, which no toolchain would make.

use astrarium::host::Host;
use astrarium::plugin::State;
use astrarium::store::AuditFilter;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, resident};
use serde_json::json;
use std::fs;
use tokio_util::sync::CancellationToken;

/// A number as WebAssembly writes it.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &leb(content.len())[..], content].concat()
}

/// A core module of these sections.
fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x01\0\0\0".as_slice(), &sections.concat()].concat()
}

/// `count` memories of `pages` each.
fn memories(count: usize, pages: usize) -> Vec<u8> {
    section(5, &[leb(count), [vec![0], leb(pages)].concat().repeat(count)].concat())
}

/// `count` tables of `elements` each.
fn tables(count: usize, elements: usize) -> Vec<u8> {
    section(4, &[leb(count), [vec![0x70, 0], leb(elements)].concat().repeat(count)].concat())
}

/// A module that runs `body` when it starts.
fn starting(body: &[u8], other: Vec<u8>) -> Vec<u8> {
    let code = [leb(1), leb(body.len()), body.to_vec()].concat();
    module(&[section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), other, section(8, &[0]), section(10, &code)])
}

/// A component with `times` instances of `module` behind all that it has.
fn with(component: &[u8], module: &[u8], times: usize) -> Vec<u8> {
    let (mut at, mut modules) = (8, 0);
    while at < component.len() {
        modules += usize::from(component[at] == 1);
        let (mut size, mut shift) = (0, 0);
        loop {
            at += 1;
            size |= usize::from(component[at] & 0x7f) << shift;
            shift += 7;
            if component[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1 + size;
    }
    let instance = [vec![0], leb(modules), vec![0]].concat();
    [component.to_vec(), section(1, module), section(2, &[leb(times), instance.repeat(times)].concat())].concat()
}

/// A host with `echo` as it is, and with a guest of one tool, `version`, behind which `module` is put.
async fn host(place: &Place, module: &[u8], times: usize) -> Host {
    place
        .plugin("echo")
        .plugin("versioned-a")
        .config("language: en\nlimits: { memory_mib: 64, tool_ms: 1500 }\ngrants:\n  - { plugin: echo, kv: true }\n");
    let wasm = place.plugins().join("versioned-a/versioned_a.wasm");
    let own = fs::read(&wasm).unwrap();
    fs::write(&wasm, with(&own, module, times)).unwrap();
    place.host().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hoards_or_never_starts_is_listed_with_its_limit_and_hides_no_other() {
    let before = resident();
    let spin = [0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b];
    for (what, more, times, words) in [
        ("a memory", module(&[memories(1, 1_100)]), 1, "memory"),
        ("memories of many instances", module(&[memories(1, 200)]), 7, "memory limit of 64 MiB (limits: memory_mib)"),
        ("too many memories", module(&[memories(1, 0)]), 90, "needs more than the limits allow"),
        ("memories of one instance", module(&[memories(90, 64)]), 1, "memor"),
        ("a table", module(&[tables(1, 5_000_000)]), 1, "table"),
        ("tables of many instances", module(&[tables(1, 10_000)]), 90, "table"),
        ("tables of one instance", module(&[tables(90, 10_000)]), 1, "table"),
        ("instances", module(&[]), 5_000, "instances"),
        ("a start without end", starting(&spin, Vec::new()), 1, "stopped after"),
    ] {
        let place = Place::bare();
        let host = host(&place, &more, times).await;
        let snapshot = host.registry.snapshot();
        let status = snapshot.plugin("versioned-a").unwrap().status();
        let error = status.error.clone().unwrap_or_default();
        assert_ne!(status.state, State::Live, "{what}");
        assert!(error.contains(words) && error.len() < 600 && error.lines().count() == 1, "{what}: {error}");
        let finished = call(&host, "echo", json!({ "text": "still here" }), &CancellationToken::new()).await;
        assert_eq!(finished.status, CallStatus::Ok, "{what}: {finished:?}");
        assert!(resident() - before < 200, "{what} keeps what it took");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_memories_grow_no_further_than_one() {
    // Each instance asks for 500 pages more when it starts, and does not mind a refusal.
    let grow = [0, 0x41, 0xf4, 0x03, 0x40, 0, 0x1a, 0x0b];
    let place = Place::bare();
    let host = host(&place, &starting(&grow, memories(1, 0)), 7).await;
    let finished = call(&host, "version", json!({}), &CancellationToken::new()).await;
    assert_eq!((finished.status, text_of(&finished.parts).as_str()), (CallStatus::Ok, "a"));
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap();
    let memory = rows.into_iter().filter(|row| row.entry.what == "version").filter_map(|row| row.entry.memory).max();
    assert!(memory.is_some_and(|memory| memory > 32 << 20 && memory <= 64 << 20), "{memory:?}");
}
