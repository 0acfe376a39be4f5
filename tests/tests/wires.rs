//! Both model wires over a socket: against our strict server, which judges each request and breaks its answers as
//! planned, and against aimock from npm, whose shapes nobody here wrote.

use astrarium::model::select::{Endpoints, open};
use astrarium::model::wire::{Key, Limits};
use astrarium::model::{Breakpoint, CacheLife, Model, ModelError, ModelEvent, Request, ToolChoice, ToolSpec};
use astrarium::transcript::{Block, Message, Origin, Part, Reply, Role, StopReason, Usage};
use astrarium_tests::aimock::Aimock;
use astrarium_tests::strict::{self, Form, Piece, Plan, Said, Strict, Wire};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpSocket;

const WIRES: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

/// Short enough that a planned stall ends, long enough for a busy machine.
fn limits() -> Limits {
    Limits { idle: Duration::from_secs(5), ..Limits::default() }
}

fn model(wire: Wire, endpoints: &Endpoints) -> Arc<dyn Model> {
    let name = match wire {
        Wire::Anthropic => "anthropic:strict-1",
        Wire::OpenAi => "openai:strict-1",
    };
    open(name, endpoints).expect("the endpoints are whole")
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Says something.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
            .into(),
    }
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        tools: [tool("get_weather"), tool("get_time")].into(),
        system: ["You are a test.".to_owned(), "Be brief.".to_owned()].into(),
        messages: messages.into_iter().map(Into::into).collect(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: 500,
        breakpoints: vec![Breakpoint::Tools, Breakpoint::System(1), Breakpoint::Message(0)],
        cache_life: CacheLife::default(),
    }
}

async fn ask(model: &dyn Model, request: &Request) -> (Vec<ModelEvent>, Result<Reply, ModelError>) {
    let mut events = Vec::new();
    let reply = model.ask(request, &mut |event| events.push(event)).await;
    (events, reply)
}

fn answered(reply: &Reply) -> Message {
    Message { role: Role::Assistant, origin: Origin::Model, content: reply.content.clone() }
}

fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Block {
    Block::ToolResult { id: id.to_owned(), parts, is_error }
}

/// An answer with all that a model can say.
fn everything() -> Said {
    Said::new([
        Piece::Thinking("Zürich lies in Europe. 晴れ?", "EqQBCgIYAhIM"),
        Piece::Redacted("EmwKAhgBEgy3"),
        Piece::Text("Let me look it up, 少し待って 👍."),
        Piece::Call("toolu_01", "get_weather", "{\"city\": \"Zürich\", \"days\": [1, 2]}"),
        Piece::Call("toolu_02", "get_time", "{\"city\": "),
        Piece::Call("toolu_03", "get_time", ""),
    ])
    .usage(strict::Usage { input: 100, output: 42, cache_read: 7, cache_write: 0 })
}

/// Checks that `reply` says [`everything`], and that what was streamed adds up to it.
#[track_caller]
fn assert_everything(wire: Wire, events: &[ModelEvent], reply: &Reply) {
    let signed = wire == Wire::Anthropic;
    let thinking = "Zürich lies in Europe. 晴れ?".to_owned();
    let signature = signed.then(|| "EqQBCgIYAhIM".to_owned());
    let text = "Let me look it up, 少し待って 👍.".to_owned();
    let call = |id: &str, name: &str, input, malformed: Option<&str>| Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
        malformed: malformed.map(str::to_owned),
    };
    let mut content = vec![
        Block::Thinking { text: thinking.clone(), signature, redacted: None },
        Block::Thinking { text: String::new(), signature: None, redacted: Some("EmwKAhgBEgy3".to_owned()) },
        Block::Text { text: text.clone() },
        call("toolu_01", "get_weather", json!({"city": "Zürich", "days": [1, 2]}), None),
        call("toolu_02", "get_time", json!({}), Some("{\"city\": ")),
        call("toolu_03", "get_time", json!({}), None),
    ];
    if !signed {
        content.remove(1);
    }
    assert_eq!(reply.content, content);
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(reply.usage, Usage { input: 100, output: 42, cache_read: 7, cache_write: 0 });
    assert_eq!(reply.model, "strict-1");
    let mut streamed = (String::new(), String::new(), Vec::new());
    for event in events {
        match event {
            ModelEvent::Thinking(more) => streamed.0.push_str(more),
            ModelEvent::Text(more) => streamed.1.push_str(more),
            ModelEvent::ToolUse { name } => streamed.2.push(name.as_str()),
            other => panic!("a wire does not recover: {other:?}"),
        }
    }
    assert_eq!(streamed, (thinking, text, vec!["get_weather", "get_time", "get_time"]));
    assert!(events.len() > 10, "it streams in pieces: {events:?}");
}

#[tokio::test]
async fn a_conversation_with_tools_and_reasoning_goes_round() {
    for wire in WIRES {
        let server = Strict::start().await;
        let model = model(wire, &server.endpoints(limits()));
        server.plan(everything());
        server.plan(Said::new([Piece::Text("It rains.")]));

        let picture = Block::Image { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() };
        let mut first = Message::user("what is the weather?");
        first.content.push(picture);
        let mut request = request(vec![first]);
        let (events, reply) = ask(&*model, &request).await;
        let reply = reply.unwrap();
        assert_everything(wire, &events, &reply);

        request.messages.push(answered(&reply).into());
        request.messages.push(Arc::new(Message {
            role: Role::User,
            origin: Origin::Tools,
            content: vec![
                result(
                    "toolu_01",
                    vec![
                        Part::Json { value: json!({"degrees": 21}).into() },
                        Part::Image { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() },
                    ],
                    false,
                ),
                result("toolu_02", vec![Part::Text { text: "the arguments are no JSON object".to_owned() }], true),
                result("toolu_03", vec![], false),
            ],
        }));
        request.messages.push(Message::host("<system-reminder>be brief</system-reminder>").into());
        request.tool_choice = ToolChoice::None;
        let (_, reply) = ask(&*model, &request).await;
        let reply = reply.unwrap();
        assert_eq!(reply.content, [Block::Text { text: "It rains.".to_owned() }]);
        assert_eq!(reply.stop, StopReason::EndTurn);

        assert_eq!(server.violations(), [""; 0], "{wire:?}");
        assert_eq!((server.requests().len(), server.unused()), (2, 0));
        let body = server.requests()[1].to_string();
        assert!(!body.contains("reasoning_content"), "{body}");
    }
}

#[tokio::test]
async fn every_form_of_a_stream_reads_the_same() {
    let forms = [
        Form { crlf: true, ..Form::default() },
        Form { comments: true, ..Form::default() },
        Form { tight: true, ..Form::default() },
        Form { chunk: Some(1), ..Form::default() },
        Form { chunk: Some(7), crlf: true, comments: true, tight: true, ..Form::default() },
    ];
    for wire in WIRES {
        let server = Strict::start().await;
        let model = model(wire, &server.endpoints(limits()));
        for form in &forms {
            server.plan(everything().form(form.clone()));
            let (events, reply) = ask(&*model, &request(vec![Message::user("hi")])).await;
            let reply = reply.unwrap_or_else(|error| panic!("{wire:?} {form:?}: {error}"));
            assert_everything(wire, &events, &reply);
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_broken_wherever_it_is_cut() {
    for wire in WIRES {
        let server = Strict::start().await;
        let model = model(wire, &server.endpoints(limits()));
        let said = Said::new([Piece::Text("晴れ"), Piece::Call("toolu_01", "get_time", "{\"city\":\"Zürich\"}")]);
        let bytes = said.bytes(wire);
        // From here on the answer is whole: what says so has been read.
        let end = match wire {
            Wire::Anthropic => bytes.len(),
            Wire::OpenAi => find(&bytes, b"\"finish_reason\":\"tool_calls\"}]}\n\n"),
        };
        for cut in (0..end).step_by(41).chain([end - 1]) {
            for form in [Form { cut: Some(cut), ..Form::default() }, Form { end: Some(cut), ..Form::default() }] {
                server.plan(said.clone().form(form.clone()));
                let (_, reply) = ask(&*model, &request(vec![Message::user("hi")])).await;
                assert!(matches!(reply, Err(ModelError::Broken { .. })), "{wire:?} {form:?}: {reply:?}");
            }
        }
        server.plan(said.form(Form { cut: Some(end), ..Form::default() }));
        let (_, reply) = ask(&*model, &request(vec![Message::user("hi")])).await;
        assert_eq!(reply.unwrap().stop, StopReason::ToolUse, "{wire:?}");
    }
}

/// The place behind `needle`.
fn find(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).expect("it is there") + needle.len()
}

/// What the wire says when the server answers with `plan`.
async fn error_of(wire: Wire, plan: impl Into<Plan>, limits: Limits) -> (ModelError, String) {
    let server = Strict::start().await;
    server.plan(plan);
    let model = model(wire, &server.endpoints(limits));
    let (_, reply) = ask(&*model, &request(vec![Message::user("hi")])).await;
    let error = reply.expect_err("the plan is a fault");
    let words = error.to_string().replace(server.address(), "http://server");
    assert_eq!(server.violations(), [""; 0]);
    (error, words)
}

fn url(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "http://server/v1/messages",
        Wire::OpenAi => "http://server/v1/chat/completions",
    }
}

#[tokio::test]
async fn a_status_says_what_and_what_to_do() {
    let (key, address) = (["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]);
    for (wire, (key, address)) in WIRES.into_iter().zip(key.into_iter().zip(address)) {
        let faults = [
            (400, "invalid_request_error", "change what the server names"),
            (401, "authentication_error", key),
            (403, "permission_error", key),
            (404, "not_found_error", address),
            (413, "request_too_large", "send less"),
            (429, "rate_limit_error", "wait, or check the account's quota"),
            (500, "api_error", "try again later"),
            (529, "overloaded_error", "try again later"),
        ];
        for (status, kind, cure) in faults {
            let message = "x".repeat(600);
            let retry_after = (status == 429).then_some("7");
            let (error, words) = error_of(wire, Plan::Status { status, kind, message, retry_after }, limits()).await;
            let start = format!("{} answered {status} ({kind}): {}…; ", url(wire), "x".repeat(500));
            assert!(words.starts_with(&start) && words.contains(cure), "{words}");
            let ModelError::Status { status: said, retry_after: wait, .. } = error else { panic!("{error:?}") };
            assert_eq!((said, wait), (status, (status == 429).then_some(7.0)));
        }
        let page = Plan::Raw { status: 502, content_type: "text/html", body: "<h1>Bad\nGateway</h1>".to_owned() };
        let (_, words) = error_of(wire, page, limits()).await;
        assert_eq!(words, format!("{} answered 502: <h1>Bad Gateway</h1>; try again later", url(wire)));
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_has_its_documented_status() {
    for wire in WIRES {
        let error = Some((3, "rate_limit_error", "slow down"));
        let plan = everything().form(Form { error, ..Form::default() });
        let (error, words) = error_of(wire, plan, limits()).await;
        assert!(matches!(error, ModelError::Status { status: 429, .. }), "{error:?}");
        let url = url(wire);
        assert_eq!(
            words,
            format!("{url} answered 429 (rate_limit_error): slow down; wait, or check the account's quota")
        );
    }
    let plan = everything().form(Form { error: Some((3, "overloaded_error", "Overloaded")), ..Form::default() });
    let (error, _) = error_of(Wire::Anthropic, plan, limits()).await;
    assert!(matches!(error, ModelError::Status { status: 529, .. }), "{error:?}");
}

#[tokio::test]
async fn what_is_no_stream_of_events_is_told_with_the_cure() {
    for wire in WIRES {
        let page = Plan::Raw { status: 200, content_type: "text/html", body: "<h1>Welcome</h1>".to_owned() };
        let (_, words) = error_of(wire, page, limits()).await;
        assert_eq!(
            words,
            format!(
                "the answer of {} is none: it is text/html and no event stream (<h1>Welcome</h1>), so check the base URL",
                url(wire)
            )
        );
        let noise = Plan::Raw { status: 200, content_type: "text/event-stream", body: "data: {\"a\n\n".to_owned() };
        let (error, _) = error_of(wire, noise, limits()).await;
        assert!(matches!(error, ModelError::Broken { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_without_its_end_says_which_is_missing() {
    for (wire, end) in WIRES.into_iter().zip(["it ended before message_stop", "it ended without a finish_reason"]) {
        let (_, words) = error_of(wire, everything().form(Form { end: Some(900), ..Form::default() }), limits()).await;
        assert!(words.contains(end), "{words}");
    }
    // A proxy whose upstream failed says goodbye all the same.
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}]}\n\ndata: [DONE]\n\n".to_owned();
    let goodbye = Plan::Raw { status: 200, content_type: "text/event-stream", body };
    let (_, words) = error_of(Wire::OpenAi, goodbye, limits()).await;
    assert!(words.contains("it ended without a finish_reason"), "{words}");
}

#[tokio::test]
async fn a_stall_ends() {
    for wire in WIRES {
        let short = Limits { idle: Duration::from_millis(500), ..Limits::default() };
        let plan = everything().form(Form { stall: Some(700), ..Form::default() });
        let (error, words) = error_of(wire, plan, short).await;
        assert!(matches!(error, ModelError::Broken { .. }), "{error:?}");
        assert!(words.contains("broke off: nothing came for 0.5 s; "), "{words}");
    }
}

#[tokio::test]
async fn a_flood_in_one_event_ends() {
    for wire in WIRES {
        let small = Limits { event_bytes: 1000, ..limits() };
        let body = format!("data: {}", "x".repeat(5000));
        let plan = Plan::Raw { status: 200, content_type: "text/event-stream", body };
        let (_, words) = error_of(wire, plan, small).await;
        assert!(words.contains("one event is larger than 1000 bytes"), "{words}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    // Bound and not listening: connections are refused, and nobody else gets the port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", socket.local_addr().unwrap());
    let endpoints = Endpoints {
        anthropic_key: Some(Key::new(strict::KEY)),
        anthropic_base: Some(address.clone()),
        openai_base: Some(address.clone()),
        ..Endpoints::default()
    };
    for wire in WIRES {
        let model = model(wire, &endpoints);
        let (_, reply) = ask(&*model, &request(vec![Message::user("hi")])).await;
        let error = reply.expect_err("nobody listens");
        assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
        let words = error.to_string();
        assert!(words.starts_with(&format!("cannot reach {address}/v1/")) && words.contains("refused"), "{words}");
        assert!(matches!(model.check().await, Err(ModelError::Unreachable { .. })));
    }
}

#[tokio::test]
async fn a_check_costs_nothing_and_knows_a_wrong_key() {
    let server = Strict::start().await;
    let mut endpoints = server.endpoints(limits());
    for wire in WIRES {
        let line = model(wire, &endpoints).check().await.unwrap();
        assert_eq!(line, format!("{}/v1/models accepts the key; strict-1 is one of its 1 models", server.address()));
    }
    let line = open("openai:other", &endpoints).unwrap().check().await.unwrap();
    assert!(line.contains("other is not among the 1 models"), "{line}");
    assert_eq!((server.requests().len(), server.violations()), (0, vec![]));
    endpoints.anthropic_key = Some(Key::new("sk-wrong-hunter22"));
    endpoints.openai_key = endpoints.anthropic_key.clone();
    for (wire, variable) in WIRES.into_iter().zip(["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]) {
        let model = model(wire, &endpoints);
        let error = model.check().await.expect_err("the key is wrong");
        let (_, reply) = ask(&*model, &request(vec![Message::user("hi")])).await;
        for error in [error, reply.expect_err("the key is wrong")] {
            assert!(matches!(error, ModelError::Status { status: 401, .. }), "{error:?}");
            let words = format!("{error} {error:?}");
            assert!(words.contains(variable) && !words.contains("hunter22"), "{words}");
        }
    }
}

#[tokio::test]
async fn the_server_notices_a_conversation_that_breaks_the_rules() {
    for wire in WIRES {
        let server = Strict::start().await;
        let model = model(wire, &server.endpoints(limits()));
        let orphan =
            Message { role: Role::User, origin: Origin::Tools, content: vec![result("nobody", vec![], false)] };
        let (_, reply) = ask(&*model, &request(vec![orphan])).await;
        let error = reply.expect_err("an orphan is refused");
        assert!(matches!(error, ModelError::Status { status: 400, .. }), "{error:?}");
        assert_eq!(server.violations().len(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn aimock_understands_both_wires_and_they_understand_it() {
    let fixtures = vec![
        json!({"match": {"userMessage": "weather", "hasToolResult": false}, "response": {
            "reasoning": "The user wants the weather.",
            "content": "Let me look it up, 少し待って.",
            "toolCalls": [{"id": "call_w", "name": "get_weather", "arguments": {"city": "Zürich"}}],
        }}),
        json!({"match": {"toolCallId": "call_w"}, "response": {"content": "It is 21 °C in Zürich. 晴れ"}}),
        json!({"match": {"userMessage": "too fast"}, "response": {
            "status": 429, "error": {"message": "Rate limited", "type": "rate_limit_error"},
        }}),
    ];
    let aimock = Aimock::start(fixtures).await;
    let base = &aimock.address;
    let endpoints = Endpoints {
        anthropic_key: Some(Key::new("mock")),
        anthropic_base: Some(base.clone()),
        openai_base: Some(base.clone()),
        limits: limits(),
        ..Endpoints::default()
    };
    for name in ["anthropic:claude-sonnet-4-5", "openai:gpt-5"] {
        let model = open(name, &endpoints).unwrap();
        let mut request = request(vec![Message::user("what is the weather?")]);
        let (events, reply) = ask(&*model, &request).await;
        let reply = reply.unwrap();
        assert_eq!(reply.stop, StopReason::ToolUse, "{name}");
        assert!(events.len() > 10, "{name} streams in pieces: {events:?}");
        let [
            Block::Thinking { text: thinking, .. },
            Block::Text { text },
            Block::ToolUse { id, name: tool, input, malformed },
        ] = &reply.content[..]
        else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(
            (thinking.as_str(), text.as_str()),
            ("The user wants the weather.", "Let me look it up, 少し待って.")
        );
        assert_eq!((tool.as_str(), input, malformed), ("get_weather", &json!({"city": "Zürich"}), &None));

        let results = vec![result(id, vec![Part::Text { text: "21".to_owned() }], false)];
        request.messages.push(answered(&reply).into());
        request.messages.push(Message { role: Role::User, origin: Origin::Tools, content: results }.into());
        let (_, reply) = ask(&*model, &request).await;
        let reply = reply.unwrap();
        assert_eq!(reply.content, [Block::Text { text: "It is 21 °C in Zürich. 晴れ".to_owned() }], "{name}");
        assert_eq!(reply.stop, StopReason::EndTurn, "{name}");

        request.messages = vec![Message::user("too fast").into()];
        let (_, reply) = ask(&*model, &request).await;
        let error = reply.expect_err("a fixture says so");
        assert!(matches!(error, ModelError::Status { status: 429, .. }), "{name}: {error:?}");
        assert!(error.to_string().contains("Rate limited"), "{name}: {error}");
        let line = model.check().await.unwrap();
        assert!(line.contains("/v1/models"), "{line}");
    }
}
