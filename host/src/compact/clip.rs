//! Text cut to a number of tokens: its beginning, a line that says how much is missing, and its end.

use super::texts::fill;
use crate::tokens::{Tokenizer, text};

/// `whole`, or as much of both its ends as fits `budget` tokens around `marker`, whose `{tokens}` is filled in. The end is
/// a third: errors and results stand there. Never blank unless `whole` is.
pub(super) fn clip(whole: &str, budget: u64, marker: &str, tokenizer: Tokenizer) -> String {
    let total = text(whole, tokenizer);
    if total <= budget {
        return whole.to_owned();
    }
    let mut share = budget as f64 / total as f64;
    // Each try keeps a fifth less, so a text of any kind fits after a few, and the work stays linear.
    for _ in 0..16 {
        share *= 0.8;
        let bytes = whole.len() as f64 * share;
        let head = &whole[..whole.floor_char_boundary((bytes * 2.0 / 3.0) as usize)];
        let tail = &whole[whole.ceil_char_boundary(whole.len() - (bytes / 3.0) as usize)..];
        let missing = total.saturating_sub((total as f64 * share) as u64);
        let note = fill(marker, "tokens", &missing.to_string());
        let clipped = [head.trim_end(), &note, tail.trim_start()]
            .iter()
            .filter(|part| !part.trim().is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join("\n");
        if text(&clipped, tokenizer) <= budget && !clipped.trim().is_empty() {
            return clipped;
        }
    }
    "…".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_ends_stay_and_the_gap_is_said() {
        let whole = format!("begin {} end", "middle ".repeat(1_000));
        let clipped = clip(&whole, 100, "[… {tokens} …]", Tokenizer::O200k);
        assert!(clipped.starts_with("begin") && clipped.ends_with("end") && clipped.contains("[… 10"), "{clipped}");
        assert_eq!(clip("short", 100, "[…]", Tokenizer::O200k), "short");
    }

    proptest! {
        #[test]
        fn what_is_clipped_fits(unit in "\\PC{1,8}", times in 1usize..400, budget in 8u64..500) {
            let whole = unit.repeat(times);
            let clipped = clip(&whole, budget, "[… {tokens} …]", Tokenizer::Claude);
            prop_assert!(text(&clipped, Tokenizer::Claude) <= budget);
            prop_assert_eq!(clipped.trim().is_empty(), whole.trim().is_empty());
        }
    }
}
