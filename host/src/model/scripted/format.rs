//! The script as it is written in YAML, and the errors of one that is written wrongly. It plays nothing.

use crate::model::ModelError;
use crate::transcript::{StopReason, Usage};
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;

/// A script. Its fields are described where the format is, at the top of [`super`].
#[derive(Debug)]
pub(super) struct Script {
    pub name: String,
    pub steps: Vec<Step>,
    pub at_limit: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    steps: Vec<Step>,
    at_limit: Option<String>,
}

/// What is answered to one request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    #[serde(deserialize_with = "text")]
    pub say: Option<String>,
    #[serde(deserialize_with = "text")]
    pub think: Option<String>,
    pub calls: Vec<Call>,
    #[serde(deserialize_with = "usage")]
    pub usage: Option<Usage>,
    #[serde(deserialize_with = "stop")]
    pub stop: Option<StopReason>,
    pub expect: Option<String>,
    pub fail: Option<Fail>,
    pub delay_ms: u64,
}

impl Step {
    /// Whether nothing is left of it once it has failed.
    pub fn is_only_a_failure(&self) -> bool {
        let Step { say, think, calls, usage, stop, expect, fail, delay_ms: _ } = self;
        fail.is_some()
            && say.is_none()
            && think.is_none()
            && calls.is_empty()
            && usage.is_none()
            && stop.is_none()
            && expect.is_none()
    }
}

/// A tool call.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RawCall")]
pub(super) struct Call {
    pub tool: String,
    pub input: Option<Value>,
    pub malformed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    tool: String,
    input: Option<Value>,
    malformed: Option<String>,
}

impl TryFrom<RawCall> for Call {
    type Error = String;

    fn try_from(RawCall { tool, input, malformed }: RawCall) -> Result<Self, String> {
        if input.is_some() && malformed.is_some() {
            return Err(format!("the call of {tool} has input and malformed; keep one of them"));
        }
        if input.as_ref().is_some_and(|input| !input.is_object()) {
            return Err(format!("the input of {tool} is no mapping; write it as {{ key: value }}, or as malformed"));
        }
        Ok(Self { tool, input, malformed })
    }
}

/// How a step fails.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fail {
    Broken,
    Unreachable,
    Status { status: u16, message: String, kind: Option<String>, retry_after: Option<f64> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStatus {
    status: u16,
    #[serde(default)]
    message: String,
    kind: Option<String>,
    retry_after: Option<f64>,
}

impl<'de> Deserialize<'de> for Fail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Fail;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("broken, unreachable, or { status: 429, message: \"…\" }")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Fail, E> {
                match word {
                    "broken" => Ok(Fail::Broken),
                    "unreachable" => Ok(Fail::Unreachable),
                    _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fail, A::Error> {
                let RawStatus { status, message, kind, retry_after } =
                    RawStatus::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Fail::Status { status, message, kind, retry_after })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Text that is not empty; a block never is.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

fn usage<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usage>, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Counts {
        input: u64,
        output: u64,
        cache_read: u64,
        cache_write: u64,
    }
    let counts = Option::<Counts>::deserialize(deserializer)?;
    Ok(counts.map(|Counts { input, output, cache_read, cache_write }| Usage { input, output, cache_read, cache_write }))
}

fn stop<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StopReason>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        EndTurn,
        ToolUse,
        MaxTokens,
        Refusal,
        Pause,
    }
    Ok(Option::<Word>::deserialize(deserializer)?.map(|word| match word {
        Word::EndTurn => StopReason::EndTurn,
        Word::ToolUse => StopReason::ToolUse,
        Word::MaxTokens => StopReason::MaxTokens,
        Word::Refusal => StopReason::Refusal,
        Word::Pause => StopReason::Pause,
    }))
}

/// Reads `text`; `file` is what errors call it, and the script's name where it has none.
pub(super) fn parse(file: &str, text: &str) -> Result<Script, ModelError> {
    let wrong = |place: &str, reason: &str| {
        ModelError::Config(format!(
            "the script {file}{place}: {reason}; correct it there (a step holds say, think, calls, usage, stop, expect, \
             fail and delay_ms)"
        ))
    };
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let read: Result<File, _> = serde_saphyr::from_str_with_options(text, options);
    let File { name, steps, at_limit } = read.map_err(|error| {
        let place = error.location().map(|at| format!(", line {}, column {}", at.line(), at.column()));
        let place = place.unwrap_or_default();
        // The reader says the place at the end, where a cure should stand.
        let words = error.to_string();
        wrong(&place, words.strip_suffix(&place.replacen(", ", " at ", 1)).unwrap_or(&words))
    })?;
    if steps.is_empty() {
        return Err(wrong("", "it has no steps, so it could answer nothing"));
    }
    Ok(Script {
        name: name.unwrap_or_else(|| file.to_owned()),
        steps,
        at_limit: at_limit.filter(|text| !text.is_empty()),
    })
}
