//! The JSON Schema of a tool's arguments, cut down to what a model needs, since every byte is sent with every request.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The description and the input schema of a tool. The description is the doc comment of the struct, so it is taken
/// out of the schema, which would repeat it.
pub(crate) fn describe<T: JsonSchema>() -> (String, String) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.transforms.push(Box::new(slim));
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let description = match schema.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    (description, schema.as_value().to_string())
}

/// Removes Rust's names of types and number formats, and joins the lines of doc comments.
fn slim(schema: &mut Schema) {
    schema.remove("title");
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| !format.contains('-')) {
        schema.remove("format");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = join_lines(text);
    }
    transform_subschemas(&mut slim, schema);
}

/// Doc comments break lines for the reader of the source; only blank lines and list items mean something.
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        let starts_anew = line.is_empty() || line.starts_with(['-', '*', '#', '|']) || line.starts_with("```");
        if !joined.is_empty() {
            joined.push(if starts_anew || joined.ends_with('\n') { '\n' } else { ' ' });
        }
        joined.push_str(line);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a thing
    /// up. Second sentence.
    ///
    /// Second paragraph
    /// - item
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Look {
        /// What to
        /// look up.
        what: String,
        limit: Option<u32>,
        #[serde(default)]
        deep: bool,
    }

    #[test]
    fn describe_keeps_only_what_a_model_needs() {
        let (description, schema) = describe::<Look>();
        assert_eq!(description, "Looks a thing up. Second sentence.\n\nSecond paragraph\n- item");
        let expected = serde_json::json!({
            "type": "object",
            "properties": {
                "what": { "type": "string", "description": "What to look up." },
                "limit": { "type": ["integer", "null"], "minimum": 0 },
                "deep": { "type": "boolean", "default": false },
            },
            "required": ["what"],
            "additionalProperties": false,
        });
        assert_eq!(serde_json::from_str::<Value>(&schema).unwrap(), expected);
    }
}
