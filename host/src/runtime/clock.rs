//! The clock and the permit of one guest call. While the guest waits for work that is not its own (a native program, another
//! agent, a compaction), its clock stands still and others have its permit: a parent's time is not its child's, and
//! twenty parents that wait for children must not hold every permit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Made for a call when it has its permit; shared by its thread, the clock outside of that, and the guest's state.
pub struct Clock {
    state: Mutex<State>,
    /// Told when the clock stops or goes on.
    changed: Notify,
    permits: Arc<Semaphore>,
}

struct State {
    /// Time of the guest before it waited last.
    spent: Duration,
    /// Since when it runs; none while it waits.
    since: Option<Instant>,
    permit: Option<OwnedSemaphorePermit>,
    /// The call is over, or nobody waits for it any more: it gets no other permit.
    over: bool,
}

impl Clock {
    pub(super) fn new(permit: OwnedSemaphorePermit, permits: Arc<Semaphore>) -> Arc<Self> {
        let state = State { spent: Duration::ZERO, since: Some(Instant::now()), permit: Some(permit), over: false };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), permits })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` on behalf of the guest while its clock stands still and its permit is free. Afterwards the guest waits
    /// for a permit like any other, and that is not its time either.
    pub async fn outside<T>(&self, work: impl Future<Output = T>) -> T {
        {
            let mut state = self.state();
            let ran = state.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            state.spent += ran;
            state.permit = None;
        }
        self.changed.notify_waiters();
        let done = work.await;
        // The semaphore is never closed; without a permit the guest would only run beside one more.
        let permit = self.permits.clone().acquire_owned().await.ok();
        {
            let mut state = self.state();
            state.since = Some(Instant::now());
            state.permit = permit.filter(|_| !state.over);
        }
        self.changed.notify_waiters();
        done
    }

    /// Ends when the guest has run for `time`; never while it waits.
    pub(super) async fn run_out(&self, time: Duration) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no change between the two is missed.
            changed.as_mut().enable();
            let (spent, since) = {
                let state = self.state();
                (state.spent, state.since)
            };
            match since {
                None => changed.await,
                Some(since) => {
                    let end = since + time.saturating_sub(spent);
                    tokio::select! {
                        () = tokio::time::sleep_until(end) => return,
                        () = changed => {}
                    }
                }
            }
        }
    }

    /// The permit is free for good: the call has ended, or its thread was given up.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.over = true;
        state.permit = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn clock() -> (Arc<Semaphore>, Arc<Clock>) {
        let permits = Arc::new(Semaphore::new(1));
        let permit = permits.clone().acquire_owned().await.unwrap();
        (permits.clone(), Clock::new(permit, permits))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn time_outside_is_not_the_guests() {
        let (_, clock) = clock().await;
        let began = Instant::now();
        let guest = async {
            tokio::time::sleep(SECOND).await;
            clock.outside(tokio::time::sleep(100 * SECOND)).await;
            tokio::time::sleep(SECOND).await;
            clock.outside(tokio::time::sleep(100 * SECOND)).await;
            tokio::time::sleep(10 * SECOND).await;
        };
        tokio::select! {
            () = guest => panic!("it had five seconds, and took twelve"),
            () = clock.run_out(5 * SECOND) => {}
        }
        assert_eq!(began.elapsed(), 205 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn others_run_meanwhile_and_the_guest_waits_for_them() {
        let (permits, clock) = clock().await;
        assert_eq!(permits.available_permits(), 0);
        let other = async {
            let _permit = permits.acquire().await.unwrap();
            tokio::time::sleep(50 * SECOND).await;
        };
        let guest = async {
            clock.outside(tokio::time::sleep(SECOND)).await;
            assert_eq!(permits.available_permits(), 0, "it has its permit again");
        };
        let both = async { tokio::join!(guest, other) };
        tokio::select! {
            _ = both => {}
            () = clock.run_out(2 * SECOND) => panic!("waiting for a permit counted as the guest's time"),
        }
        clock.end();
        assert_eq!(permits.available_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_given_up_takes_no_permit_when_it_comes_back() {
        let (permits, clock) = clock().await;
        clock.outside(async { clock.end() }).await;
        assert_eq!(permits.available_permits(), 1);
    }
}
