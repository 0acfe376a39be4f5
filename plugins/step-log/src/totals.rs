//! The counted figures, their keys in the store, and the line that shows them. Pure.

use std::fmt;

use astrarium_sdk::hooks::StepCompleteEvent;

/// Figures of one step, or sums of many.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) steps: i64,
    pub(crate) input: i64,
    pub(crate) cache_read: i64,
    pub(crate) cache_write: i64,
    pub(crate) output: i64,
    pub(crate) calls: i64,
    pub(crate) failed: i64,
}

impl Totals {
    /// The same figures, each through `change` with its key in the store; the first error ends it.
    pub(crate) fn try_map<E>(self, mut change: impl FnMut(&str, i64) -> Result<i64, E>) -> Result<Self, E> {
        Ok(Self {
            steps: change("steps", self.steps)?,
            input: change("input-tokens", self.input)?,
            cache_read: change("cache-read-tokens", self.cache_read)?,
            cache_write: change("cache-write-tokens", self.cache_write)?,
            output: change("output-tokens", self.output)?,
            calls: change("tool-calls", self.calls)?,
            failed: change("failed-calls", self.failed)?,
        })
    }
}

impl From<&StepCompleteEvent> for Totals {
    fn from(event: &StepCompleteEvent) -> Self {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Self {
            steps: 1,
            input: number(event.input_tokens),
            cache_read: number(event.cache_read_tokens),
            cache_write: number(event.cache_write_tokens),
            output: number(event.output_tokens),
            calls: event.tool_calls.into(),
            failed: event.failed_calls.into(),
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, cache_read, cache_write, output, calls, failed, .. } = self;
        write!(f, "{input} tokens in, {cache_read} from cache, {cache_write} to cache, {output} out, ")?;
        write!(f, "{calls} calls, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn steps_add_up() {
        let event = StepCompleteEvent {
            input_tokens: 10,
            cache_read_tokens: 200,
            cache_write_tokens: 30,
            output_tokens: 4,
            tool_calls: 2,
            failed_calls: 1,
            messages: 5,
            extra: "{}".into(),
        };
        let step = Totals::from(&event);
        let mut store = BTreeMap::new();
        let mut add = |key: &str, by: i64| {
            let sum = store.entry(key.to_owned()).or_insert(0);
            *sum += by;
            Ok::<_, ()>(*sum)
        };
        step.try_map(&mut add).unwrap();
        let sums = step.try_map(&mut add).unwrap();
        assert_eq!(Totals::default().try_map(&mut add), Ok(sums));
        assert_eq!(sums.to_string(), "20 tokens in, 400 from cache, 60 to cache, 8 out, 4 calls, 2 failed");
        assert_eq!(sums.steps, 2);
    }
}
