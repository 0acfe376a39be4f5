//! One call into a component: a fresh store and instance, on a thread of its own where it may block, under a clock kept
//! outside.

use super::clock::Clock;
use super::guest::Whose;
use super::{Exports, GuestEnv, GuestState, Loaded, Runtime, Services};
use crate::audit::Trail;
use crate::context::CallContext;
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wasmtime::component::{Instance, ResourceTableError};
use wasmtime::{Store, Trap};

/// How long after its time-out a thread may take to come back before it is given up: a few epoch ticks.
const GRACE: Duration = Duration::from_millis(500);

/// Bytes of a guest's standard error that are shown with its failure.
const SHOWN: usize = 600;

/// Why a call did not answer. Each message is plain enough for the model to read.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// It took too long.
    #[error("it was stopped after {0} ms, its time limit")]
    Timeout(u64),
    /// It sat in a system call that does not return; its thread was given up.
    #[error("it was given up after {0} ms, stuck in the operating system")]
    Stuck(u64),
    /// The turn was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The guest trapped, or went over a limit.
    #[error("it crashed: {0}")]
    Trap(String),
    /// The instance could not be made.
    #[error("it could not start: {0}")]
    Start(String),
}

/// Whom to call, on whose behalf.
#[derive(Clone, Copy)]
pub struct Guest<'a> {
    /// The component.
    pub loaded: &'a Arc<Loaded>,
    /// Who it runs as.
    pub env: &'a Arc<GuestEnv>,
    /// Where in the work the call stands.
    pub context: &'a CallContext,
    /// What host functions work with.
    pub services: &'a Services,
    /// What the call is allowed and refused, and what memory it takes.
    pub trail: &'a Arc<Trail>,
    /// Whether every folder is opened read-only, whatever was granted: the call said that it changes nothing.
    pub read_only: bool,
    /// Cancels the call.
    pub cancel: &'a CancellationToken,
}

/// What a call took.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallStats {
    /// Wall time, from the request to the answer.
    pub duration: Duration,
    /// Bytes of linear memory at the end; memories never shrink, so this is the peak.
    pub memory: usize,
}

/// What a call does with its instance.
pub type Body<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<R>> + Send + 'a>>;

impl Runtime {
    /// Runs `body` with a fresh instance of the guest's component. The instance is dropped afterwards, whatever came of it.
    pub async fn call<R: Send + 'static>(
        self: &Arc<Self>,
        guest: Guest<'_>,
        time: Duration,
        body: impl for<'a> FnOnce(&'a mut Store<GuestState>, &'a Instance, &'a Exports) -> Body<'a, R> + Send + 'static,
    ) -> Result<(R, CallStats), CallError> {
        let started = Instant::now();
        let with_stats = |(value, memory)| (value, CallStats { duration: started.elapsed(), memory });
        let Guest { loaded, env, context, services, trail, read_only, cancel } = guest;
        let permit = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CallError::Cancelled),
            permit = self.running.clone().acquire_owned() => permit,
        };
        let permit = permit.map_err(|_| CallError::Start("the host is shutting down".into()))?;
        let clock = Clock::new(permit, self.running.clone());
        let whose = Whose {
            clock: clock.clone(),
            env: env.clone(),
            context: context.clone(),
            services: services.clone(),
            trail: trail.clone(),
            read_only,
        };
        let in_instance = in_fresh_instance(self.clone(), loaded.clone(), whose, body);
        // A panic of a host function ends its call, and not the host.
        let mut in_instance = Box::pin(AssertUnwindSafe(in_instance).catch_unwind());
        // A guest with no folder cannot block its thread: each time slice ends at an epoch tick at the latest. So the
        // first one runs right here, and most calls of small guests end in it. A call that runs beside others goes to a
        // thread at once, so that they share the cores.
        if env.preopens.is_empty()
            && !env.session
            && self.running_calls() <= 1
            && let Some(answer) = in_instance.as_mut().now_or_never()
        {
            clock.end();
            return answer.unwrap_or_else(|_| Err(host_panicked())).map(with_stats);
        }
        let answer = self.on_a_thread(in_instance, clock, time, cancel).await;
        answer.map(with_stats)
    }

    /// Runs a guest to its end on a thread of its own, where it may block.
    async fn on_a_thread<R: Send + 'static>(
        &self,
        guest: impl Future<Output = std::thread::Result<Result<R, CallError>>> + Send + Unpin + 'static,
        clock: Arc<Clock>,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<R, CallError> {
        let (cancelled, inside) = (cancel.clone(), clock.clone());
        let (answered, answer) = oneshot::channel();
        let handle = Handle::current();
        let started_thread = self.workers.run(move || {
            let result = handle.block_on(async {
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => Err(CallError::Cancelled),
                    answer = guest => answer.unwrap_or_else(|_| Err(host_panicked())),
                    () = inside.run_out(time) => Err(CallError::Timeout(time.as_millis() as u64)),
                }
            });
            inside.end();
            let _ = answered.send(result);
        });
        started_thread.map_err(|error| CallError::Start(format!("no thread to run it on: {error}")))?;
        // The clock outside: a guest inside a blocking system call never yields to the one above.
        let given_up = async {
            tokio::select! {
                () = clock.run_out(time) => {}
                () = cancel.cancelled() => {}
            }
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            answer = answer => answer.unwrap_or_else(|_| Err(host_panicked())),
            () = given_up => {
                self.stuck.fetch_add(1, Ordering::Relaxed);
                // Another call may run in its place, and the thread gets no permit again.
                clock.end();
                match cancel.is_cancelled() {
                    true => Err(CallError::Cancelled),
                    false => Err(CallError::Stuck(time.as_millis() as u64)),
                }
            }
        }
    }
}

async fn in_fresh_instance<R>(
    runtime: Arc<Runtime>,
    component: Arc<Loaded>,
    whose: Whose,
    body: impl for<'a> FnOnce(&'a mut Store<GuestState>, &'a Instance, &'a Exports) -> Body<'a, R>,
) -> Result<(R, usize), CallError> {
    let limits = runtime.limits();
    let state = GuestState::new(whose, limits.clone()).map_err(CallError::Start)?;
    let mut store = Store::new(&runtime.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(limits.host_call_bytes as usize);
    // Each tick the guest yields, so that the clock and a cancel are seen.
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    let instance = match component.pre.instantiate_async(&mut store).await {
        Ok(instance) => instance,
        Err(error) => return Err(CallError::Start(explain(&error, store.data()))),
    };
    match body(&mut store, &instance, &component.exports).await {
        Ok(value) => Ok((value, store.data().limiter.memory())),
        Err(error) => Err(CallError::Trap(explain(&error, store.data()))),
    }
}

/// The thread of a call ended without an answer.
fn host_panicked() -> CallError {
    CallError::Trap("a function of the host panicked under it; please report this with the host's log".into())
}

/// Why a guest failed, in plain words: the limit it ran into, the kind of trap, and what it said last.
fn explain(error: &wasmtime::Error, state: &GuestState) -> String {
    let mut reason = match (error.downcast_ref::<Trap>(), &state.limiter.refused) {
        (_, Some(limit)) => format!("it went over its {limit}"),
        (Some(Trap::StackOverflow), _) => "its call stack overflowed".into(),
        (Some(Trap::MemoryOutOfBounds), _) => {
            "it reached outside its memory, as guests do whose stack overflows into nothing".into()
        }
        (Some(Trap::UnreachableCodeReached), _) => "it panicked or aborted".into(),
        (Some(trap), _) => trap.to_string(),
        (None, _) if error.root_cause().to_string().contains("fuel allocated for hostcalls") => {
            "it handed over more than one call may carry (limits: host_call_bytes)".into()
        }
        (None, _) if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) => {
            format!("it held more than {} handles (limits: handles)", state.limits.handles)
        }
        // The root cause is the plain sentence; what is around it is a wasm backtrace.
        (None, _) => error.root_cause().to_string(),
    };
    // One line, without the advice that a panic message of Rust ends in: nobody can set variables in there.
    let said = state.stderr.text();
    let lines =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("note: run with `RUST_"));
    let said = lines.collect::<Vec<_>>().join(" ");
    if !said.is_empty() {
        let skip = said.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
        reason.push_str(&format!("; it said: {}", &said[skip..]));
    }
    state.web().scrubbed(reason)
}
