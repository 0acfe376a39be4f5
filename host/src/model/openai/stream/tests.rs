//! Streams as the vendor sends them, and as servers do that call themselves compatible.

use super::*;
use expect_test::{Expect, expect};

/// Reads `chunks`, a line each.
fn read(chunks: &str) -> Result<(Vec<ModelEvent>, Answer), Fault> {
    let mut answer = Answer::default();
    let mut streamed = Vec::new();
    for line in chunks.lines().map(str::trim).filter(|line| !line.is_empty()) {
        answer.read(line, &mut |event| streamed.push(event))?;
    }
    Ok((streamed, answer))
}

#[track_caller]
fn check(chunks: &str, expected: Expect) {
    let (mut streamed, answer) = read(chunks).unwrap();
    let reply = answer.reply("asked", &[], &mut |event| streamed.push(event));
    let streamed: Vec<String> = streamed.iter().map(|event| format!("{event:?}\n")).collect();
    let blocks: Vec<String> =
        reply.content.iter().map(|block| format!("{}\n", serde_json::to_string(block).unwrap())).collect();
    let Reply { stop, usage, model, .. } = reply;
    expected.assert_eq(&format!("{}{}{stop:?} {model} {usage:?}\n", streamed.concat(), blocks.concat()));
}

/// The calls of `pieces`, each the `tool_calls` of a chunk, as `id name arguments`; made ids are shown as `made`.
#[track_caller]
fn check_calls(pieces: &[&str], expected: &[&str]) {
    let mut answer = Answer::default();
    let mut told = 0;
    for piece in pieces {
        let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":{piece}}}}}]}}"#);
        answer.read(&chunk, &mut |_| told += 1).unwrap();
    }
    let reply = answer.reply("m", &[], &mut |_| told += 1);
    assert_eq!(told, reply.content.len(), "each call is told once");
    let calls: Vec<String> = reply
        .content
        .iter()
        .map(|block| match block {
            Block::ToolUse { id, name, input, malformed } => {
                let id = if id.starts_with("call_0") { "made" } else { id };
                format!("{id} {name} {}", malformed.clone().unwrap_or_else(|| input.to_string()))
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, expected);
}

#[test]
fn reasoning_text_calls_and_usage() {
    check(
        r#"
        {"id":"c","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"reasoning_content":"I see."},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"content":"Read"},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"content":"ing 晴れ"},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read_file","arguments":""}}]},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": "}}]},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"list","arguments":""}}]},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}}]},"finish_reason":null}]}
        {"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
        {"model":"gpt-x","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64}}}
        "#,
        expect![[r#"
            Thinking("I see.")
            Text("Read")
            Text("ing 晴れ")
            ToolUse { name: "read_file" }
            ToolUse { name: "list" }
            {"type":"thinking","text":"I see.","signature":null,"redacted":null}
            {"type":"text","text":"Reading 晴れ"}
            {"type":"tool_use","id":"a","name":"read_file","input":{"path":"x"}}
            {"type":"tool_use","id":"b","name":"list","input":{}}
            ToolUse gpt-x Usage { input: 36, output: 20, cache_read: 64, cache_write: 0 }
        "#]],
    );
}

#[test]
fn other_choices_and_other_forms_of_words() {
    check(
        r#"
        {"choices":[{"index":1,"delta":{"content":"not ours"}},{"index":0,"delta":{"content":[{"type":"text","text":"a"}],"reasoning":"r"}}]}
        {"choices":[{"delta":{"refusal":"I cannot."},"finish_reason":""}]}
        {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":null}}
        "#,
        expect![[r#"
            Thinking("r")
            Text("a")
            Text("I cannot.")
            {"type":"thinking","text":"r","signature":null,"redacted":null}
            {"type":"text","text":"aI cannot."}
            Refusal asked Usage { input: 5, output: 1, cache_read: 0, cache_write: 0 }
        "#]],
    );
}

#[test]
fn calls_of_servers_that_count_wrongly() {
    // Whole calls in one chunk, all with one index and an id each.
    check_calls(
        &[
            r#"[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"x","arguments":"{\"n\":1}"}}]"#,
        ],
        &["a x {}", r#"b x {"n":1}"#],
    );
    // The same without ids.
    check_calls(
        &[
            r#"[{"index":0,"function":{"name":"x","arguments":"{}"}}]"#,
            r#"[{"index":0,"function":{"name":"x","arguments":"{}"}}]"#,
        ],
        &["made x {}", "made x {}"],
    );
    // Neither index nor id, and arguments as an object.
    check_calls(
        &[r#"[{"function":{"name":"x","arguments":{"b":1,"a":2}}},{"function":{"name":"y","arguments":null}}]"#],
        &[r#"made x {"b":1,"a":2}"#, "made y {}"],
    );
    // No index; the id comes once, the pieces follow.
    check_calls(
        &[
            r#"[{"id":"a","function":{"name":"x","arguments":"{\"n\""}}]"#,
            r#"[{"function":{"arguments":":1}"}}]"#,
            r#"[{"id":"b","function":{"name":"y","arguments":""}}]"#,
            r#"[{"id":"b","function":{"arguments":"{}"}}]"#,
        ],
        &[r#"a x {"n":1}"#, "b y {}"],
    );
    // Id and name repeated with every piece.
    check_calls(
        &[
            r#"[{"index":0,"id":"a","function":{"name":"x","arguments":""}}]"#,
            r#"[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":"}}]"#,
            r#"[{"index":0,"id":"a","function":{"name":"x","arguments":"1}"}}]"#,
        ],
        &[r#"a x {"n":1}"#],
    );
    // Name repeated without an id, once more behind whole arguments.
    check_calls(
        &[
            r#"[{"index":0,"function":{"name":"x","arguments":"{\"n\":"}}]"#,
            r#"[{"index":0,"function":{"name":"x","arguments":"1}"}}]"#,
            r#"[{"index":0,"function":{"name":"x","arguments":""}}]"#,
        ],
        &[r#"made x {"n":1}"#],
    );
    // A name in pieces, and an empty call that nothing belongs to.
    check_calls(
        &[
            r#"[{"index":0,"id":"a","function":{"name":"read"}}]"#,
            r#"[{"index":0,"function":{"name":"_file"}},{"index":3}]"#,
            r#"[{"index":0,"function":{"arguments":"{"}}]"#,
        ],
        &["a read_file {"],
    );
}

#[test]
fn an_id_that_the_conversation_has_already_is_made_anew() {
    let earlier = Message {
        role: crate::transcript::Role::Assistant,
        origin: crate::transcript::Origin::Model,
        content: vec![Block::ToolUse { id: "call_1".into(), name: "x".into(), input: Value::Null, malformed: None }],
    };
    let chunk = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"x"}},{"index":1,"id":"call_2","function":{"name":"x"}}]},"finish_reason":"stop"}]}"#;
    let (_, answer) = read(chunk).unwrap();
    let reply = answer.reply("m", &[earlier.into()], &mut |_| {});
    let found: Vec<String> = reply.content.iter().filter_map(ids::id_of).collect();
    assert!(found[0] != "call_1" && found[0].starts_with("call_"), "{found:?}");
    assert_eq!(found[1], "call_2");
    assert_eq!(reply.stop, StopReason::ToolUse);
}

#[test]
fn every_finish_reason() {
    let stop = |word: &str, calls| stop_reason(word.to_owned(), calls, false);
    assert_eq!(stop("stop", false), StopReason::EndTurn);
    assert_eq!(stop("stop", true), StopReason::ToolUse);
    assert_eq!(stop("tool_calls", true), StopReason::ToolUse);
    assert_eq!(stop("tool_calls", false), StopReason::EndTurn);
    assert_eq!(stop("length", true), StopReason::MaxTokens);
    assert_eq!(stop("content_filter", false), StopReason::Refusal);
    assert_eq!(stop("eos", false), StopReason::Other("eos".to_owned()));
}

#[test]
fn an_error_inside_the_stream_has_the_status_that_fits() {
    let refused = |chunk: &str| match read(chunk).map(|_| ()) {
        Err(Fault::Refused { status, words }) => {
            format!("{status} {} {}", words.kind.unwrap_or_default(), words.message)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(r#"{"error":{"message":"slow","type":"rate_limit_exceeded"}}"#), "429 rate_limit_exceeded slow");
    assert_eq!(refused(r#"{"error":{"message":"down","code":502},"choices":[]}"#), "502  down");
    assert_eq!(refused(r#"{"error":{"message":"down","code":"503"}}"#), "503 503 down");
    assert_eq!(
        refused(r#"{"error":{"message":"long","type":"invalid_request_error"}}"#),
        "400 invalid_request_error long"
    );
    assert_eq!(refused(r#"{"error":"boom"}"#), "500  boom");
}

#[test]
fn without_a_finish_reason_nothing_is_finished() {
    let (_, answer) = read(r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#).unwrap();
    assert!(!answer.is_finished());
    assert!(matches!(read("{\"choices\":"), Err(Fault::Broken(_))));
}
