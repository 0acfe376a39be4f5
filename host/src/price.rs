//! What answers cost, by the operator's own price table. Pure.

use crate::transcript::Usage;
use serde::Deserialize;

/// Prices of one model, in money for a million tokens; the currency is the operator's.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Fresh tokens sent.
    pub input: f64,
    /// Tokens answered.
    pub output: f64,
    /// Tokens read from the cache; a tenth of `input` when absent, as vendors have it.
    pub cache_read: Option<f64>,
    /// Tokens written to the cache; a quarter more than `input` when absent.
    pub cache_write: Option<f64>,
}

impl Price {
    /// Whether all figures are such that a sum makes sense.
    pub fn check(&self) -> Result<(), String> {
        let figures = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        match figures.into_iter().flatten().find(|figure| !figure.is_finite() || *figure < 0.0) {
            Some(figure) => Err(format!("{figure} is no price; write money for a million tokens, 0 or more")),
            None => Ok(()),
        }
    }

    /// What this usage costs.
    pub fn of(&self, usage: Usage) -> f64 {
        let part = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        part(usage.input, self.input)
            + part(usage.output, self.output)
            + part(usage.cache_read, self.cache_read.unwrap_or(self.input * 0.1))
            + part(usage.cache_write, self.cache_write.unwrap_or(self.input * 1.25))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = Usage { input: 1_000_000, output: 2_000_000, cache_read: 3_000_000, cache_write: 4_000_000 };
        let price = Price { input: 1.0, output: 10.0, cache_read: Some(0.5), cache_write: Some(2.0) };
        assert_eq!(price.of(usage), 1.0 + 20.0 + 1.5 + 8.0);
        let usual = Price { cache_read: None, cache_write: None, ..price };
        assert!((usual.of(usage) - (1.0 + 20.0 + 0.3 + 5.0)).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_price_is_refused() {
        let price = |input| Price { input, output: 1.0, cache_read: None, cache_write: None };
        assert!(price(f64::NAN).check().is_err() && price(-1.0).check().is_err() && price(0.0).check().is_ok());
    }
}
