//! The guest of the bench: JSON in, JSON out, and next to nothing else. [`crunch`] is the same code for the native side.

use astrarium_sdk::{Context, Error, Output, Part, Tool, tools};
use serde_json::Value;

/// Sums all numbers of a JSON document and answers with the sum and the document.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Crunch {
    /// Any JSON value.
    doc: Value,
}

#[derive(serde::Serialize)]
struct Crunched<'a> {
    sum: f64,
    doc: &'a Value,
}

impl Tool for Crunch {
    const NAME: &'static str = "crunch";
    const READ_ONLY: bool = true;

    fn call(self, _: &Context) -> Result<Output, Error> {
        Ok(Output::default().and(Part::Json(write(&self)?)))
    }
}

tools!(Crunch);

/// What a call does, from its arguments to the JSON it answers with.
///
/// # Errors
///
/// When `input` is not a JSON object with a `doc`.
pub fn crunch(input: &str) -> serde_json::Result<String> {
    write(&serde_json::from_str(input)?)
}

fn write(input: &Crunch) -> serde_json::Result<String> {
    serde_json::to_string(&Crunched { sum: sum(&input.doc), doc: &input.doc })
}

fn sum(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(0.0),
        Value::Array(items) => items.iter().map(sum).sum(),
        Value::Object(fields) => fields.values().map(sum).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn crunch_sums_and_writes() {
        let answer = super::crunch(r#"{"doc":{"a":[1,2.5],"b":"x"}}"#).unwrap();
        assert_eq!(answer, r#"{"sum":3.5,"doc":{"a":[1,2.5],"b":"x"}}"#);
    }
}
