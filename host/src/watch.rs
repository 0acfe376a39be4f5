//! When files have changed for good: one batch once it has been quiet for a while, and never late. It watches nothing
//! itself; whoever does sends what he sees.

use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How long it must be quiet: an editor's save is several events, some milliseconds apart.
pub const DEBOUNCE: Duration = Duration::from_millis(300);

/// How long a change waits at the most, so that steady writes do not starve it.
pub const CEILING: Duration = Duration::from_secs(2);

/// Waits for a change and for the quiet after it; answers with all that came, or with none when nothing can come any more.
pub async fn settled<T, C: Default + Extend<T>>(events: &mut UnboundedReceiver<T>) -> Option<C> {
    let mut batch = C::default();
    batch.extend(events.recv().await);
    let latest = Instant::now() + CEILING;
    loop {
        let quiet = (Instant::now() + DEBOUNCE).min(latest);
        match tokio::time::timeout_at(quiet, events.recv()).await {
            Ok(Some(event)) => batch.extend([event]),
            Ok(None) => return None,
            Err(_) => return Some(batch),
        }
        if Instant::now() >= latest {
            return Some(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    /// Sends numbers at these milliseconds and answers with the batches and when each was there.
    async fn batches(times: &[u64]) -> Vec<(Vec<usize>, u64)> {
        let (sender, mut events) = unbounded_channel();
        let began = Instant::now();
        let times = times.to_vec();
        let task = tokio::spawn(async move {
            for (number, at) in times.into_iter().enumerate() {
                tokio::time::sleep_until(began + Duration::from_millis(at)).await;
                sender.send(number).unwrap();
            }
            // What was sent last settles before the channel closes.
            tokio::time::sleep(Duration::from_secs(10)).await;
        });
        let mut seen = Vec::new();
        while let Some(batch) = settled::<_, Vec<usize>>(&mut events).await {
            seen.push((batch, began.elapsed().as_millis() as u64));
        }
        task.await.unwrap();
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn a_save_of_several_events_is_one_batch() {
        assert_eq!(batches(&[0, 10, 200, 1_000]).await, [(vec![0, 1, 2], 500), (vec![3], 1_300)]);
    }

    #[tokio::test(start_paused = true)]
    async fn steady_writes_wait_two_seconds_and_no_longer() {
        let times: Vec<u64> = (0..45).map(|n| n * 100).collect();
        let ends: Vec<u64> = batches(&times).await.into_iter().map(|(_, end)| end).collect();
        assert!(ends[0] <= 2_000 && ends.windows(2).all(|pair| pair[1] - pair[0] <= 2_100), "{ends:?}");
        assert_eq!(ends.len(), 3, "{ends:?}");
    }
}
