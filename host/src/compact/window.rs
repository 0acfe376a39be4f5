//! The arithmetic of a window: when a compaction is due, and how much may come back after it.

/// A model's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Tokens it holds, prompt and answer together.
    pub tokens: u64,
    /// Limit of an answer, in tokens.
    pub output: u64,
}

/// Tokens kept free beside the answer: a summary's question and what a step adds before it is counted again.
const SPARE: u64 = 13_000;

impl Window {
    /// Tokens of a request at which a compaction is due. Small windows keep shares free in place of fixed numbers.
    pub fn due(&self) -> u64 {
        self.tokens - self.output.min(self.tokens / 4) - SPARE.min(self.tokens / 8)
    }

    /// Tokens that all that is restored may take.
    pub fn fifth(&self) -> u64 {
        self.tokens / 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_window_keeps_fixed_numbers_free_and_a_small_one_shares() {
        assert_eq!(Window { tokens: 200_000, output: 8_192 }.due(), 200_000 - 8_192 - 13_000);
        assert_eq!(Window { tokens: 200_000, output: 128_000 }.due(), 200_000 - 50_000 - 13_000);
        assert_eq!(Window { tokens: 8_000, output: 8_192 }.due(), 8_000 - 2_000 - 1_000);
        assert_eq!(Window { tokens: 0, output: 9 }.due(), 0);
    }
}
