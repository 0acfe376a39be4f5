//! How full the window is: the provider's last count, and an estimate of what came after it.
//!
//! A provider counts what our estimate cannot know (its own frames, its tokenizer), so its count of the last request is
//! taken as it is, and only the messages after it are estimated, scaled by how far the last estimate was off. After a
//! compaction there is no count until the next answer; the scale stays.

use crate::transcript::Usage;

/// What is known of the counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// Messages that the provider's count holds, and that count.
    anchor: Option<(usize, u64)>,
    /// Tokens counted for each that was estimated.
    scale: f64,
}

/// Bounds of the scale: beyond them one of the numbers is wrong (a server that counts nothing, a cached part left out),
/// and following it would compact at once or never.
const SCALE: (f64, f64) = (0.5, 3.0);

impl Default for Gauge {
    fn default() -> Self {
        Self { anchor: None, scale: 1.0 }
    }
}

impl Gauge {
    /// Takes in an answer's count. `estimate` is ours of the request that it answered, all of it; `messages` are those of the
    /// conversation with the answer. A server that counts nothing leaves the gauge as it was.
    pub fn counted(&mut self, usage: Usage, estimate: u64, messages: usize) {
        let sent = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        if sent == 0 {
            return;
        }
        let scale = sent as f64 / estimate.max(1) as f64;
        // Servers that leave cached tokens out of their counts would make the window look empty.
        if scale < SCALE.0 / 2.0 {
            return;
        }
        self.scale = scale.clamp(SCALE.0, SCALE.1);
        self.anchor = Some((messages, sent.saturating_add(usage.output)));
    }

    /// Forgets the count, since the conversation was replaced; the scale stays.
    pub fn replaced(&mut self) {
        self.anchor = None;
    }

    /// Tokens counted for each estimated one.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// `estimate`, as the provider would count it.
    pub fn scaled(&self, estimate: u64) -> u64 {
        (estimate as f64 * self.scale).ceil() as u64
    }

    /// Tokens of the next request. `front` is the estimate of tools and system prompt, `messages` are those of each message.
    pub fn next(&self, front: u64, messages: &[u64]) -> u64 {
        match self.anchor {
            Some((known, counted)) if known <= messages.len() => {
                counted.saturating_add(self.scaled(messages[known..].iter().sum()))
            }
            _ => self.scaled(front.saturating_add(messages.iter().sum())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cache_read: u64, output: u64) -> Usage {
        Usage { input, output, cache_read, cache_write: 0 }
    }

    #[test]
    fn the_last_count_stands_and_only_what_came_after_is_estimated() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.next(100, &[50, 50]), 200);
        gauge.counted(usage(100, 200, 40), 200, 3);
        assert_eq!(gauge.next(100, &[50, 50, 20]), 340);
        assert_eq!(gauge.next(100, &[50, 50, 20, 10]), 355, "what came after is scaled as the last estimate was off");
        gauge.replaced();
        assert_eq!(gauge.next(100, &[20]), 180);
    }

    #[test]
    fn a_server_that_counts_nothing_or_nonsense_is_not_believed() {
        let mut gauge = Gauge::default();
        gauge.counted(usage(0, 0, 0), 1_000, 1);
        gauge.counted(usage(3, 0, 5), 1_000, 1);
        assert_eq!(gauge, Gauge::default());
        gauge.counted(usage(u64::MAX, u64::MAX, u64::MAX), 0, 1);
        assert_eq!(gauge.scale(), 3.0);
        assert_eq!(gauge.next(u64::MAX, &[1, 2]), u64::MAX);
    }
}
