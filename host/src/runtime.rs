//! The wasm runtime: one engine, one linker, and calls into components, each in a fresh instance under limits.
//!
//! With the host side of the capabilities this is the only place that names wasmtime. It knows no manifest, no grant
//! rule and no registry. Invariants: every call has a wall-clock limit that is kept outside the guest's thread; a store
//! is dropped after its call, whatever came of it; native code is loaded only from artefacts that this host compiled.

mod cache;
mod call;
mod captured;
mod clock;
pub mod contract;
mod convert;
mod engine;
mod fs_gate;
mod guest;
mod invoke;
mod kept_out;
mod limiter;
mod load;
mod segments;
mod workers;

pub use call::{CallError, CallStats, Guest};
pub use clock::Clock;
pub use guest::{ContextDesk, Desk, GuestEnv, GuestState, Preopen, Services};
pub use invoke::{AgentBegins, AgentEnded, Answer, CompactFigures, StartAnswer, StepFigures, ToolAnswer};
pub(crate) use kept_out::still_itself;
pub use load::{Exports, LoadError, Loaded};
pub use segments::Contribution;

use crate::limits::Limits;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::Linker;

/// Everything that calls of all plugins share. Made once by the host; lives as long as it.
pub struct Runtime {
    engine: Engine,
    linker: Linker<GuestState>,
    limits: RwLock<Arc<Limits>>,
    /// Those that the engine was started with: what it has set aside can only be used or not.
    started: Limits,
    cache: cache::Cache,
    /// Compilations at once: they use every core themselves.
    compiling: Semaphore,
    /// Calls at once, so that the instance pool never runs dry.
    running: Arc<Semaphore>,
    /// Threads that guests run on.
    workers: workers::Workers,
    /// Threads given up because a guest sat in a system call that does not return.
    stuck: AtomicUsize,
}

impl Runtime {
    /// Starts the engine. `cache` is a folder that only this user can write to; it is made when absent.
    pub fn new(limits: Limits, cache: &Path) -> Result<Self, LoadError> {
        engine::raise_open_files();
        let engine = engine::start(&limits).map_err(|error| LoadError::Engine(error.to_string()))?;
        let mut linker = Linker::new(&engine);
        guest::link(&mut linker).map_err(|error| LoadError::Engine(error.to_string()))?;
        Ok(Self {
            cache: cache::Cache::open(cache, &engine),
            running: Arc::new(Semaphore::new(limits.parallel_calls as usize)),
            compiling: Semaphore::new(1),
            workers: workers::Workers::default(),
            stuck: AtomicUsize::new(0),
            engine,
            linker,
            started: limits.clone(),
            limits: RwLock::new(Arc::new(limits)),
        })
    }

    /// The limits that calls run under which begin now.
    pub fn limits(&self) -> Arc<Limits> {
        self.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has calls that begin from now on run under `new`; answers with the fields that hold only after a restart.
    pub fn set_limits(&self, new: &Limits) -> Vec<&'static str> {
        let (limits, late) = new.within(&self.started);
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
        late
    }

    /// The engine, for benches that compare with a raw call.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Calls that hold a permit now.
    pub fn running_calls(&self) -> usize {
        (self.started.parallel_calls as usize).saturating_sub(self.running.available_permits())
    }

    /// Threads that were given up so far.
    pub fn stuck_threads(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }
}
