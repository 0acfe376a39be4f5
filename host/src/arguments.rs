//! Tool arguments against a tool's schema: compiled once when a plugin loads, checked before each guest runs.

use crate::transcript::{JSON_DEPTH, Json, json_depth};
use serde_json::{Map, Value};

/// A tool's schema, ready to check arguments.
#[derive(Debug)]
pub struct Schema {
    /// The schema as the tool gave it.
    pub value: Value,
    /// The same, its keys in order and nothing between them: equal schemas are equal bytes.
    pub canonical: Json,
    validator: jsonschema::Validator,
}

/// Mistakes that are named at once: enough for a model to mend its call, not a page.
const NAMED: usize = 5;

/// Characters of one mistake; a schema may quote a large value.
const LENGTH: usize = 300;

impl Schema {
    /// Compiles a schema; nothing outside of it is fetched.
    pub fn new(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("its input schema is not JSON: {error}"))?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err("its input schema must have \"type\": \"object\" at the top".into());
        }
        let validator =
            jsonschema::validator_for(&value).map_err(|error| format!("its input schema is invalid: {error}"))?;
        if json_depth(text) > JSON_DEPTH {
            return Err(format!("its input schema is nested deeper than {JSON_DEPTH}; make it flatter"));
        }
        let canonical = Json::from(in_order(&value));
        Ok(Self { value, canonical, validator })
    }

    /// Whether arguments fit; the error names each mistake, its place and what the tool takes.
    pub fn check(&self, input: &Value) -> Result<(), String> {
        if self.validator.is_valid(input) {
            return Ok(());
        }
        let mistakes: Vec<String> = self
            .validator
            .iter_errors(input)
            .take(NAMED)
            .map(|error| {
                let place = error.instance_path().to_string();
                let at = if place.is_empty() { "at the top".to_owned() } else { format!("at {place}") };
                let text: String = error.to_string().chars().take(LENGTH).collect();
                format!("{text} ({at})")
            })
            .collect();
        Err(format!("the arguments do not fit the tool's schema: {}; it takes {}", mistakes.join("; "), self.shape()))
    }

    /// The arguments by name, as SPEC writes them: `path, offset?, limit?`.
    fn shape(&self) -> String {
        let required: Vec<&str> = self
            .value
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = self.value.get("properties").and_then(Value::as_object);
        let names: Vec<String> = properties
            .into_iter()
            .flat_map(|properties| properties.keys())
            .map(|name| if required.contains(&name.as_str()) { name.clone() } else { format!("{name}?") })
            .collect();
        if names.is_empty() { "no arguments".into() } else { names.join(", ") }
    }
}

/// The value with the keys of every object in order.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let sorted = sorted.into_iter().map(|(key, value)| (key.clone(), in_order(value)));
            Value::Object(sorted.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(in_order).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn check(input: serde_json::Value, expected: Expect) {
        let schema = json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "limit": { "type": "integer", "minimum": 1 } },
            "required": ["path"],
            "additionalProperties": false
        });
        let schema = Schema::new(&schema.to_string()).unwrap();
        expected.assert_eq(&schema.check(&input).err().unwrap_or_else(|| "fits".into()));
    }

    #[test]
    fn arguments_that_fit() {
        check(json!({ "path": "a", "limit": 3 }), expect!["fits"]);
    }

    #[test]
    fn each_mistake_is_named_with_its_place() {
        check(
            json!({ "limit": 0, "file": 1 }),
            expect![[
                r#"the arguments do not fit the tool's schema: 0 is less than the minimum of 1 (at /limit); Additional properties are not allowed ('file' was unexpected) (at the top); "path" is a required property (at the top); it takes path, limit?"#
            ]],
        );
    }

    #[test]
    fn equal_schemas_are_equal_bytes_whatever_the_order_of_their_keys() {
        let one = Schema::new(r#"{"type":"object","properties":{"b":{"type":"string"},"a":{}}}"#).unwrap();
        let two = Schema::new(r#"{ "properties": {"a": {}, "b": {"type": "string"}}, "type": "object" }"#).unwrap();
        assert_eq!(one.canonical, two.canonical);
        assert_eq!(one.canonical.as_str(), r#"{"properties":{"a":{},"b":{"type":"string"}},"type":"object"}"#);
    }
}
