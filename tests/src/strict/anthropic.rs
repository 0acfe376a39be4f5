//! The rules of the Messages API, as its errors state them, and two that are harder: roles alternate (the vendor merges
//! neighbours, but a wire should not lean on it), and reasoning comes back exactly as this server sent it.

use super::KEY;
use super::rules::{Refused, Verdict, at_least_one, list, name, need, object, schema, words};
use axum::http::HeaderMap;
use serde_json::Value;
use std::collections::HashSet;

const TOP: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "service_tier",
    "output_config",
    "context_management",
    "cache_control",
];

/// Key and version.
pub fn headers(headers: &HeaderMap) -> Verdict {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("x-api-key") != Some(KEY) {
        return Err(Refused { status: 401, message: "invalid x-api-key".to_owned() });
    }
    need(header("anthropic-version") == Some("2023-06-01"), || "anthropic-version: header is required".to_owned())
}

/// The whole body; `signed` is the reasoning that was sent out.
pub fn body(body: &Value, signed: &HashSet<String>) -> Verdict {
    let map = object("", body, TOP)?;
    words("model", map.get("model"))?;
    at_least_one("max_tokens", map.get("max_tokens"))?;
    need(map.get("stream") == Some(&Value::Bool(true)), || "stream: this server only streams".to_owned())?;
    if let Some(system) = map.get("system").filter(|system| !system.is_string()) {
        for (index, block) in list("system", Some(system))?.iter().enumerate() {
            let at = format!("system.{index}");
            let block = object(&at, block, &["type", "text", "cache_control"])?;
            words(&at, block.get("text"))?;
        }
    } else if let Some(system) = map.get("system") {
        words("system", Some(system))?;
    }
    let tools = map.get("tools").map(|tools| list("tools", Some(tools))).transpose()?.unwrap_or_default();
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools.{index}");
        let tool = object(&at, tool, &["name", "description", "input_schema", "cache_control"])?;
        need(names.insert(name(&format!("{at}.name"), tool.get("name"), 128)?), || {
            "tools: Tool names must be unique.".to_owned()
        })?;
        schema(&format!("{at}.input_schema"), tool.get("input_schema"))?;
    }
    if let Some(choice) = map.get("tool_choice") {
        need(!tools.is_empty(), || "tool_choice: may only be specified while providing tools".to_owned())?;
        let kind = choice.get("type").and_then(Value::as_str);
        need(matches!(kind, Some("auto" | "none" | "any" | "tool")), || "tool_choice.type: unknown".to_owned())?;
    }
    messages(list("messages", map.get("messages"))?, signed)?;
    let marks = marks("", body)?;
    need(marks <= 4, || format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}."))
}

/// The conversation: roles, blocks, and calls with their results.
fn messages(messages: &[Value], signed: &HashSet<String>) -> Verdict {
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let message = object(&at, message, &["role", "content"])?;
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        need(message.get("role") == Some(&Value::from(role)), || {
            format!("{at}: roles must alternate between \"user\" and \"assistant\", beginning with \"user\"")
        })?;
        let text = message.get("content").filter(|content| content.is_string());
        if text.is_some() {
            words(&at, text)?;
        }
        let blocks = match text {
            Some(_) => &[][..],
            None => list(&format!("{at}: all messages must have non-empty content"), message.get("content"))?,
        };
        if role == "user" {
            results(&at, &mut open, blocks)?;
        }
        for (index, value) in blocks.iter().enumerate() {
            let at = format!("{at}.content.{index}");
            if let Some(id) = block(&at, role, value, signed)? {
                need(ids.insert(id.clone()), || format!("{at}: `tool_use` ids must be unique"))?;
                open.push(id);
            }
        }
        let last = blocks.last().and_then(|block| block.get("type")).and_then(Value::as_str);
        need(!matches!(last, Some("thinking" | "redacted_thinking")), || {
            format!("{at}: The final block in an assistant message cannot be `thinking`.")
        })?;
    }
    need(open.is_empty(), || format!("`tool_use` ids were found without `tool_result` blocks at the end: {open:?}"))
}

/// Every call of the message before is answered once, before anything else is said, and nothing else is answered.
fn results(at: &str, open: &mut Vec<String>, blocks: &[Value]) -> Verdict {
    let is_result = |block: &&Value| block.get("type") == Some(&Value::from("tool_result"));
    let first = blocks.iter().take_while(is_result).count();
    need(blocks.iter().filter(is_result).count() == first, || {
        format!("{at}: `tool_result` blocks must come before any other content")
    })?;
    for block in &blocks[..first] {
        let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let position = open.iter().position(|open| open == id).ok_or_else(|| {
            Refused::bad(format!(
                "{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a \
                 corresponding `tool_use` block in the previous message, and one result only"
            ))
        })?;
        open.remove(position);
    }
    need(open.is_empty(), || {
        format!("{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}", open.join(", "))
    })
}

/// A block; the id where it is a call.
fn block(at: &str, role: &str, value: &Value, signed: &HashSet<String>) -> Verdict<Option<String>> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    match (role, kind) {
        (_, "text") => {
            let block = object(at, value, &["type", "text", "cache_control"])?;
            words(at, block.get("text"))?;
        }
        ("user", "image") => image(at, value)?,
        ("assistant", "thinking") => {
            let block = object(at, value, &["type", "thinking", "signature"])?;
            let field = |name: &str| block.get(name).and_then(Value::as_str);
            let (Some(thinking), Some(signature)) = (field("thinking"), field("signature")) else {
                return Err(Refused::bad(format!("{at}: `thinking` and `signature`: Field required")));
            };
            need(signed.contains(&format!("{signature}:{thinking}")), || {
                format!("{at}: Invalid `signature` in `thinking` block")
            })?;
        }
        ("assistant", "redacted_thinking") => {
            let block = object(at, value, &["type", "data"])?;
            let data = block.get("data").and_then(Value::as_str).unwrap_or_default();
            need(signed.contains(data), || format!("{at}: Invalid `data` in `redacted_thinking` block"))?;
        }
        ("assistant", "tool_use") => {
            let block = object(at, value, &["type", "id", "name", "input", "cache_control"])?;
            name(&format!("{at}.name"), block.get("name"), 128)?;
            need(block.get("input").is_some_and(Value::is_object), || {
                format!("{at}.tool_use.input: Input should be a valid dictionary")
            })?;
            return name(&format!("{at}.id"), block.get("id"), 128).map(|id| Some(id.to_owned()));
        }
        ("user", "tool_result") => result(at, value)?,
        _ => {
            return Err(Refused::bad(format!(
                "{at}: a block of type {kind:?} cannot stand in a message of the {role}"
            )));
        }
    }
    Ok(None)
}

fn result(at: &str, value: &Value) -> Verdict {
    let block = object(at, value, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    let is_error = block.get("is_error").is_some_and(|is_error| *is_error == Value::Bool(true));
    let parts = match block.get("content") {
        None => &[][..],
        Some(text) if text.is_string() => return words(at, Some(text)).map(|_| ()),
        Some(parts) => list(&format!("{at}.content"), Some(parts))?,
    };
    need(!is_error || !parts.is_empty(), || format!("{at}: content cannot be empty if `is_error` is true"))?;
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}.content.{index}");
        match part.get("type").and_then(Value::as_str) {
            Some("text") => words(&at, object(&at, part, &["type", "text"])?.get("text")).map(|_| ())?,
            Some("image") if !is_error => image(&at, part)?,
            _ => return Err(Refused::bad(format!("{at}: all content must be type \"text\" if `is_error` is true"))),
        }
    }
    Ok(())
}

fn image(at: &str, value: &Value) -> Verdict {
    let block = object(at, value, &["type", "source", "cache_control"])?;
    let source = block.get("source").unwrap_or(&Value::Null);
    object(&format!("{at}.source"), source, &["type", "media_type", "data"])?;
    let media_type = source.get("media_type").and_then(Value::as_str).unwrap_or_default();
    need(matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp"), || {
        format!("{at}.source.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
    })?;
    words(&format!("{at}.source.data"), source.get("data")).map(|_| ())
}

/// How many cache marks there are; each is `{"type": "ephemeral"}`.
fn marks(at: &str, value: &Value) -> Verdict<usize> {
    let mut count = 0;
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                // Schemas and arguments may use the word for themselves.
                if key == "cache_control" {
                    need(value.get("type") == Some(&Value::from("ephemeral")), || {
                        format!("{at}.cache_control.type: Input should be 'ephemeral'")
                    })?;
                    count += 1;
                } else if key != "input_schema" && key != "input" {
                    count += marks(key, value)?;
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                count += marks(at, item)?;
            }
        }
        _ => {}
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A good body with `field` set to `value`.
    fn with(field: &str, value: Value) -> Value {
        let mut body = json!({
            "model": "m", "max_tokens": 10, "stream": true,
            "tools": [{"name": "x", "input_schema": {"type": "object", "properties": {"a": {}}, "required": ["a"]}}],
            "tool_choice": {"type": "auto"},
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "tool_use", "id": "1", "name": "x", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "b"},
                ]},
            ],
        });
        if let Some(target) = body.pointer_mut(field) {
            *target = value;
        } else {
            body[field.trim_start_matches('/')] = value;
        }
        body
    }

    #[track_caller]
    fn refused(field: &str, value: Value, words: &str) {
        let verdict = body(&with(field, value), &HashSet::from(["s:t".to_owned()]));
        let message = verdict.expect_err("a rule is broken").message;
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn a_good_body_passes() {
        assert_eq!(body(&with("/max_tokens", json!(1)), &HashSet::from(["s:t".to_owned()])), Ok(()));
    }

    #[test]
    fn every_rule_bites() {
        refused("/extra", json!(1), "extra: Extra inputs are not permitted");
        refused("/max_tokens", json!(0), "max_tokens: Input should be greater");
        refused("/stream", json!(false), "stream");
        refused("/system", json!([]), "system: Input should be a list");
        refused("/system/0/text", json!(" "), "system.0: text content blocks");
        refused("/tools/0/name", json!("a b"), "tools.0.name: String should match pattern");
        refused("/tools/0/input_schema/type", json!("array"), "tools.0.input_schema.type");
        refused("/tools/0/input_schema/required", json!(["z"]), "is not among the properties");
        refused(
            "/tools",
            json!([{"name": "x", "input_schema": {"type": "object"}}, {"name": "x", "input_schema": {"type": "object"}}]),
            "unique",
        );
        refused("/messages", json!([]), "messages: Input should be a list");
        refused("/messages/0/role", json!("assistant"), "messages.0: roles must alternate");
        refused("/messages/1/role", json!("user"), "messages.1: roles must alternate");
        refused("/messages/0/content", json!([]), "messages.0: all messages must have non-empty content");
        refused("/messages/0/content/0/text", json!(""), "text content blocks must contain non-whitespace text");
        refused("/messages/1/content/0/thinking", json!("changed"), "Invalid `signature`");
        refused("/messages/1/content/0", json!({"type": "thinking", "thinking": "t"}), "Field required");
        refused("/messages/1/content/1/input", json!("{}"), "valid dictionary");
        refused("/messages/1/content/1/id", json!("a:b"), "content.1.id: String should match pattern");
        refused("/messages/1/content/1/id", json!("2"), "unexpected `tool_use_id`");
        refused(
            "/messages/1/content",
            json!([{"type": "thinking", "thinking": "t", "signature": "s"}]),
            "cannot be `thinking`",
        );
        refused("/messages/2/content", json!([{"type": "text", "text": "b"}]), "immediately after: 1");
        refused("/messages/2/content/1", json!({"type": "tool_result", "tool_use_id": "1"}), "one result only");
        refused(
            "/messages/2/content",
            json!([{"type": "text", "text": "b"}, {"type": "tool_result", "tool_use_id": "1"}]),
            "must come before",
        );
        refused(
            "/messages/2/content/0",
            json!({"type": "tool_result", "tool_use_id": "1", "is_error": true}),
            "cannot be empty if `is_error`",
        );
        refused(
            "/messages/2/content/1",
            json!({"type": "tool_use", "id": "2", "name": "x", "input": {}}),
            "cannot stand in a message of the user",
        );
        let marked = json!({"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}});
        refused("/messages/0/content", json!([marked, marked, marked, marked]), "Found 5");
        let mut last = with("/max_tokens", json!(1));
        last["messages"].as_array_mut().expect("a list").pop();
        assert!(body(&last, &HashSet::from(["s:t".to_owned()])).expect_err("open call").message.contains("at the end"));
    }
}
