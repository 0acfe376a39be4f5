//! Ctrl-C and the system's request to end: the first cancels the run under way; without one, or for the second, the
//! program ends at once.
//!
//! Listening lasts as long as the process, because tokio never gives a signal back to the system: whoever stopped
//! listening would leave a program that nothing but SIGKILL ends. It does not say what a cancelled run does.

use super::Exit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Token of the run under way, set by [`run_guard`]; the first signal takes it, the guard's end removes it.
static CURRENT: Mutex<Option<CancellationToken>> = Mutex::new(None);

/// While it lives, the first signal cancels its run.
#[must_use = "the run can be cancelled only while this lives"]
pub(super) struct RunGuard(());

/// Names the run that the next signal cancels.
pub(super) fn run_guard(token: &CancellationToken) -> RunGuard {
    *current() = Some(token.clone());
    RunGuard(())
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        *current() = None;
    }
}

/// Begins to listen. Called once, when the program starts, inside the async runtime.
pub(super) fn listen() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            // A signal that cannot be listened to keeps the system's own answer, which ends the program.
            let Ok(mut signals) = signal(kind) else { continue };
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    received();
                }
            });
        }
    }
    #[cfg(not(unix))]
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            received();
        }
    });
}

fn received() {
    // The lock is let go before anything wakes: a run's end may be what takes it next.
    let token = current().take();
    match token {
        Some(token) => token.cancel(),
        None => std::process::exit(Exit::Cancelled as i32),
    }
}

fn current() -> MutexGuard<'static, Option<CancellationToken>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_cancels_the_run_and_leaves_the_second_none() {
        let token = CancellationToken::new();
        let running = run_guard(&token);
        received();
        assert!(token.is_cancelled());
        assert!(current().is_none());
        drop(running);
        drop(run_guard(&token));
        assert!(current().is_none());
    }
}
