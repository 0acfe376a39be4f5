//! Windows of models by name, and what a server's refusal says of its own. Pure.
//!
//! A name is matched by its longest known beginning. What is not known here is taken for [`USUAL`]; an operator's
//! `context_windows`, `ASTRARIUM_CONTEXT_WINDOW` and the server's own words win over this table.

use super::ModelError;

/// The window of a model, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// In tokens.
    pub tokens: u64,
    /// In words.
    pub by: &'static str,
    /// Whether that is the operator.
    pub named: bool,
}

/// The window of a model that nobody has named, in tokens.
pub const USUAL: u64 = 128_000;

/// Beginnings of names, as vendors document their windows.
const KNOWN: &[(&str, u64)] = &[
    ("claude", 200_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("gpt-oss", 131_072),
    ("chatgpt-4o", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("deepseek", 128_000),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
    ("llama-3", 128_000),
    ("llama3", 128_000),
    ("mistral-large", 128_000),
    ("qwen3", 131_072),
    ("qwen2.5", 32_768),
    ("kimi-k2", 131_072),
    ("glm-4", 128_000),
];

/// The window of the model `wire:name`, where it is known. A script has the window of a usual model of the day.
pub fn known(name: &str) -> Option<u64> {
    let (wire, model) = name.split_once(':')?;
    if wire == "scripted" {
        return Some(200_000);
    }
    // Servers that gather models write the vendor before the name: `vendor/name`.
    let model = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let fits = KNOWN.iter().filter(|(beginning, _)| model.starts_with(beginning));
    fits.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tokens)| *tokens)
}

/// A refusal because the request is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// The window, where the server names it.
    pub window: Option<u64>,
}

/// Words of servers that refuse a request as too long, in lower case.
const REFUSALS: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "available context size",
    "exceed_context_size",
    "exceeds the context",
    "input token count",
    "reduce the length of the messages",
    "request_too_large",
    "too many tokens",
];

/// Words after which servers name their window, in lower case.
const NAMED: &[&str] = &[
    "maximum context length is",
    "context window of",
    "context window is",
    "available context size (",
    "tokens allowed (",
    "context limit:",
    "tokens >",
    "n_ctx:",
];

/// Whether `error` says that the request does not fit the model's window.
pub fn too_long(error: &ModelError) -> Option<TooLong> {
    match error {
        ModelError::GaveUp { error, .. } => too_long(error),
        ModelError::Status { status, kind, message, .. } if matches!(status, 400 | 413 | 422) || *status >= 500 => {
            let words = format!("{} {message}", kind.as_deref().unwrap_or_default()).to_lowercase();
            let said = REFUSALS.iter().any(|refusal| words.contains(refusal));
            (said || *status == 413).then(|| TooLong { window: window(&words) })
        }
        _ => None,
    }
}

/// Whether `error` says that the limit of an answer is more than the model can give.
pub fn limit_too_high(error: &ModelError) -> bool {
    match error {
        ModelError::Status { status: 400 | 422, message, .. } => {
            let words = message.to_lowercase();
            too_long(error).is_none() && ["max_tokens", "max_completion_tokens"].iter().any(|key| words.contains(key))
        }
        _ => false,
    }
}

fn window(words: &str) -> Option<u64> {
    NAMED.iter().find_map(|named| {
        let rest = words.split_once(named)?.1;
        // `195000 + 8192 > 200000`: the window is what the sum is over.
        let rest = if *named == "context limit:" { rest.split_once('>')?.1 } else { rest };
        let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let digits: String = rest
            .chars()
            .take_while(|c| c.is_ascii_digit() || matches!(c, ',' | '_'))
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse().ok().filter(|tokens| (1_000..=100_000_000).contains(tokens))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, kind: &str, message: &str) -> ModelError {
        let (kind, message) = (Some(kind.to_owned()).filter(|kind| !kind.is_empty()), message.to_owned());
        ModelError::Status { url: "u".into(), status, kind, message, cure: "", retry_after: None }
    }

    #[test]
    fn refusals_of_servers_are_told_and_their_windows_read() {
        let rows = [
            (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", Some(200_000)),
            (
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease input length",
                Some(200_000),
            ),
            (
                400,
                "context_length_exceeded",
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
                Some(128_000),
            ),
            (
                400,
                "BadRequestError",
                "This model's maximum context length is 4,096 tokens. However, you requested 5000 tokens",
                Some(4_096),
            ),
            (
                400,
                "exceed_context_size_error",
                "the request exceeds the available context size (8192 tokens), try increasing it",
                Some(8_192),
            ),
            (
                400,
                "",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            (400, "", "Your input exceeds the context window of this model. Please adjust your input.", None),
            (413, "request_too_large", "Request exceeds the maximum size", None),
        ];
        for (code, kind, message, window) in rows {
            assert_eq!(too_long(&status(code, kind, message)), Some(TooLong { window }), "{message}");
        }
        for (code, message) in [(400, "max_tokens: 99999 > 8192"), (401, "maximum context length is 5"), (429, "slow")]
        {
            assert_eq!(too_long(&status(code, "", message)), None, "{message}");
        }
        assert!(limit_too_high(&status(400, "", "max_tokens: 99999 > 8192, which is the maximum")));
        assert!(!limit_too_high(&status(400, "", "tools: bad schema")));
    }

    #[test]
    fn the_longest_known_beginning_of_a_name_counts() {
        assert_eq!(known("openai:gpt-4o-mini"), Some(128_000));
        assert_eq!(known("openai:gpt-4-0613"), Some(8_192));
        assert_eq!(known("openai:anthropic/Claude-sonnet-4"), Some(200_000));
        assert_eq!((known("openai:mine"), known("no-wire")), (None, None));
    }
}
