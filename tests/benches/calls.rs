//! What a call costs, as ratios in one run: ours against a raw wasmtime call of the same guest under the same limits, a
//! native function, and a bash hook; and a swap from the cache against one that compiles.
//!
//! Rounds of all candidates are interleaved, so that a machine that changes its pace changes it for all; medians count.
//! Run it by `cargo xtask bench`. It judges nothing: it prints each ratio beside the one to reach.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use anyhow::{Context as _, Result};
use astrarium::host::Host;
use astrarium::runtime::contract::astrarium::plugin::types as wit;
use astrarium::runtime::contract::exports::astrarium::plugin::tools::GuestIndices;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, call_unrecorded, guests};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Store, StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

const ROUNDS: usize = 40;
/// Calls of a round; a round's time is divided by it.
const CALLS: usize = 50;
/// Processes are slow enough to be timed one by one.
const PROCESSES: usize = 1;
const SWAPS: usize = 9;

fn main() -> Result<()> {
    // As the program itself runs: the provider once, then a multi-threaded runtime.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench())
}

async fn bench() -> Result<()> {
    let place = Place::bare();
    place.plugin("json1k").config("language: en\n");
    let host = place.host().await;
    let document = document();
    let input = json!({ "doc": document });
    println!("one call over {} bytes of JSON, {ROUNDS} rounds of {CALLS} calls", input.to_string().len());
    let raw = Raw::new(&host)?;
    let (mut ours, mut raws, mut natives, mut hooks, mut recorded) = (vec![], vec![], vec![], vec![], vec![]);
    for round in 0..=ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS {
            our_call(&host, "crunch", &input).await?;
        }
        let our_time = per_call(started, CALLS);
        let started = Instant::now();
        for _ in 0..CALLS {
            recorded_call(&host, "crunch", &input).await?;
        }
        let recorded_time = per_call(started, CALLS);
        let started = Instant::now();
        for _ in 0..CALLS {
            raw.call(&input).await?;
        }
        let raw_time = per_call(started, CALLS);
        let started = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(native(std::hint::black_box(&input))?);
        }
        let native_time = per_call(started, CALLS);
        let started = Instant::now();
        for _ in 0..PROCESSES {
            bash_hook(&input)?;
        }
        let hook_time = per_call(started, PROCESSES);
        // The first round fills caches and pools.
        if round > 0 {
            ours.push(our_time);
            recorded.push(recorded_time);
            raws.push(raw_time);
            natives.push(native_time);
            hooks.push(hook_time);
        }
    }
    let (ours, raws, natives, hooks) = (median(ours), median(raws), median(natives), median(hooks));
    let recorded = median(recorded);
    println!(
        "medians: ours {ours:?}, with the audit {recorded:?}, raw wasmtime {raws:?}, native {natives:?}, bash hook {hooks:?}"
    );
    row("our tool call / raw wasmtime call", ours, raws, 1.25);
    row("our tool call / native function", ours, natives, 4.0);
    row("our tool call / bash hook", ours, hooks, 1.0 / 40.0);
    swaps().await
}

/// The same swap, file replaced to first answer, with the artefact in the cache and without.
async fn swaps() -> Result<()> {
    let place = Place::bare();
    let folder = place.plugins().join("versioned");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("plugin.yaml"), "name: versioned\nversion: 0.1.0\n")?;
    let put = |which: &str| -> Result<()> {
        let from = guests().join(format!("versioned-{which}/versioned_{which}.wasm"));
        fs::copy(from, folder.join("next"))?;
        Ok(fs::rename(folder.join("next"), folder.join("versioned.wasm"))?)
    };
    let mut options = place.options();
    options.cache = place.home().join("cache");
    let cache = options.cache.clone();
    put("a")?;
    let host = Host::open(options).await?;
    let (mut cached, mut compiled) = (Vec::new(), Vec::new());
    let swap = async |which: &str| -> Result<Duration> {
        let started = Instant::now();
        put(which)?;
        host.registry.refresh().await;
        our_call(&host, "version", &json!({})).await?;
        Ok(started.elapsed())
    };
    swap("b").await?;
    swap("a").await?;
    for _ in 0..SWAPS {
        cached.push(swap("b").await?);
        remove_artefacts(&cache)?;
        compiled.push(swap("a").await?);
        // Both are in the cache again for the next round.
        swap("b").await?;
        swap("a").await?;
    }
    let (cached, compiled) = (median(cached), median(compiled));
    println!("medians: swap from the cache {cached:?}, swap that compiles {compiled:?}");
    row("cached swap / compiled swap", cached, compiled, 1.0 / 50.0);
    Ok(())
}

fn remove_artefacts(folder: &std::path::Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { remove_artefacts(&path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}

fn row(what: &str, a: Duration, b: Duration, to_reach: f64) {
    let ratio = a.as_secs_f64() / b.as_secs_f64();
    let word = if ratio <= to_reach { "reached" } else { "missed" };
    println!("{what:<36} {ratio:>9.4}   to reach: at most {to_reach:.4}   {word}");
}

fn per_call(started: Instant, calls: usize) -> Duration {
    started.elapsed() / calls as u32
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// About 1 KB: a table of observations.
fn document() -> Value {
    let row =
        |n: u32| json!({ "mjd": 60310.21 + f64::from(n), "flux": 1432.1 - f64::from(n), "band": "r", "ok": true });
    json!({ "name": "crunch", "rows": (0..16).map(row).collect::<Vec<_>>() })
}

/// What the guest does, native: parse, add up all numbers, write.
fn native(input: &Value) -> Result<String> {
    let text = input.to_string();
    let value: Value = serde_json::from_str(&text)?;
    let sum = sum(&value);
    Ok(serde_json::to_string(&json!({ "doc": value["doc"], "sum": sum }))?)
}

fn sum(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(0.0),
        Value::Array(items) => items.iter().map(sum).sum(),
        Value::Object(fields) => fields.values().map(sum).sum(),
        _ => 0.0,
    }
}

/// The usual hook of other hosts: a shell that reads the event and answers with a decision.
fn bash_hook(input: &Value) -> Result<()> {
    let script = r#"event=$(cat); case "$event" in *forbidden*) echo block ;; *) echo proceed ;; esac"#;
    let mut child = Command::new("bash").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("bash has a standard input")?.write_all(input.to_string().as_bytes())?;
    anyhow::ensure!(child.wait_with_output()?.stdout == b"proceed\n");
    Ok(())
}

/// All that a model's call goes through, but for the record in the store.
async fn our_call(host: &Host, tool: &str, input: &Value) -> Result<()> {
    let finished = call_unrecorded(host, tool, input, &CancellationToken::new()).await;
    anyhow::ensure!(finished.status == CallStatus::Ok, "{finished:?}");
    Ok(())
}

/// The same with the audit, which every call of a host is on.
async fn recorded_call(host: &Host, tool: &str, input: &Value) -> Result<()> {
    let finished = call(host, tool, input, &CancellationToken::new()).await;
    anyhow::ensure!(finished.status == CallStatus::Ok, "{finished:?}");
    Ok(())
}

/// The same guest by wasmtime alone, on the same engine and under the same kinds of limit.
struct Raw {
    engine: wasmtime::Engine,
    pre: InstancePre<RawState>,
    tools: GuestIndices,
}

struct RawState {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for RawState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl Raw {
    fn new(host: &Host) -> Result<Self> {
        let engine = host.registry.runtime().engine().clone();
        let bytes = fs::read(guests().join("json1k/json1k.wasm"))?;
        let component = Component::new(&engine, bytes).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut linker = Linker::<RawState>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        linker.define_unknown_imports_as_traps(&component).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let pre = linker.instantiate_pre(&component).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let tools = GuestIndices::new(&pre).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        Ok(Self { engine, pre, tools })
    }

    async fn call(&self, input: &Value) -> Result<()> {
        let text = input.to_string();
        let run = async {
            let mut table = ResourceTable::new();
            table.set_max_capacity(1_024);
            let wasi = WasiCtxBuilder::new()
                .stdout(MemoryOutputPipe::new(64 << 10))
                .stderr(MemoryOutputPipe::new(64 << 10))
                .allow_blocking_current_thread(true)
                .build();
            let limits =
                StoreLimitsBuilder::new().memory_size(256 << 20).table_elements(200_000).instances(100).build();
            let mut store = Store::new(&self.engine, RawState { wasi, table, limits });
            store.limiter(|state| &mut state.limits);
            store.set_hostcall_fuel(16 << 20);
            store.set_epoch_deadline(1);
            store.epoch_deadline_async_yield_and_update(1);
            let context = wit::CallContext {
                session: String::new(),
                call: "bench".into(),
                step: 1,
                agent: wit::AgentKind::Main,
                language: "en".into(),
                extra: "{}".into(),
            };
            let instance = self.pre.instantiate_async(&mut store).await?;
            let tools = self.tools.load(&mut store, &instance)?;
            tools.call_call_tool(&mut store, &context, "crunch", &text).await
        };
        let answer = tokio::time::timeout(Duration::from_secs(60), run).await?;
        let output = answer.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        anyhow::ensure!(output.is_ok(), "the guest answers");
        Ok(())
    }
}
