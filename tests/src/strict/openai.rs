//! The rules of Chat Completions, as its errors state them, and some that are harder, since compatible servers put the
//! messages through a chat template: roles alternate, arguments are JSON objects, no unknown field in a message.

use super::KEY;
use super::rules::{Refused, Verdict, at_least_one, list, name, need, object, schema, words};
use axum::http::HeaderMap;
use serde_json::Value;
use std::collections::HashSet;

const TOP: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "n",
    "seed",
    "user",
    "response_format",
    "parallel_tool_calls",
    "reasoning_effort",
];

/// The key.
pub fn headers(headers: &HeaderMap) -> Verdict {
    let key = headers.get("authorization").and_then(|value| value.to_str().ok());
    if key != Some(&format!("Bearer {KEY}")) {
        let shown = key.unwrap_or("none").trim_start_matches("Bearer ");
        return Err(Refused { status: 401, message: format!("Incorrect API key provided: {shown}.") });
    }
    Ok(())
}

/// The whole body.
pub fn body(body: &Value) -> Verdict {
    let map = object("", body, TOP)?;
    words("model", map.get("model"))?;
    need(map.get("stream") == Some(&Value::Bool(true)), || "stream: this server only streams".to_owned())?;
    if let Some(options) = map.get("stream_options") {
        object("stream_options", options, &["include_usage"])?;
    }
    let limits: Vec<&str> =
        ["max_tokens", "max_completion_tokens"].into_iter().filter(|f| map.contains_key(*f)).collect();
    need(limits.len() < 2, || "max_tokens and max_completion_tokens exclude each other".to_owned())?;
    for limit in limits {
        at_least_one(limit, map.get(limit))?;
    }
    let tools = map.get("tools").map(|tools| list("tools", Some(tools))).transpose()?.unwrap_or_default();
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        let tool = object(&at, tool, &["type", "function"])?;
        need(tool.get("type") == Some(&Value::from("function")), || format!("{at}.type: must be 'function'"))?;
        let at = format!("{at}.function");
        let function = tool.get("function").unwrap_or(&Value::Null);
        let function = object(&at, function, &["name", "description", "parameters", "strict"])?;
        need(names.insert(name(&format!("{at}.name"), function.get("name"), 64)?), || {
            format!("{at}.name: names must be unique")
        })?;
        schema(&format!("{at}.parameters"), function.get("parameters"))?;
    }
    if let Some(choice) = map.get("tool_choice") {
        need(!tools.is_empty(), || "'tool_choice' is only allowed when 'tools' are specified.".to_owned())?;
        need(matches!(choice.as_str(), Some("auto" | "none" | "required")), || "tool_choice: unknown".to_owned())?;
    }
    messages(list("messages", map.get("messages"))?)
}

/// The conversation: roles, contents, and calls with their results.
fn messages(messages: &[Value]) -> Verdict {
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if role != "tool" {
            need(open.is_empty(), || {
                format!(
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                     'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                    open.join(", ")
                )
            })?;
        }
        need(role != before || role == "tool", || format!("{at}: roles must alternate, found {role:?} twice"))?;
        match role {
            "system" => {
                need(index == 0, || format!("{at}: a system message comes first or never"))?;
                words(&at, object(&at, message, &["role", "content"])?.get("content"))?;
            }
            "user" => user(&at, message)?,
            "assistant" => {
                need(!matches!(before, "" | "system"), || format!("{at}: the first message is the user's"))?;
                for id in assistant(&at, message)? {
                    need(ids.insert(id.clone()), || format!("{at}: tool call ids must be unique, {id} is not"))?;
                    open.push(id);
                }
            }
            "tool" => {
                let message = object(&at, message, &["role", "tool_call_id", "content"])?;
                words(&at, message.get("content"))?;
                let id = words(&format!("{at}.tool_call_id"), message.get("tool_call_id"))?;
                let position = open.iter().position(|open| open == id).ok_or_else(|| {
                    Refused::bad(format!(
                        "{at}: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' ({id})"
                    ))
                })?;
                open.remove(position);
            }
            _ => return Err(Refused::bad(format!("{at}.role: unknown role {role:?}"))),
        }
        before = role;
    }
    need(open.is_empty(), || format!("the conversation ends with calls that nobody answered: {}", open.join(", ")))
}

fn user(at: &str, message: &Value) -> Verdict {
    let message = object(at, message, &["role", "content", "name"])?;
    let content = message.get("content");
    if content.is_some_and(Value::is_string) {
        return words(at, content).map(|_| ());
    }
    for (index, part) in list(&format!("{at}.content"), content)?.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        match part.get("type").and_then(Value::as_str) {
            Some("text") => words(&at, object(&at, part, &["type", "text"])?.get("text")).map(|_| ())?,
            Some("image_url") => {
                let part = object(&at, part, &["type", "image_url"])?;
                let url = part.get("image_url").and_then(|image| image.get("url")).and_then(Value::as_str);
                let url = url.unwrap_or_default();
                need(url.starts_with("data:image/") && url.contains(";base64,"), || format!("{at}: no data URL"))?;
            }
            _ => return Err(Refused::bad(format!("{at}.type: unknown"))),
        }
    }
    Ok(())
}

/// The ids of its calls.
fn assistant(at: &str, message: &Value) -> Verdict<Vec<String>> {
    let message = object(at, message, &["role", "content", "tool_calls", "refusal", "name"])?;
    let Some(calls) = message.get("tool_calls") else {
        words(&format!("{at}.content"), message.get("content"))?;
        return Ok(Vec::new());
    };
    if let Some(content) = message.get("content").filter(|content| !content.is_null()) {
        words(&format!("{at}.content"), Some(content))?;
    }
    let mut ids = Vec::new();
    for (index, call) in list(&format!("{at}.tool_calls"), Some(calls))?.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        let call = object(&at, call, &["id", "type", "function"])?;
        need(call.get("type") == Some(&Value::from("function")), || format!("{at}.type: must be 'function'"))?;
        let function = call.get("function").unwrap_or(&Value::Null);
        let function = object(&format!("{at}.function"), function, &["name", "arguments"])?;
        words(&format!("{at}.function.name"), function.get("name"))?;
        let arguments = function.get("arguments").and_then(Value::as_str).unwrap_or_default();
        need(serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok(), || {
            format!("{at}.function.arguments: no JSON object in a string")
        })?;
        ids.push(words(&format!("{at}.id"), call.get("id"))?.to_owned());
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A good body with `field` set to `value`.
    fn with(field: &str, value: Value) -> Value {
        let mut body = json!({
            "model": "m", "max_tokens": 10, "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}],
            "tool_choice": "auto",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "x", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "1", "content": "r"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
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
        let message = body(&with(field, value)).expect_err("a rule is broken").message;
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn a_good_body_passes() {
        assert_eq!(body(&with("/max_tokens", json!(1))), Ok(()));
    }

    #[test]
    fn every_rule_bites() {
        refused("/extra", json!(1), "extra: Extra inputs");
        refused("/max_tokens", json!(0), "max_tokens: Input should be greater");
        refused("/max_completion_tokens", json!(1), "exclude each other");
        refused("/tools/0/function/name", json!("a.b"), "String should match pattern");
        refused("/tools/0/function/parameters", json!({}), "parameters.type");
        refused("/tool_choice", json!("maybe"), "tool_choice: unknown");
        refused("/messages", json!([]), "messages: Input should be a list");
        refused("/messages/1/role", json!("system"), "twice");
        refused("/messages/1/content", json!(""), "non-whitespace text");
        refused("/messages/1", json!({"role": "user", "content": "a", "cache_control": {}}), "Extra inputs");
        refused("/messages/2", json!({"role": "assistant", "content": "b", "reasoning_content": "r"}), "Extra inputs");
        refused("/messages/2", json!({"role": "assistant", "content": null}), "messages[2].content: Field required");
        refused("/messages/2/tool_calls", json!([]), "tool_calls: Input should be a list");
        refused("/messages/2/tool_calls/0/id", json!("2"), "must be a response to a preceeding message");
        refused("/messages/2/tool_calls/0/function/arguments", json!("{\"a\":"), "no JSON object");
        refused("/messages/3", json!({"role": "user", "content": "b"}), "did not have response messages: 1");
        refused("/messages/3/content", json!(""), "non-whitespace");
        refused("/messages/4", json!({"role": "tool", "tool_call_id": "1", "content": "r"}), "must be a response");
        refused("/messages/4/content/0/image_url/url", json!("file:///etc/passwd"), "no data URL");
        refused("/messages/4/role", json!("robot"), "unknown role");
    }
}
