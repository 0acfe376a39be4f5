//! Plays of small scripts.

use super::*;
use crate::model::CacheLife;
use crate::transcript::Origin;
use expect_test::expect;
use serde_json::json;

fn script(text: &str) -> Scripted {
    Scripted::from_str("demo.yaml", text).unwrap()
}

fn request(messages: Vec<Message>) -> Request {
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

fn answered(text: &str) -> Message {
    Message { role: Role::Assistant, origin: Origin::Model, content: vec![Block::Text { text: text.to_owned() }] }
}

async fn ask(model: &Scripted, request: &Request) -> Result<Reply, ModelError> {
    model.ask(request, &mut |_| {}).await
}

async fn text(model: &Scripted, request: &Request) -> String {
    match ask(model, request).await {
        Ok(reply) => crate::transcript::text_of(&reply.content),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_with_everything() {
    let model = script(
        r#"
name: demo
steps:
  - say: "I read  it."
    think: "Hm, so."
    calls:
      - tool: read_file
        input: { path: README.md, limit: 3, deep: { all: true } }
      - tool: grep_files
        malformed: '{"pattern": '
      - tool: list
    usage: { input: 100, output: 20, cache_read: 3 }
    delay_ms: 5
"#,
    );
    let mut streamed = Vec::new();
    let started = tokio::time::Instant::now();
    let reply = model.ask(&request(vec![Message::user("go")]), &mut |event| streamed.push(event)).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_millis(20));
    let word = |word: &str| ModelEvent::Text(word.to_owned());
    let calls = ["read_file", "grep_files", "list"].map(|name| ModelEvent::ToolUse { name: name.to_owned() });
    let thought = ["Hm, ", "so."].map(|word| ModelEvent::Thinking(word.to_owned()));
    let said = [word("I "), word("read "), word(" "), word("it.")];
    assert_eq!(streamed, [&thought[..], &said[..], &calls[..]].concat());
    let Block::ToolUse { id, input, malformed, .. } = &reply.content[3] else { panic!("{reply:?}") };
    assert_eq!((id.as_str(), input, malformed.as_deref()), ("call_1_2", &json!({}), Some("{\"pattern\": ")));
    let Block::ToolUse { id, input, .. } = &reply.content[2] else { panic!("{reply:?}") };
    assert_eq!(id, "call_1_1");
    assert_eq!(input.to_string(), r#"{"path":"README.md","limit":3,"deep":{"all":true}}"#);
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(reply.usage, Usage { input: 100, output: 20, cache_read: 3, cache_write: 0 });
    assert_eq!(reply.model, "scripted:demo");
}

#[tokio::test]
async fn usage_is_estimated_and_the_end_is_said() {
    let model = script("steps: [{ say: hello, stop: max_tokens }]");
    let asked = request(vec![Message::user("hi")]);
    let reply = ask(&model, &asked).await.unwrap();
    assert!(reply.usage.input > 5 && reply.usage.output > 0, "{:?}", reply.usage);
    assert_eq!(reply.stop, StopReason::MaxTokens);
    let end = "the script demo.yaml has no step 2; add one, or ask less of it";
    assert_eq!(text(&model, &asked).await, end);
    assert_eq!(text(&model, &asked).await, end);
}

#[tokio::test]
async fn a_resumed_session_goes_on_where_it_stopped() {
    let steps = "steps: [{ say: a }, { fail: broken }, { say: b }, { say: c }]";
    let resumed =
        request(vec![Message::user("1"), answered("a"), Message::user("2"), answered("b"), Message::user("3")]);
    assert_eq!(text(&script(steps), &resumed).await, "c");
    let one = request(vec![Message::user("1"), answered("a"), Message::user("2")]);
    let model = script(steps);
    assert!(text(&model, &one).await.contains("broke off"));
    assert_eq!(text(&model, &one).await, "b");
    // From here on the requests are not counted again: a compaction takes answers away.
    assert_eq!(text(&model, &request(vec![Message::user("summary")])).await, "c");
}

#[tokio::test]
async fn the_limit_is_no_step() {
    let mut limited = request(vec![Message::user("1"), answered("a"), Message::user("2")]);
    limited.tool_choice = ToolChoice::None;
    let model = script("steps: [{ say: a }, { say: b }]\nat_limit: so far");
    assert_eq!(text(&model, &limited).await, "so far");
    limited.messages.extend([answered("so far").into(), Message::user("go on").into()]);
    limited.tool_choice = ToolChoice::Auto;
    assert_eq!(text(&model, &limited).await, "b", "the same play");
    assert_eq!(
        text(&script("steps: [{ say: a }, { say: b }]\nat_limit: so far"), &limited).await,
        "b",
        "a resumed one"
    );
    limited.tool_choice = ToolChoice::None;
    assert!(text(&script("steps: [{ say: a }]"), &limited).await.contains("limit of steps was reached"));
}

#[tokio::test]
async fn a_failure_comes_once() {
    let model = script(
        r#"
steps:
  - fail: { status: 429, message: slow down, kind: rate_limit_error, retry_after: 1.5 }
    say: a
  - fail: unreachable
  - fail: broken
  - say: b
"#,
    );
    let asked = request(vec![Message::user("hi")]);
    let error = ask(&model, &asked).await.unwrap_err();
    assert!(matches!(error, ModelError::Status { status: 429, retry_after: Some(1.5), .. }), "{error:?}");
    assert_eq!(error.to_string(), "scripted:demo.yaml answered 429 (rate_limit_error): slow down; the script says so");
    assert_eq!(text(&model, &asked).await, "a");
    assert!(matches!(ask(&model, &asked).await, Err(ModelError::Unreachable { .. })));
    assert!(matches!(ask(&model, &asked).await, Err(ModelError::Broken { .. })));
    assert_eq!(text(&model, &asked).await, "b");
}

#[tokio::test]
async fn a_step_checks_what_was_said_last() {
    let model = script("steps: [{ say: a, expect: '42 files' }]");
    let mut asked = request(vec![
        Message::user("42 files"),
        answered("hm"),
        Message {
            role: Role::User,
            origin: Origin::Tools,
            content: vec![Block::ToolResult {
                id: "1".to_owned(),
                parts: vec![Part::Text { text: "41 files".to_owned() }],
                is_error: false,
            }],
        },
    ]);
    model.play.lock().unwrap().position = Some(0);
    assert_eq!(
        text(&model, &asked).await,
        "step 1 of the script demo.yaml expects \"42 files\" in what was said last, which was \"41 files\"; change the step or what leads to it"
    );
    asked.messages.push(Message::host("now 42 files").into());
    assert_eq!(text(&model, &asked).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_dropped_is_played_again() {
    let model = script("steps: [{ say: a b, delay_ms: 60000 }]");
    let asked = request(vec![Message::user("hi")]);
    let cut = tokio::time::timeout(Duration::from_millis(1), ask(&model, &asked)).await;
    assert!(cut.is_err());
    assert_eq!(model.play.lock().unwrap().position, Some(0));
}

#[test]
fn errors_name_file_line_and_cure() {
    let scripts = [
        "steps:\n  - say: a\n    shout: b\n",
        "steps:\n  - say: a\n    stop: enough\n",
        "steps:\n  - say: a\n    fail: sometimes\n",
        "steps:\n  - say: a\n    fail: { status: high }\n",
        "steps:\n  - calls:\n      - tool: x\n        input: [1]\n",
        "steps:\n  - calls:\n      - tool: x\n        input: {}\n        malformed: y\n",
        "steps:\n  - say: [a\n",
        "steps: []\n",
        "name: x\n",
    ];
    let errors = scripts.map(|text| Scripted::from_str("demo.yaml", text).unwrap_err().to_string());
    let cure = "; correct it there (a step holds say, think, calls, usage, stop, expect, fail and delay_ms)";
    let lines = errors.map(|error| error.strip_suffix(cure).map(|words| format!("{words}\n")).unwrap());
    expect![[r#"
        the script demo.yaml, line 3, column 5: unknown field `shout`, expected one of say, think, calls, usage, stop, expect, fail, delay_ms
        the script demo.yaml, line 3, column 11: unknown variant `enough`, expected one of end_turn, tool_use, max_tokens, refusal, pause
        the script demo.yaml, line 3, column 5: invalid value: string "sometimes", expected broken, unreachable, or { status: 429, message: "…" }
        the script demo.yaml, line 3, column 21: invalid u16
        the script demo.yaml, line 3, column 9: the input of x is no mapping; write it as { key: value }, or as malformed
        the script demo.yaml, line 3, column 9: the call of x has input and malformed; keep one of them
        the script demo.yaml, line 2, column 10: expected string scalar
        the script demo.yaml: it has no steps, so it could answer nothing
        the script demo.yaml, line 1, column 1: missing field `steps`
    "#]].assert_eq(&lines.concat());
    let error = Scripted::from_file(Path::new("/nowhere/demo.yaml")).unwrap_err().to_string();
    assert_eq!(error, "cannot read the script /nowhere/demo.yaml: it does not exist; check its path");
}

#[tokio::test]
async fn it_says_that_it_is_a_script() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "steps: [{ say: a }]").unwrap();
    let model = Scripted::from_file(file.path()).unwrap();
    assert_eq!(model.name(), format!("scripted:{}", file.path().display()));
    assert!(model.check().await.unwrap().ends_with("plays a script of 1 steps; no model is asked"));
}
