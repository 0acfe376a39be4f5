//! Bodies as the vendor sees them.

use super::*;
use crate::model::{CacheLife, ToolSpec};
use crate::transcript::{Message as Said, Origin};
use expect_test::{Expect, expect};
use serde_json::json;

fn said(role: Role, content: Vec<Block>) -> Said {
    Said { role, origin: Origin::Host, content }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn thinking(text: &str, signature: Option<&str>, redacted: Option<&str>) -> Block {
    Block::Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        redacted: redacted.map(str::to_owned),
    }
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.to_owned(), name: name.to_owned(), input, malformed: None }
}

fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Block {
    Block::ToolResult { id: id.to_owned(), parts, is_error }
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
    serde_json::from_slice(&body("m", request)).unwrap()
}

#[track_caller]
fn check(request: &Request, expected: Expect) {
    expected.assert_eq(&serde_json::to_string_pretty(&json_of(request)).unwrap());
}

/// The messages, a line each.
#[track_caller]
fn check_messages(messages: Vec<Said>, expected: Expect) {
    let json = json_of(&request(messages));
    let lines: Vec<String> = json["messages"].as_array().unwrap().iter().map(|m| format!("{m}\n")).collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn marks_ask_for_an_hour_where_the_operator_does_and_for_the_vendors_own_time_else() {
    let marked = |cache_life| {
        let mut request = request(vec![Said::user("hi")]);
        (request.breakpoints, request.cache_life) = (vec![Breakpoint::Message(0)], cache_life);
        json_of(&request)["messages"][0]["content"][0]["cache_control"].clone()
    };
    assert_eq!(marked(CacheLife::Short), json!({ "type": "ephemeral" }));
    assert_eq!(marked(CacheLife::Long), json!({ "type": "ephemeral", "ttl": "1h" }));
}

#[test]
fn a_request_with_everything() {
    let mut request = request(vec![
        Said::user("read it"),
        said(
            Role::Assistant,
            vec![
                thinking("Let me see.", Some("sig=="), None),
                thinking("", None, Some("enc==")),
                text("I read."),
                call("toolu_1", "read_file", json!({"path": "b", "a": 1})),
            ],
        ),
        said(
            Role::User,
            vec![result(
                "toolu_1",
                vec![
                    Part::Text { text: "hello".to_owned() },
                    Part::Json { value: json!({"lines": 1}).into() },
                    Part::Image { media_type: "image/png".to_owned(), data: "iVBO".to_owned() },
                    Part::File { path: "out.txt".to_owned(), note: None },
                ],
                false,
            )],
        ),
        Said::host("<system-reminder>be brief</system-reminder>"),
    ]);
    request.tools = [tool("glob_files"), tool("read_file")].into();
    request.system = ["You are.".to_owned(), String::new(), "Rules.".to_owned()].into();
    request.breakpoints =
        vec![Breakpoint::Tools, Breakpoint::System(2), Breakpoint::Message(1), Breakpoint::Message(3)];
    check(
        &request,
        expect![[r#"
        {
          "model": "m",
          "max_tokens": 100,
          "stream": true,
          "tools": [
            {
              "name": "glob_files",
              "description": "Reads.",
              "input_schema": {
                "type": "object",
                "properties": {
                  "path": {
                    "type": "string"
                  }
                }
              }
            },
            {
              "name": "read_file",
              "description": "Reads.",
              "input_schema": {
                "type": "object",
                "properties": {
                  "path": {
                    "type": "string"
                  }
                }
              },
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ],
          "system": [
            {
              "type": "text",
              "text": "You are."
            },
            {
              "type": "text",
              "text": "Rules.",
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ],
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "read it"
                }
              ]
            },
            {
              "role": "assistant",
              "content": [
                {
                  "type": "thinking",
                  "thinking": "Let me see.",
                  "signature": "sig=="
                },
                {
                  "type": "redacted_thinking",
                  "data": "enc=="
                },
                {
                  "type": "text",
                  "text": "I read."
                },
                {
                  "type": "tool_use",
                  "id": "toolu_1",
                  "name": "read_file",
                  "input": {
                    "path": "b",
                    "a": 1
                  },
                  "cache_control": {
                    "type": "ephemeral"
                  }
                }
              ]
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "tool_result",
                  "tool_use_id": "toolu_1",
                  "content": [
                    {
                      "type": "text",
                      "text": "hello"
                    },
                    {
                      "type": "text",
                      "text": "{\"lines\":1}"
                    },
                    {
                      "type": "image",
                      "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "iVBO"
                      }
                    },
                    {
                      "type": "text",
                      "text": "[file out.txt]"
                    }
                  ]
                },
                {
                  "type": "text",
                  "text": "<system-reminder>be brief</system-reminder>",
                  "cache_control": {
                    "type": "ephemeral"
                  }
                }
              ]
            }
          ],
          "tool_choice": {
            "type": "auto"
          }
        }"#]],
    );
}

#[test]
fn the_bytes_are_the_same_each_time_and_begin_alike_as_the_conversation_grows() {
    let mut request = request(vec![Said::user("a")]);
    request.tools = [tool("read_file")].into();
    assert_eq!(body("m", &request), body("m", &request));
    let short = body("m", &request);
    request.messages.push(said(Role::Assistant, vec![text("b")]).into());
    request.tool_choice = ToolChoice::None;
    let shared = short.iter().zip(body("m", &request)).take_while(|(a, b)| **a == *b).count();
    let prefix = String::from_utf8(short[..shared].to_vec()).unwrap();
    assert!(prefix.ends_with(r#""messages":[{"role":"user","content":[{"type":"text","text":"a"}]}"#), "{prefix}");
}

#[test]
fn without_tools_there_is_no_choice_and_without_segments_no_system() {
    let mut request = request(vec![Said::user("a")]);
    request.system = [" \n".to_owned()].into();
    request.tool_choice = ToolChoice::None;
    let json = json_of(&request);
    assert!(json.get("tools").is_none() && json.get("tool_choice").is_none() && json.get("system").is_none(), "{json}");
    request.tools = [tool("read_file")].into();
    assert_eq!(json_of(&request)["tool_choice"], json!({"type": "none"}));
}

#[test]
fn empty_content_is_never_sent() {
    check_messages(
        vec![
            Said::user("a"),
            said(Role::Assistant, vec![text("\n\n")]),
            said(Role::User, vec![text("b"), text(" ")]),
            said(Role::Assistant, vec![call("1", "x", json!({})), call("2", "x", json!({}))]),
            said(
                Role::User,
                vec![result("1", vec![], false), result("2", vec![Part::Text { text: String::new() }], true)],
            ),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}
            {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"x","input":{}},{"type":"tool_use","id":"2","name":"x","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"1"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"the call failed and gave no reason"}],"is_error":true}]}
        "#]],
    );
}

#[test]
fn reasoning_goes_back_signed_and_never_last() {
    check_messages(
        vec![
            Said::user("a"),
            said(Role::Assistant, vec![thinking("unsigned", None, None), text("b")]),
            Said::user("c"),
            said(Role::Assistant, vec![text("d"), thinking("cut off", Some("s"), None)]),
            Said::user("e"),
            said(Role::Assistant, vec![thinking("cut off", Some("s"), None)]),
            Said::user("f"),
            said(Role::Assistant, vec![thinking("", Some("hidden"), None), text("g")]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"}]}
            {"role":"assistant","content":[{"type":"text","text":"b"}]}
            {"role":"user","content":[{"type":"text","text":"c"}]}
            {"role":"assistant","content":[{"type":"text","text":"d"}]}
            {"role":"user","content":[{"type":"text","text":"e"},{"type":"text","text":"f"}]}
            {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"hidden"},{"type":"text","text":"g"}]}
        "#]],
    );
}

#[test]
fn an_error_with_a_picture_is_words_only() {
    let picture = Part::Image { media_type: "image/png".to_owned(), data: "iVBO".to_owned() };
    check_messages(
        vec![
            Said::user("a"),
            said(Role::Assistant, vec![call("1", "x", json!({}))]),
            said(Role::User, vec![result("1", vec![Part::Text { text: "no".to_owned() }, picture], true)]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"}]}
            {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"x","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"no"},{"type":"text","text":"[image image/png, 4 base64 bytes]"}],"is_error":true}]}
        "#]],
    );
}

#[test]
fn ids_and_names_of_other_wires_are_put_into_the_vendors_letters() {
    check_messages(
        vec![
            Said::user("a"),
            said(Role::Assistant, vec![call("functions.read:0", "read file", json!([1]))]),
            said(Role::User, vec![result("functions.read:0", vec![], false)]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"}]}
            {"role":"assistant","content":[{"type":"tool_use","id":"functions_read_0","name":"read_file","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_read_0"}]}
        "#]],
    );
}

/// Where marks stand, as JSON pointers.
fn marked(request: &Request) -> Vec<String> {
    fn walk(value: &Value, path: String, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if map.contains_key("cache_control") {
                    found.push(path.clone());
                }
                map.iter().for_each(|(key, value)| walk(value, format!("{path}/{key}"), found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, value)| walk(value, format!("{path}/{n}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&json_of(request), String::new(), &mut found);
    found
}

#[test]
fn at_most_four_marks_and_none_twice() {
    let mut request = request((0..6).map(|n| Said::user(format!("{n}"))).collect());
    request.breakpoints = vec![
        Breakpoint::Tools,
        Breakpoint::System(0),
        Breakpoint::Message(1),
        Breakpoint::Message(1),
        Breakpoint::Message(2),
        Breakpoint::Message(3),
        Breakpoint::Message(4),
        Breakpoint::Message(5),
    ];
    // There are neither tools nor segments, so those two fall away.
    assert_eq!(marked(&request), [1, 2, 3, 4].map(|n| format!("/messages/0/content/{n}")));
}

#[test]
fn a_mark_falls_back_to_what_can_carry_it() {
    let mut request = request(vec![
        Said::user("a"),
        said(Role::Assistant, vec![text("b"), thinking("c", Some("s"), None), call("1", "x", json!({}))]),
        said(Role::User, vec![text("reminder"), result("1", vec![], false)]),
        said(Role::Assistant, vec![text(" ")]),
    ]);
    request.system = ["You are.".to_owned(), String::new()].into();
    request.breakpoints = vec![Breakpoint::System(1), Breakpoint::Message(1), Breakpoint::Message(3)];
    assert_eq!(marked(&request), ["/system/0", "/messages/1/content/2", "/messages/2/content/1"]);
    request.breakpoints = vec![Breakpoint::Message(9)];
    assert_eq!(marked(&request), ["/messages/2/content/1"]);
}
