//! Streams as the vendor sends them, and as it might.

use super::*;
use expect_test::{Expect, expect};

/// Reads `events`, a line each, and answers with what was streamed and the reply.
fn read(events: &str) -> Result<(Vec<ModelEvent>, Reply), Fault> {
    let mut answer = Answer::default();
    let mut streamed = Vec::new();
    for line in events.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if answer.read(line, &mut |event| streamed.push(event))? {
            return Ok((streamed, answer.reply("asked")));
        }
    }
    Err(Fault::Broken("no end".to_owned()))
}

#[track_caller]
fn check(events: &str, expected: Expect) {
    let (streamed, reply) = read(events).unwrap();
    let streamed: Vec<String> = streamed.iter().map(|event| format!("{event:?}\n")).collect();
    let blocks: Vec<String> =
        reply.content.iter().map(|block| format!("{}\n", serde_json::to_string(block).unwrap())).collect();
    let Reply { stop, usage, model, .. } = reply;
    expected.assert_eq(&format!("{}{}{stop:?} {model} {usage:?}\n", streamed.concat(), blocks.concat()));
}

#[test]
fn thinking_text_and_a_call() {
    check(
        r#"
        {"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","content":[],"model":"claude-x","stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":1}}}
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"ping"}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I "}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see."}}
        {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwK"}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Reading 晴"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"れ"}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read_file","input":{}}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"RE"}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"ADME.md\"}"}}
        {"type":"content_block_stop","index":3}
        {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            Thinking("I ")
            Thinking("see.")
            Text("Reading 晴")
            Text("れ")
            ToolUse { name: "read_file" }
            {"type":"thinking","text":"I see.","signature":"EqQB","redacted":null}
            {"type":"thinking","text":"","signature":null,"redacted":"EmwK"}
            {"type":"text","text":"Reading 晴れ"}
            {"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"README.md"}}
            ToolUse claude-x Usage { input: 10, output: 42, cache_read: 3, cache_write: 4 }
        "#]],
    );
}

#[test]
fn arguments_that_are_no_object_are_malformed_and_no_arguments_are_an_empty_one() {
    check(
        r#"
        {"type":"message_start","message":{"model":"m"}}
        {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"a","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\": "}}
        {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"2","name":"b","input":{}}}
        {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"3","name":"c","input":{"whole":true}}}
        {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"4","name":"d"}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"[1]"}}
        {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":1}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            ToolUse { name: "a" }
            ToolUse { name: "b" }
            ToolUse { name: "c" }
            ToolUse { name: "d" }
            {"type":"tool_use","id":"1","name":"a","input":{},"malformed":"{\"path\": "}
            {"type":"tool_use","id":"2","name":"b","input":{}}
            {"type":"tool_use","id":"3","name":"c","input":{"whole":true}}
            {"type":"tool_use","id":"4","name":"d","input":{},"malformed":"[1]"}
            MaxTokens m Usage { input: 0, output: 1, cache_read: 0, cache_write: 0 }
        "#]],
    );
}

#[test]
fn what_is_not_known_is_skipped() {
    check(
        r#"
        {"type":"message_start","message":{"model":"m","usage":null,"new":1}}
        {"type":"weather","sunny":true}
        {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}
        {"type":"content_block_start","index":5,"content_block":{"type":"text","text":"a","citations":null}}
        {"type":"content_block_delta","index":5,"delta":{"type":"citations_delta","citation":{}}}
        {"type":"content_block_start","index":6,"content_block":{"type":"text","text":""}}
        {"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"X"},"usage":{"output_tokens":2,"input_tokens":7,"cache_read_input_tokens":null}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            Text("a")
            {"type":"text","text":"a"}
            Other("stop_sequence") m Usage { input: 7, output: 2, cache_read: 0, cache_write: 0 }
        "#]],
    );
}

#[test]
fn every_stop_reason() {
    let stop = |word: &str| stop_reason(word.to_owned());
    assert_eq!(stop("end_turn"), StopReason::EndTurn);
    assert_eq!(stop("tool_use"), StopReason::ToolUse);
    assert_eq!(stop("max_tokens"), StopReason::MaxTokens);
    assert_eq!(stop("refusal"), StopReason::Refusal);
    assert_eq!(stop("pause_turn"), StopReason::Pause);
    assert_eq!(stop("model_context_window_exceeded"), StopReason::Other("model_context_window_exceeded".to_owned()));
}

#[test]
fn an_error_event_carries_the_status_that_the_vendor_documents() {
    let fault = read(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    let Err(Fault::Refused { kind, message }) = fault else { panic!("{fault:?}") };
    assert_eq!((status(&kind), message.as_str()), (529, "Overloaded"));
    let all = "invalid_request_error authentication_error billing_error permission_error not_found_error conflict_error \
               request_too_large rate_limit_error api_error timeout_error overloaded_error brand_new_error";
    let all: Vec<u16> = all.split_whitespace().map(status).collect();
    assert_eq!(all, [400, 401, 402, 403, 404, 409, 413, 429, 500, 504, 529, 500]);
}

#[test]
fn nonsense_is_broken() {
    let broken = |events: &str| match read(events) {
        Err(Fault::Broken(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(r#"{"type":"message_stop"}"#), "message_stop came without message_start");
    assert_eq!(
        broken(r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a"}}"#),
        "block 2 goes on without having begun"
    );
    assert!(broken("{\"type\":\"mess").starts_with("an event is not of the Messages API ("));
}
