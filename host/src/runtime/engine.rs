//! The engine's configuration, and the ticker that interrupts guests.

use crate::limits::Limits;
use std::time::Duration;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

/// How often guests are interrupted to see whether their time is over or the turn was cancelled.
const TICK: Duration = Duration::from_millis(10);

/// Raises the number of files that this process may have open as far as the system lets it: guests may hold thousands
/// together, and by default it is 1,024. Native programs get their own bound.
#[cfg(target_os = "linux")]
pub(super) fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = hard.min(OPEN_FILES).max(soft);
        // What the system refuses stays as it was; a guest that meets the bound is told by the system's own error.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn raise_open_files() {}

/// Open files that are asked for: 32 calls at once with the handles that each may have.
#[cfg(target_os = "linux")]
const OPEN_FILES: u64 = 65_536;

/// Starts an engine with pooled instances, or with on-demand ones where the address space is too short for a pool.
pub(super) fn start(limits: &Limits) -> wasmtime::Result<Engine> {
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
    let engine = match Engine::new(&config) {
        Ok(engine) => engine,
        Err(error) => {
            tracing::warn!("no room for an instance pool, calls will be slower: {error}");
            Engine::new(&base())?
        }
    };
    start_ticker(&engine)?;
    Ok(engine)
}

fn base() -> Config {
    let mut config = Config::new();
    config.cranelift_opt_level(OptLevel::Speed);
    config.epoch_interruption(true);
    config.memory_init_cow(true);
    // Guests get no GC and no component-model async: both have had advisories, and no guest needs them.
    config.gc_support(false);
    config.concurrency_support(false);
    config.wasm_threads(false);
    // A deep recursion is a trap of the guest long before it is a problem of the host's thread.
    config.max_wasm_stack(1 << 20);
    config.async_stack_size(2 << 20);
    config
}

/// Guests that may wait for other work beside those that run: each keeps its instance meanwhile, and its permit is another's.
const WAITING: u32 = 128;

fn pool(limits: &Limits) -> PoolingAllocationConfig {
    // Twice the calls at once: a slot is cleaned for a moment after its call has ended.
    let calls = (limits.parallel_calls as u32).saturating_mul(2).max(16) + WAITING;
    let instances = limits.instances as u32;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_memories(calls.saturating_mul(2))
        .total_tables(calls.saturating_mul(8))
        .total_core_instances(calls.saturating_mul(instances.min(32)))
        .total_stacks(calls)
        .max_core_instances_per_component(instances)
        .max_memories_per_component(8)
        .max_tables_per_component(instances)
        .max_core_instance_size(1 << 20)
        .max_component_instance_size(1 << 20)
        .table_elements(limits.table_elements as usize)
        .max_memory_size((limits.memory_mib as usize) << 20);
    // With the page-map scan only touched pages are reset, so much may stay resident; without it (kernels before 6.7)
    // every kept byte is copied back at each call, which is slower than giving the pages back.
    let keep = if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Yes);
        1 << 20
    } else {
        64 << 10
    };
    pool.linear_memory_keep_resident(keep).table_keep_resident(keep).async_stack_keep_resident(64 << 10);
    pool
}

/// Ticks until the engine is gone: the thread holds it weakly.
fn start_ticker(engine: &Engine) -> wasmtime::Result<()> {
    let weak = engine.weak();
    std::thread::Builder::new().name("epoch".into()).spawn(move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    })?;
    Ok(())
}
