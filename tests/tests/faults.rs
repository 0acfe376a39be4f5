//! The fault table: what a server or a network can do to a question, on both wires, and that the answer comes all the same,
//! or the error that stands.
//!
//! The strict server judges every request, so a question that is asked again must be as good as the first. aimock, whose
//! faults nobody here wrote, breaks off and refuses too.

use astrarium::model::recover::{Policy, Recovering};
use astrarium::model::select::{Endpoints, open};
use astrarium::model::windows::too_long;
use astrarium::model::wire::{Key, Limits};
use astrarium::model::{CacheLife, Model, ModelError, ModelEvent, Request, ToolChoice, ToolSpec};
use astrarium::transcript::{Block, Message, Reply, StopReason};
use astrarium_tests::aimock::Aimock;
use astrarium_tests::strict::{Form, Piece, Plan, Said, Strict, Wire};
use futures::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpSocket;

const WIRES: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

/// Waits that end at once; the rules of waiting are tested beside them, under a clock moved by hand.
fn quick() -> Policy {
    Policy { attempts: 4, first_wait_ms: 1, longest_wait_ms: 2, ..Policy::default() }
}

fn model(wire: Wire, endpoints: &Endpoints) -> Recovering {
    let name = match wire {
        Wire::Anthropic => "anthropic:strict-1",
        Wire::OpenAi => "openai:strict-1",
    };
    Recovering::new(open(name, endpoints).expect("the endpoints are whole"), None, quick())
}

fn limits() -> Limits {
    Limits { idle: Duration::from_secs(5), ..Limits::default() }
}

fn request(messages: Vec<Message>) -> Request {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    Request {
        tools: vec![ToolSpec { name: "get_time".into(), description: "Tells.".into(), input_schema: schema.into() }]
            .into(),
        system: ["You are a test.".to_owned()].into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: 500,
        breakpoints: vec![],
        cache_life: CacheLife::Short,
    }
}

/// What a person has seen in the end: text since it was last withdrawn, and how often it was.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    text: String,
    calls: usize,
    withdrawn: usize,
    waits: usize,
}

async fn ask(model: &dyn Model, request: &Request) -> (Seen, Result<Reply, ModelError>) {
    let mut seen = Seen::default();
    let mut attempt = 1;
    let reply = model
        .ask(request, &mut |event| match event {
            ModelEvent::Text(text) => seen.text.push_str(&text),
            ModelEvent::ToolUse { .. } => seen.calls += 1,
            ModelEvent::Withdrawn => {
                seen = Seen { withdrawn: seen.withdrawn + 1, waits: seen.waits, ..Seen::default() };
            }
            ModelEvent::Waiting { attempt: next, .. } => {
                seen.waits += usize::from(next != attempt);
                attempt = next;
            }
            ModelEvent::Thinking(_) | ModelEvent::Fallback { .. } => {}
        })
        .await;
    (seen, reply)
}

fn said() -> Said {
    Said::new([Piece::Text("晴れ, wait."), Piece::Call("toolu_01", "get_time", "{\"city\":\"Zürich\"}")])
}

/// Asserts that the question is answered whole after one fault, and that the text that stands was shown once.
#[track_caller]
fn assert_whole(row: &str, seen: &Seen, reply: Result<Reply, ModelError>) {
    let reply = reply.unwrap_or_else(|error| panic!("{row}: {error}"));
    assert_eq!((seen.text.as_str(), seen.calls), ("晴れ, wait.", 1), "{row}");
    let [Block::Text { text }, Block::ToolUse { input, .. }] = &reply.content[..] else { panic!("{row}: {reply:?}") };
    assert_eq!((text.as_str(), input), ("晴れ, wait.", &json!({ "city": "Zürich" })), "{row}");
}

fn status(status: u16, retry_after: Option<&'static str>) -> Plan {
    Plan::Status { status, kind: "api_error", message: "planned".into(), retry_after }
}

#[tokio::test]
async fn each_status_that_may_pass_is_asked_again_and_no_other() {
    for wire in WIRES {
        for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            let server = Strict::start().await;
            server.plan(status(code, (code == 429).then_some("0")));
            server.plan(said());
            let (seen, reply) =
                ask(&model(wire, &server.endpoints(limits())), &request(vec![Message::user("hi")])).await;
            assert_whole(&format!("{wire:?} {code}"), &seen, reply);
            assert_eq!((seen.withdrawn, seen.waits), (0, 1), "{wire:?} {code}");
            let sent = server.requests();
            assert_eq!(sent.len(), 2, "{wire:?} {code}");
            assert_eq!(sent[0], sent[1], "the same question");
            assert_eq!(server.violations(), [""; 0]);
        }
        for code in [400, 401, 402, 403, 404, 413, 422] {
            let server = Strict::start().await;
            server.plan(status(code, None));
            let (seen, reply) =
                ask(&model(wire, &server.endpoints(limits())), &request(vec![Message::user("hi")])).await;
            assert!(matches!(reply, Err(ModelError::Status { status, .. }) if status == code), "{wire:?} {code}");
            assert_eq!((seen.waits, server.requests().len()), (0, 1), "{wire:?} {code}");
        }
    }
}

#[tokio::test]
async fn wherever_a_stream_is_cut_the_answer_comes_whole_and_once() {
    for wire in WIRES {
        let bytes = said().bytes(wire);
        let word = "晴".as_bytes();
        assert!(bytes.windows(3).any(|window| window == word), "cuts fall inside of characters too");
        let end = match wire {
            Wire::Anthropic => bytes.len(),
            Wire::OpenAi => {
                let finish = b"\"finish_reason\":\"tool_calls\"}]}\n\n";
                bytes.windows(finish.len()).position(|window| window == finish).expect("it is there")
            }
        };
        // Each byte once, on servers side by side: what takes time is the wait before the question is asked again.
        join_all((0..LANES).map(|lane| cut_at(wire, (lane..end).step_by(LANES)))).await;
    }
}

/// Servers side by side.
const LANES: usize = 64;

async fn cut_at(wire: Wire, cuts: impl Iterator<Item = usize>) {
    let server = Strict::start().await;
    let model = model(wire, &server.endpoints(limits()));
    for cut in cuts {
        for form in [Form { cut: Some(cut), ..Form::default() }, Form { end: Some(cut), ..Form::default() }] {
            let row = format!("{wire:?} {form:?}");
            server.plan(said().form(form));
            server.plan(said());
            let (seen, reply) = ask(&model, &request(vec![Message::user("hi")])).await;
            assert_whole(&row, &seen, reply);
            assert_eq!(seen.waits, 1, "{row}");
        }
    }
    assert_eq!((server.violations().len(), server.unused()), (0, 0));
}

#[tokio::test]
async fn what_a_stream_may_look_like_is_no_fault() {
    let forms = [
        Form { crlf: true, ..Form::default() },
        Form { tight: true, ..Form::default() },
        Form { comments: true, ..Form::default() },
        Form { chunk: Some(1), ..Form::default() },
        Form { chunk: Some(5), crlf: true, tight: true, comments: true, ..Form::default() },
    ];
    for wire in WIRES {
        let server = Strict::start().await;
        let model = model(wire, &server.endpoints(limits()));
        for form in &forms {
            server.plan(said().form(form.clone()));
            let (seen, reply) = ask(&model, &request(vec![Message::user("hi")])).await;
            assert_whole(&format!("{wire:?} {form:?}"), &seen, reply);
            assert_eq!((seen.waits, seen.withdrawn), (0, 0), "{wire:?} {form:?}");
        }
    }
}

#[tokio::test]
async fn an_error_after_a_good_start_a_stall_and_noise_are_asked_again() {
    for wire in WIRES {
        let faults: Vec<(&str, Plan)> = vec![
            (
                "an error event",
                said().form(Form { error: Some((5, "overloaded_error", "busy")), ..Form::default() }).into(),
            ),
            ("a stall", said().form(Form { stall: Some(700), ..Form::default() }).into()),
            ("noise", Plan::Raw { status: 200, content_type: "text/event-stream", body: "data: {\"a\n\n".into() }),
            ("nothing", Plan::Raw { status: 200, content_type: "text/event-stream", body: String::new() }),
            ("a page of a proxy", Plan::Raw { status: 502, content_type: "text/html", body: "<h1>Bad</h1>".into() }),
        ];
        let short = Limits { idle: Duration::from_millis(400), ..Limits::default() };
        for (row, plan) in faults {
            let server = Strict::start().await;
            server.plan(plan);
            server.plan(said());
            let (seen, reply) = ask(&model(wire, &server.endpoints(short)), &request(vec![Message::user("hi")])).await;
            assert_whole(&format!("{wire:?} {row}"), &seen, reply);
            assert_eq!((seen.waits, server.violations().len()), (1, 0), "{wire:?} {row}");
        }
        let server = Strict::start().await;
        let kind = "invalid_request_error";
        server.plan(said().form(Form { error: Some((5, kind, "prompt is too long")), ..Form::default() }));
        let (seen, reply) = ask(&model(wire, &server.endpoints(limits())), &request(vec![Message::user("hi")])).await;
        assert!(matches!(reply, Err(ModelError::Status { status: 400, .. })), "{reply:?}");
        assert_eq!((seen.waits, seen.withdrawn), (0, 0), "{wire:?}: what stands is told at once");
    }
}

#[tokio::test]
async fn a_refused_connection_is_tried_until_somebody_listens() {
    for wire in WIRES {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = format!("http://{}", socket.local_addr().unwrap());
        let endpoints = Endpoints {
            anthropic_key: Some(Key::new(astrarium_tests::strict::KEY)),
            anthropic_base: Some(address.clone()),
            openai_key: Some(Key::new(astrarium_tests::strict::KEY)),
            openai_base: Some(address),
            ..Endpoints::default()
        };
        let model = model(wire, &endpoints);
        let (mut socket, mut server) = (Some(socket), None);
        let mut text = String::new();
        let request = request(vec![Message::user("hi")]);
        let mut on_event = |event| match event {
            ModelEvent::Waiting { .. } => {
                if let Some(socket) = socket.take() {
                    let started = Strict::on(socket.listen(16).unwrap());
                    started.plan(Said::new([Piece::Text("here")]));
                    server = Some(started);
                }
            }
            ModelEvent::Text(more) => text.push_str(&more),
            _ => {}
        };
        let reply = model.ask(&request, &mut on_event).await;
        assert_eq!(reply.unwrap().content, [Block::Text { text: "here".into() }], "{wire:?}");
        assert_eq!((text.as_str(), server.unwrap().requests().len()), ("here", 1));
    }
}

#[tokio::test]
async fn ids_that_come_twice_are_made_unique_for_the_next_question() {
    for wire in WIRES {
        let server = Strict::start().await;
        let model = model(wire, &server.endpoints(limits()));
        let twice = || {
            let call = Piece::Call("toolu_01", "get_time", "{\"city\":\"Zürich\"}");
            Said::new([call.clone(), call])
        };
        let mut request = request(vec![Message::user("hi")]);
        for _ in 0..2 {
            server.plan(twice());
            let (_, reply) = ask(&model, &request).await;
            let content = reply.unwrap().content;
            let results = content.iter().filter_map(|block| match block {
                Block::ToolUse { id, .. } => Some(Block::ToolResult { id: id.clone(), parts: vec![], is_error: false }),
                _ => None,
            });
            let results: Vec<Block> = results.collect();
            assert_eq!(results.len(), 2);
            let (role, origin) = (astrarium::transcript::Role::Assistant, astrarium::transcript::Origin::Model);
            request.messages.push(Arc::new(Message { role, origin, content }));
            let (role, origin) = (astrarium::transcript::Role::User, astrarium::transcript::Origin::Tools);
            request.messages.push(Arc::new(Message { role, origin, content: results }));
        }
        server.plan(Said::new([Piece::Text("done")]));
        ask(&model, &request).await.1.unwrap();
        assert_eq!(server.violations(), [""; 0], "{wire:?}");
    }
}

#[tokio::test]
async fn a_call_whose_json_never_ends_is_malformed_at_the_limit_and_broken_beyond_all_bounds() {
    for wire in WIRES {
        let server = Strict::start().await;
        let open_call = || Said::new([Piece::Call("toolu_01", "get_time", "{\"city\": \"Zürich, Zürich, Zürich")]);
        server.plan(open_call().at_limit());
        let (_, reply) = ask(&model(wire, &server.endpoints(limits())), &request(vec![Message::user("hi")])).await;
        let reply = reply.unwrap();
        assert_eq!(reply.stop, StopReason::MaxTokens);
        let [Block::ToolUse { input, malformed: Some(raw), .. }] = &reply.content[..] else { panic!("{reply:?}") };
        assert_eq!(
            (input, raw.as_str()),
            (&Value::Object(serde_json::Map::new()), "{\"city\": \"Zürich, Zürich, Zürich")
        );

        let small = Limits { answer_bytes: 600, ..limits() };
        for _ in 0..4 {
            server.plan(open_call());
        }
        let (_, reply) = ask(&model(wire, &server.endpoints(small)), &request(vec![Message::user("hi")])).await;
        let error = reply.unwrap_err().to_string();
        assert!(error.contains("goes on past 600 bytes") && error.contains("(after 4 tries)"), "{error}");
    }
}

#[tokio::test]
async fn three_overloads_bring_the_fallback_over_the_wire() {
    let (busy, other) = (Strict::start().await, Strict::start().await);
    for _ in 0..3 {
        busy.plan(status(529, None));
    }
    other.plan(said());
    let first = open("anthropic:strict-1", &busy.endpoints(limits())).unwrap();
    let second = open("openai:strict-1", &other.endpoints(limits())).unwrap();
    let model = Recovering::new(first, Some(second), quick());
    let (seen, reply) = ask(&model, &request(vec![Message::user("hi")])).await;
    assert_whole("fallback", &seen, reply);
    assert_eq!((busy.requests().len(), other.requests().len()), (3, 1));
    assert_eq!((busy.violations().len(), other.violations().len()), (0, 0));
}

#[tokio::test]
async fn aimock_fails_first_and_breaks_off_and_is_asked_again() {
    let turns = |message: &str, first: Value| {
        let matched = |index: u32| json!({ "userMessage": message, "sequenceIndex": index });
        let mut first = first;
        first["match"] = matched(0);
        [first, json!({ "match": matched(1), "response": { "content": "It is whole, 晴れ." } })]
    };
    let error =
        |status: u16| json!({ "response": { "status": status, "error": { "message": "busy", "type": "api_error" } } });
    let cut = json!({ "response": { "content": "It will break off somewhere here." }, "truncateAfterChunks": 3 });
    let statuses = [408, 409, 425, 429, 500, 502, 503, 504, 529];
    let mut rows: Vec<(String, Value)> =
        statuses.iter().map(|code| (format!("status {code}."), error(*code))).collect();
    rows.push(("broken".into(), cut));
    let lasting = [(400, "invalid"), (401, "bad key"), (403, "forbidden"), (404, "no model"), (413, "too large")];
    let mut fixtures = Vec::new();
    for wire in ["anthropic", "openai"] {
        for (row, first) in &rows {
            fixtures.extend(turns(&format!("{wire} {row}"), first.clone()));
        }
        for (code, words) in lasting {
            let response = json!({ "status": code, "error": { "message": words, "type": "invalid_request_error" } });
            fixtures
                .push(json!({ "match": { "userMessage": format!("{wire} lasting {code}.") }, "response": response }));
        }
    }
    let aimock = Aimock::start(fixtures).await;
    let endpoints = Endpoints {
        anthropic_key: Some(Key::new("mock")),
        anthropic_base: Some(aimock.address.clone()),
        openai_base: Some(aimock.address.clone()),
        limits: limits(),
        ..Endpoints::default()
    };
    for (wire, name) in [("anthropic", "anthropic:claude-sonnet-4-5"), ("openai", "openai:gpt-5")] {
        let model: Arc<dyn Model> = Arc::new(Recovering::new(open(name, &endpoints).unwrap(), None, quick()));
        for (row, _) in &rows {
            let (seen, reply) = ask(&*model, &request(vec![Message::user(format!("{wire} {row}"))])).await;
            let reply = reply.unwrap_or_else(|error| panic!("{wire} {row}: {error}"));
            assert_eq!(reply.content, [Block::Text { text: "It is whole, 晴れ.".into() }], "{wire} {row}");
            assert_eq!((seen.text.as_str(), seen.waits), ("It is whole, 晴れ.", 1), "{wire} {row}");
        }
        for (code, words) in lasting {
            let asked = request(vec![Message::user(format!("{wire} lasting {code}."))]);
            let (seen, reply) = ask(&*model, &asked).await;
            let error = reply.unwrap_err();
            assert!(matches!(error, ModelError::Status { status, .. } if status == code), "{wire} {code}: {error}");
            assert!(error.to_string().contains(words) && seen.waits == 0, "{wire} {code}: {error}");
            assert_eq!(
                too_long(&error).is_some(),
                code == 413,
                "{wire} {code}: a request that is too large is compacted"
            );
        }
    }
}
