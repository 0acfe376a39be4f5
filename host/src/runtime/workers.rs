//! Threads that guests run on, one guest a thread, as many as there are calls at once.
//!
//! A guest may block its thread, so it never runs on an async one. Waking a sleeping thread costs about as much as a whole
//! call of a small guest, so a thread that has just ended a call looks out for the next one for a moment before it sleeps.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread looks out before it sleeps: longer than the host needs between two calls of a step.
const LOOK_OUT: Duration = Duration::from_micros(100);

/// How long a sleeping thread stays.
const KEEP: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The threads of one runtime.
#[derive(Default)]
pub(super) struct Workers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Jobs in the queue, to be seen without the lock.
    queued: AtomicUsize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Threads that wait for a job, asleep or looking out.
    idle: usize,
    asleep: usize,
}

impl Workers {
    /// Runs `job` on a thread of its own, at once.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut state = self.shared.lock();
        if state.idle <= state.queue.len() {
            let shared = self.shared.clone();
            std::thread::Builder::new().name("guest".into()).spawn(move || shared.work())?;
            state.idle += 1;
        }
        state.queue.push_back(Box::new(job));
        self.shared.queued.store(state.queue.len(), Ordering::Release);
        if state.asleep > 0 {
            self.shared.wake.notify_one();
        }
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until there has been nothing to do for a while. A thread is counted idle when it begins.
    fn work(&self) {
        while let Some(job) = self.next() {
            // A panic of a host function ends its call, which sees its answer dropped, and not the thread.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            self.lock().idle += 1;
        }
    }

    fn next(&self) -> Option<Job> {
        let until = Instant::now() + LOOK_OUT;
        while self.queued.load(Ordering::Acquire) == 0 && Instant::now() < until {
            std::hint::spin_loop();
        }
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                state.idle -= 1;
                self.queued.store(state.queue.len(), Ordering::Release);
                return Some(job);
            }
            state.asleep += 1;
            let (woken, slept) = self.wake.wait_timeout(state, KEEP).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.asleep -= 1;
            if slept.timed_out() && state.queue.is_empty() {
                state.idle -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Workers;
    use std::sync::mpsc;

    #[test]
    fn jobs_that_wait_for_each_other_all_run() {
        let workers = Workers::default();
        for _ in 0..50 {
            let (first, waits) = mpsc::channel::<()>();
            let (done, ended) = mpsc::channel();
            let also = done.clone();
            workers
                .run(move || {
                    let _ = waits.recv();
                    let _ = done.send(1);
                })
                .unwrap();
            workers
                .run(move || {
                    let _ = first.send(());
                    let _ = also.send(2);
                })
                .unwrap();
            let mut seen = [ended.recv().unwrap(), ended.recv().unwrap()];
            seen.sort();
            assert_eq!(seen, [1, 2]);
        }
    }

    #[test]
    fn a_job_that_panics_takes_no_other_with_it() {
        let workers = Workers::default();
        let (done, ended) = mpsc::channel();
        workers.run(|| std::panic::resume_unwind(Box::new("boom"))).unwrap();
        workers.run(move || done.send(7).unwrap()).unwrap();
        assert_eq!(ended.recv().unwrap(), 7);
    }
}
