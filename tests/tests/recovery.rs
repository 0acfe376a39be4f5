//! Answers that come cut, broken or again and again: what was said is kept, what was cut is made again, and nothing runs that
//! did not arrive whole.

use astrarium::event::EndReason;
use astrarium::host::{Host, Which};
use astrarium::model::recover::{Policy, Recovering};
use astrarium::model::select;
use astrarium::model::wire::Limits;
use astrarium::session::Session;
use astrarium_tests::place::{Place, ask, play};
use astrarium_tests::strict::{Form, Piece, Plan, Said, Strict, Wire};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const WIRES: [(Wire, &str); 2] = [(Wire::Anthropic, "anthropic:strict-1"), (Wire::OpenAi, "openai:strict-1")];

fn place() -> Place {
    let place = Place::new();
    place.plugin("echo").config("language: en\ncontext_window: 200000\ngrants:\n- { plugin: echo, kv: true }\n");
    place
}

fn open(host: &Host, name: &str, server: &Strict) -> Session {
    let model = select::open(name, &server.endpoints(Limits::default())).unwrap();
    host.session(Which::New { title: "t" }, model).unwrap()
}

/// The limits of the answers that were asked for.
fn limits(server: &Strict, wire: Wire) -> Vec<u64> {
    let key = if wire == Wire::Anthropic { "max_tokens" } else { "max_completion_tokens" };
    let limit = |request: &Value| request.get(key).or(request.get("max_tokens")).and_then(Value::as_u64);
    server.requests().iter().filter_map(limit).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_cut_at_the_limit_does_not_run_and_is_made_again_under_a_higher_one() {
    for (wire, name) in WIRES {
        // Cut before the first letter of the arguments, and in their middle.
        for arguments in ["", "{\"text\":\"half of"] {
            let place = place();
            let host = place.host().await;
            let server = Strict::start().await;
            let mut session = open(&host, name, &server);
            let whole = Piece::Call("toolu_1", "echo", "{\"text\":\"the whole one\"}");
            server.plan(Said::new([whole, Piece::Call("toolu_2", "glob_files", arguments)]).at_limit());
            server.plan(Said::new([Piece::Call("toolu_3", "echo", "{\"text\":\"made again\"}")]));
            server.plan(Said::new([Piece::Text("done")]));
            let turn = ask(&mut session, "write", 10, &CancellationToken::new(), |_| {}).await;
            assert_eq!(turn.outcome.answer, "done", "{wire:?} {arguments:?} {:?}", turn.outcome.error);
            let echoed = turn.outputs("echo");
            let echoed: Vec<&str> = echoed.iter().filter_map(|output| output.lines().next()).collect();
            assert_eq!(echoed, ["the whole one", "made again"], "{wire:?}: what came whole ran, once");
            let cut = turn.outputs("glob_files").join("");
            assert!(cut.contains("are not a JSON object"), "{wire:?} {arguments:?} {cut}");
            assert_eq!(limits(&server, wire), [8_192, 32_768, 32_768], "{wire:?}");
            let told = server.requests()[1].to_string();
            assert!(told.contains("in the middle of its last call"), "{wire:?} {told}");
            assert_eq!(server.violations(), [""; 0], "{wire:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_cut_again_and_again_end_the_turn_with_an_answer() {
    let place = place();
    let host = place.host().await;
    let mut script = String::from("name: t\nat_limit: I give up\nsteps:\n");
    let cut =
        |text: &str| format!("- calls: [{{ tool: echo, malformed: '{{\"text\": \"{text}' }}]\n  stop: max_tokens\n");
    let cuts = |from: usize, to: usize| (from..to).map(|at| cut(&at.to_string())).collect::<String>();
    // One that arrives whole between them begins the count anew; the limit is raised only once.
    script.push_str(&cuts(0, 4));
    script.push_str("- calls: [{ tool: echo, input: { text: whole } }]\n");
    script.push_str(&cuts(4, 20));
    let (_, turn) = play(&host, &script, "write", 40).await;
    assert_eq!((turn.outcome.tool_calls, turn.outcome.reason), (9, EndReason::StepLimit));
    assert!(
        turn.outcome.answer.starts_with("I give up") && turn.outcome.answer.contains("cut at the output limit"),
        "{}",
        turn.outcome.answer
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_limit_that_the_server_has_no_room_for_is_taken_back_and_nothing_is_compacted() {
    for (wire, name) in WIRES {
        let place = place();
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = open(&host, name, &server);
        server.plan(Said::new([Piece::Text("one, ")]).at_limit());
        let message = "input length and `max_tokens` exceed context limit: 180000 + 32768 > 200000".to_owned();
        server.plan(Plan::Status { status: 400, kind: "invalid_request_error", message, retry_after: None });
        server.plan(Said::new([Piece::Text("two")]));
        let turn = ask(&mut session, "count", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "one, two", "{wire:?} {:?}", turn.outcome.error);
        assert_eq!(limits(&server, wire), [8_192, 32_768, 8_192], "{wire:?}");
        assert!(host.store.compactions(&session.id).unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_cut_at_its_limit_is_continued_under_a_higher_one() {
    for (wire, name) in WIRES {
        let place = place();
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = open(&host, name, &server);
        server.plan(Said::new([Piece::Text("one, ")]).at_limit());
        server.plan(Said::new([Piece::Text("two, ")]).at_limit());
        server.plan(Said::new([Piece::Text("three")]));
        let turn = ask(&mut session, "count", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "one, two, three", "{wire:?}");
        assert_eq!(server.violations(), [""; 0]);
        assert_eq!(limits(&server, wire), [8_192, 32_768, 32_768], "{wire:?}");

        for _ in 0..10 {
            server.plan(Said::new([Piece::Text("more ")]).at_limit());
        }
        let asked = server.requests().len();
        let turn = ask(&mut session, "and on", 20, &CancellationToken::new(), |_| {}).await;
        assert_eq!(server.requests().len() - asked, 5, "once raised, then continued three times");
        assert_eq!(turn.outcome.answer, "more ".repeat(5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_broken_answer_had_said_is_kept() {
    for (wire, name) in WIRES {
        let place = place();
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = open(&host, name, &server);
        let said = Said::new([Piece::Text("the first half "), Piece::Text("and the second")]);
        let bytes = String::from_utf8(said.bytes(wire)).unwrap();
        let end = if wire == Wire::Anthropic { "content_block_stop" } else { "\"finish_reason\":\"" };
        let cut = bytes.find(end).unwrap();
        server.plan(said.form(Form { cut: Some(cut), ..Form::default() }));
        let turn = ask(&mut session, "tell", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.reason, EndReason::Failed, "{wire:?}");
        let texts: Vec<String> = session.messages().iter().map(|message| message.text()).collect();
        assert!(texts.iter().any(|text| text.starts_with("the first half")), "{wire:?} {texts:?}");
        assert!(texts.last().unwrap().contains("broke off"), "{wire:?} {texts:?}");
        server.plan(Said::new([Piece::Text("whole now")]));
        let turn = ask(&mut session, "again", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!((turn.outcome.answer.as_str(), server.violations().len()), ("whole now", 0), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_an_answer_that_broke_off_runs_once_when_it_comes_whole() {
    for (wire, name) in WIRES {
        let place = place();
        let host = place.host().await;
        let server = Strict::start().await;
        let policy = Policy { first_wait_ms: 1, longest_wait_ms: 2, ..Policy::default() };
        let model = select::open(name, &server.endpoints(Limits::default())).unwrap();
        let model = Arc::new(Recovering::new(model, None, policy));
        let mut session = host.session(Which::New { title: "t" }, model).unwrap();
        let call = || Said::new([Piece::Text("adding"), Piece::Call("toolu_1", "kv_count", "{}")]);
        // Cut behind each half of the stream, the last time when nothing but its end is missing.
        let bytes = call().bytes(wire).len();
        let end = match wire {
            Wire::Anthropic => "event: message_stop",
            Wire::OpenAi => "\"finish_reason\":\"",
        };
        let text = String::from_utf8(call().bytes(wire)).unwrap();
        for cut in [bytes / 2, bytes * 3 / 4, text.find(end).unwrap()] {
            server.plan(call().form(Form { cut: Some(cut), ..Form::default() }));
        }
        server.plan(call());
        server.plan(Said::new([Piece::Text("added")]));
        let turn = ask(&mut session, "add one", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "added", "{wire:?} {:?}", turn.outcome.error);
        assert_eq!((turn.outputs("kv_count").len(), turn.outcome.tool_calls), (1, 1), "{wire:?}");
        assert!(turn.outputs("kv_count")[0].starts_with('1'), "{wire:?}: {:?}", turn.outputs("kv_count"));
        assert_eq!((server.requests().len(), server.violations().len()), (5, 0), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_an_answer_is_kept_when_later_tries_say_nothing() {
    for (wire, name) in WIRES {
        let place = place();
        let host = place.host().await;
        let server = Strict::start().await;
        let policy = Policy { attempts: 3, first_wait_ms: 1, longest_wait_ms: 2, ..Policy::default() };
        let model = select::open(name, &server.endpoints(Limits::default())).unwrap();
        let model = Arc::new(Recovering::new(model, None, policy));
        let mut session = host.session(Which::New { title: "t" }, model).unwrap();
        let said = Said::new([Piece::Text("the first half "), Piece::Text("and the second")]);
        let bytes = String::from_utf8(said.bytes(wire)).unwrap();
        let end = if wire == Wire::Anthropic { "content_block_stop" } else { "\"finish_reason\":\"" };
        server.plan(said.form(Form { cut: bytes.find(end), ..Form::default() }));
        for _ in 0..2 {
            let message = "busy".to_owned();
            server.plan(Plan::Status { status: 503, kind: "overloaded_error", message, retry_after: None });
        }
        let turn = ask(&mut session, "tell", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!((turn.outcome.reason, server.requests().len()), (EndReason::Failed, 3), "{wire:?}");
        let texts: Vec<String> = session.messages().iter().map(|message| message.text()).collect();
        assert!(texts.iter().any(|text| text.starts_with("the first half")), "{wire:?} {texts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_in_a_loop_is_told_and_then_stopped() {
    let place = place();
    let host = place.host().await;
    let mut script = String::from("name: loop\nat_limit: I give up\nsteps:\n");
    for _ in 0..40 {
        script.push_str("- calls: [{ tool: glob_files, input: { pattern: nothing } }]\n");
    }
    let (session, turn) = play(&host, &script, "find it", 40).await;
    assert_eq!((turn.outcome.tool_calls, turn.outcome.reason), (7, EndReason::StepLimit));
    assert!(turn.outcome.answer.starts_with("I give up") && turn.outcome.answer.contains("repeated"));
    let told = session.messages().iter().filter(|message| message.text().contains("the same call 5 times in a row"));
    assert_eq!(told.count(), 1);
}
