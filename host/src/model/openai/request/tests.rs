//! Bodies as compatible servers see them.

use super::*;
use crate::model::{CacheLife, ToolSpec};
use crate::transcript::{Message as Said, Origin};
use expect_test::{Expect, expect};
use serde_json::Value;
use serde_json::json;

fn said(role: Role, content: Vec<Block>) -> Said {
    Said { role, origin: Origin::Host, content }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn call(id: &str, input: Value, malformed: Option<&str>) -> Block {
    Block::ToolUse { id: id.to_owned(), name: "read_file".to_owned(), input, malformed: malformed.map(str::to_owned) }
}

fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Block {
    Block::ToolResult { id: id.to_owned(), parts, is_error }
}

fn part(text: &str) -> Part {
    Part::Text { text: text.to_owned() }
}

fn request(messages: Vec<Said>) -> Request {
    Request {
        tools: [].into(),
        system: [].into(),
        messages: messages.into_iter().map(Into::into).collect(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: 100,
        breakpoints: Vec::new(),
        cache_life: CacheLife::default(),
    }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Reads.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}).into(),
    }
}

fn json_of(request: &Request) -> Value {
    serde_json::from_slice(&body("m", LimitField::MaxTokens, request)).unwrap()
}

#[track_caller]
fn check_messages(messages: Vec<Said>, expected: Expect) {
    let json = json_of(&request(messages));
    let lines: Vec<String> = json["messages"].as_array().unwrap().iter().map(|m| format!("{m}\n")).collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn a_request_with_everything_around_the_messages() {
    let mut request = request(vec![Said::user("a")]);
    request.tools = [tool("glob_files"), tool("read_file")].into();
    request.system = ["You are.".to_owned(), String::new(), "Rules.".to_owned()].into();
    expect![[r#"
        {
          "model": "m",
          "stream": true,
          "stream_options": {
            "include_usage": true
          },
          "max_tokens": 100,
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "glob_files",
                "description": "Reads.",
                "parameters": {
                  "type": "object",
                  "properties": {
                    "path": {
                      "type": "string"
                    }
                  }
                }
              }
            },
            {
              "type": "function",
              "function": {
                "name": "read_file",
                "description": "Reads.",
                "parameters": {
                  "type": "object",
                  "properties": {
                    "path": {
                      "type": "string"
                    }
                  }
                }
              }
            }
          ],
          "messages": [
            {
              "role": "system",
              "content": "You are.\n\nRules."
            },
            {
              "role": "user",
              "content": "a"
            }
          ],
          "tool_choice": "auto"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&json_of(&request)).unwrap());
    request.tool_choice = ToolChoice::None;
    assert_eq!(json_of(&request)["tool_choice"], "none");
    request.tools = [].into();
    assert!(json_of(&request).get("tool_choice").is_none() && json_of(&request).get("tools").is_none());
}

#[test]
fn the_limit_goes_by_the_name_that_the_server_knows() {
    let body = body("m", LimitField::MaxCompletionTokens, &request(vec![Said::user("a")]));
    let json: Value = serde_json::from_slice(&body).unwrap();
    assert!(json["max_completion_tokens"] == 100 && json.get("max_tokens").is_none(), "{json}");
}

#[test]
fn results_stand_behind_the_calls_and_words_behind_the_results() {
    check_messages(
        vec![
            Said::user("read both"),
            said(
                Role::Assistant,
                vec![
                    Block::Thinking { text: "secret".to_owned(), signature: None, redacted: None },
                    text("I read."),
                    call("1", json!({"path": "b", "a": 1}), None),
                    call("2", json!({}), Some("{\"path\": ")),
                ],
            ),
            Said::host("reminder"),
            said(
                Role::User,
                vec![
                    result("1", vec![part("hello"), Part::Json { value: json!([1]).into() }], false),
                    result("2", vec![part("no JSON object")], true),
                ],
            ),
            said(Role::Assistant, vec![call("3", json!({}), None), call("4", json!({}), None)]),
            said(Role::User, vec![result("3", vec![], false), result("4", vec![], true)]),
            said(Role::Assistant, vec![text("done")]),
        ],
        expect![[r#"
            {"role":"user","content":"read both"}
            {"role":"assistant","content":"I read.","tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\",\"a\":1}"}},{"id":"2","type":"function","function":{"name":"read_file","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"1","content":"hello\n\n[1]"}
            {"role":"tool","tool_call_id":"2","content":"error: no JSON object"}
            {"role":"user","content":"reminder"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"3","type":"function","function":{"name":"read_file","arguments":"{}"}},{"id":"4","type":"function","function":{"name":"read_file","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"3","content":"(no output)"}
            {"role":"tool","tool_call_id":"4","content":"error: the call failed and gave no reason"}
            {"role":"assistant","content":"done"}
        "#]],
    );
}

#[test]
fn pictures_are_data_urls_and_those_of_results_follow_as_the_users() {
    let picture = || Part::Image { media_type: "image/png".to_owned(), data: "iVBO".to_owned() };
    check_messages(
        vec![
            said(
                Role::User,
                vec![
                    text("what is it?"),
                    Block::Image { media_type: "image/webp".to_owned(), data: "UklG".to_owned() },
                ],
            ),
            said(Role::Assistant, vec![call("1", json!({}), None), call("2", json!({}), None)]),
            said(Role::User, vec![result("1", vec![part("drawn"), picture()], false), result("2", vec![], false)]),
            Said::user("nice"),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/webp;base64,UklG"}}]}
            {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"read_file","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"1","content":"drawn\n\n[image image/png: see the next user message]"}
            {"role":"tool","tool_call_id":"2","content":"(no output)"}
            {"role":"user","content":[{"type":"text","text":"Images in the result of call 1:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},{"type":"text","text":"nice"}]}
        "#]],
    );
}

#[test]
fn what_says_nothing_leaves() {
    let thinking = Block::Thinking { text: "hm".to_owned(), signature: None, redacted: None };
    check_messages(
        vec![Said::user("a"), said(Role::Assistant, vec![thinking]), Said::user(" "), Said::user("b")],
        expect![[r#"
            {"role":"user","content":"a\n\nb"}
        "#]],
    );
}
