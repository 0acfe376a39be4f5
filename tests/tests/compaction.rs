//! Full windows: what a compaction leaves, that it helps, that hooks hear of it once, and that the record keeps everything.

use astrarium::compact::{Layer, Trigger};
use astrarium::compaction::{self, Failure, Work};
use astrarium::event::{EndReason, Event};
use astrarium::host::{Host, Which};
use astrarium::model::recover::{Policy, Recovering};
use astrarium::model::scripted::Scripted;
use astrarium::model::select;
use astrarium::model::wire::Limits;
use astrarium::session::Session;
use astrarium::store::{KvScope, Task, TaskStatus};
use astrarium::transcript::{Block, Message, Origin, Role, Usage};
use astrarium_tests::place::{Place, ask, play};
use astrarium_tests::strict::{Form, Piece, Plan, Said, Strict, Wire};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const WIRES: [(Wire, &str); 2] = [(Wire::Anthropic, "anthropic:strict-1"), (Wire::OpenAi, "openai:strict-1")];
const QUESTION: &str = "Always answer in French. Measure each of the fields and then name the brightest one.";

fn place(window: u64) -> Place {
    let place = Place::new();
    place.plugin("echo").plugin("compact-watch").config(&format!(
        "language: en\ncontext_window: {window}\ngrants:\n- {{ plugin: echo, kv: true }}\n- {{ plugin: compact-watch, kv: true }}\n"
    ));
    place
}

/// The laws of a conversation that any server accepts.
#[track_caller]
fn assert_whole(messages: &[Arc<Message>]) {
    assert_eq!(messages.first().map(|message| message.role), Some(Role::User));
    let mut waiting: HashSet<&str> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        assert!(!message.content.is_empty(), "message {at} is empty");
        let mut answered = HashSet::new();
        for block in &message.content {
            match block {
                Block::ToolResult { id, .. } => assert!(answered.insert(id.as_str()), "{id} is answered twice"),
                Block::Text { text } => assert!(!text.trim().is_empty(), "message {at} has a blank text"),
                _ => {}
            }
        }
        assert_eq!(answered, waiting, "calls before message {at} and its results");
        waiting = HashSet::new();
        for block in &message.content {
            if let Block::ToolUse { id, .. } = block {
                waiting.insert(id);
            }
        }
    }
    assert!(waiting.is_empty());
}

fn counted(host: &Host, session: &Session, key: &str) -> i64 {
    let scope = KvScope::Session(session.id.clone());
    let value = host.store.kv_get("compact-watch", &scope, key).unwrap();
    value.map_or(0, |value| String::from_utf8(value).unwrap().parse().unwrap())
}

fn shown(session: &Session) -> String {
    session.conversation().iter().map(|message| message.text()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_steps_in_a_small_window_end_and_still_know_what_was_asked() {
    const STEPS: u32 = 5_000;
    let place = place(20_000);
    let host = place.host().await;
    let mut script =
        String::from("name: long\nat_limit: \"<summary>1. Goal: fields. 2. Done: some.</summary>\"\nsteps:\n");
    for step in 0..STEPS {
        let text = format!("field {step}: {}", "measured ".repeat(20));
        writeln!(script, "- calls: [{{ tool: echo, input: {{ text: \"{text}\" }} }}]").unwrap();
    }
    script.push_str("- say: la plus brillante\n");
    let model = Arc::new(Scripted::from_str("long", &script).unwrap());
    let mut session = host.session(Which::New { title: "long" }, model).unwrap();
    let task = |id: &str, status| Task {
        id: id.into(),
        content: format!("the {id} task"),
        status,
        depends_on: vec![],
        assignee: None,
    };
    let tasks = [task("first", TaskStatus::Completed), task("open", TaskStatus::InProgress)];
    host.store.replace_tasks(&session.id, &tasks).unwrap();
    let turn = ask(&mut session, QUESTION, STEPS + 1, &CancellationToken::new(), |_| {}).await;
    assert_eq!((turn.outcome.reason, turn.outcome.error.as_deref()), (EndReason::Done, None));
    assert_eq!((turn.outcome.answer.as_str(), turn.outcome.tool_calls), ("la plus brillante", STEPS));
    assert_whole(session.conversation());

    let compactions = host.store.compactions(&session.id).unwrap();
    assert!(compactions.len() > 5, "{}", compactions.len());
    let due = session.window().due();
    for (at, done) in compactions.iter().enumerate() {
        assert_eq!(done.trigger, Trigger::Auto);
        assert!(done.layer.is_some(), "{done:?}");
        assert!(done.tokens_before >= due, "one that was not due: {done:?}");
        // Nothing but a fill leads to the next one: it begins well below and grows by many messages.
        assert!(done.tokens_after.unwrap() < due / 4 * 3, "{done:?}");
        if let Some(next) = compactions.get(at + 1) {
            assert!(next.messages_before >= done.messages + 10, "{done:?} {next:?}");
        }
    }
    let last = session.conversation().iter().rev().find(|message| message.origin == Origin::User);
    assert_eq!(last.unwrap().text(), QUESTION, "the last task, word for word");
    let shown = shown(&session);
    assert!(shown.contains("the open task"), "{shown}");
    let count = compactions.len() as i64;
    assert_eq!((counted(&host, &session, "pre"), counted(&host, &session, "post")), (count, count));
    // Nothing was taken off the record: each call and each result is there once beside the copies.
    let calls = session.said().flat_map(|message| &message.content);
    assert_eq!(calls.filter(|block| matches!(block, Block::ToolUse { .. })).count() as u32, STEPS);
}

fn text(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn echo(id: usize, words: &str) -> Plan {
    let input = json!({ "text": words });
    Said::new([Piece::Call(text(format!("toolu_{id}")), "echo", text(input.to_string()))]).into()
}

fn open(host: &Host, name: &str, server: &Strict) -> Session {
    let model = select::open(name, &server.endpoints(Limits::default())).unwrap();
    host.session(Which::New { title: "t" }, model).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_the_length_is_believed_and_the_answer_comes_all_the_same() {
    for (wire, name) in WIRES {
        let place = place(200_000);
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = open(&host, name, &server);
        for id in 0..12 {
            server.plan(echo(id, &format!("{id} {}", "measured ".repeat(300))));
        }
        let message = "prompt is too long: 208310 tokens > 24000 maximum".to_owned();
        server.plan(Plan::Status { status: 400, kind: "invalid_request_error", message, retry_after: None });
        server.plan(Said::new([Piece::Text("<summary>1. Goal: the brightest field</summary>")]));
        server.plan(Said::new([Piece::Text("c'est le champ 3")]));
        let turn = ask(&mut session, QUESTION, 30, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "c'est le champ 3", "{wire:?} {:?}", turn.outcome.error);
        assert_eq!(server.violations(), [""; 0], "{wire:?}");
        assert_eq!(session.window().tokens, 24_000, "read from the refusal");

        let compactions = host.store.compactions(&session.id).unwrap();
        let [done] = &compactions[..] else { panic!("{compactions:?}") };
        assert_eq!((done.trigger, done.layer), (Trigger::Overflow, Some(Layer::Summary)));
        let requests = server.requests();
        let asked = requests[requests.len() - 2].to_string();
        assert!(asked.contains("mind the watch (overflow)"), "the hook's wish is in the question for a summary");
        let after = requests.last().unwrap().to_string();
        assert!(after.contains("Goal: the brightest field") && after.contains(QUESTION), "{after}");
        assert!(after.len() < requests[requests.len() - 3].to_string().len(), "shorter than what was refused");
        let heard =
            ["pre", "post", "summary", "messages-before", "messages-after"].map(|key| counted(&host, &session, key));
        assert_eq!(heard, [1, 1, 1, done.messages_before as i64, done.messages as i64]);

        // A second process sees the same conversation, and the record holds what was before.
        let (id, seen) = (session.id.clone(), session.conversation().to_vec());
        drop(session);
        let model = select::open(name, &server.endpoints(Limits::default())).unwrap();
        let session = host.session(Which::Named(&id), model).unwrap();
        assert_eq!(session.conversation(), seen);
        assert_eq!(session.window().tokens, 24_000);
        drop(session);
        drop(host);
        let view: Value = place.run(&["session", "show", &id, "--json"]).json();
        assert_eq!(view["messages"].as_array().unwrap().len(), seen.len());
        let full = place.run(&["session", "show", &id, "--full"]).stdout;
        assert!(full.contains("compacted (overflow, summary)") && full.contains("→ echo"), "{full}");
        assert!(full.matches("→ echo").count() >= 12, "{full}");
        assert!(place.run(&["session", "show", &id]).stdout.contains("--full shows them"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_is_full_again_at_once_ends_the_turn_and_the_record_says_so() {
    let place = place(200_000);
    let host = place.host().await;
    let server = Strict::start().await;
    let mut session = open(&host, "anthropic:strict-1", &server);
    for id in 0..40 {
        server.plan(echo(id, &format!("{id} {}", "measured ".repeat(100))));
    }
    for _ in 0..4 {
        let message = "prompt is too long".to_owned();
        server.plan(Plan::Status { status: 400, kind: "invalid_request_error", message, retry_after: None });
        server.plan(Said::new([Piece::Text("<summary>1. Goal: the brightest field</summary>")]));
    }
    let turn = ask(&mut session, QUESTION, 60, &CancellationToken::new(), |_| {}).await;
    assert_eq!(turn.outcome.reason, EndReason::Failed);
    let error = turn.outcome.error.unwrap();
    assert!(
        error.contains("is full again right after each compaction") || error.contains("could not be compacted"),
        "{error}"
    );
    let id = session.id.clone();
    drop(session);
    drop(host);
    let shown = place.run(&["session", "show", &id]).stdout;
    assert!(
        shown.contains("breaker: closed; ") && shown.contains("the last one: not compacted (overflow): "),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_for_a_summary_that_is_too_long_itself_is_asked_with_the_oldest_rounds_left_out() {
    for (wire, name) in WIRES {
        let place = place(60_000);
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = open(&host, name, &server);
        for id in 0..12 {
            server.plan(echo(id, &format!("round {id}. {}", "measured ".repeat(300))));
        }
        let refusal = || Plan::Status {
            status: 400,
            kind: "invalid_request_error",
            message: "prompt is too long".to_owned(),
            retry_after: None,
        };
        // The request itself, then two questions for a summary.
        (0..3).for_each(|_| server.plan(refusal()));
        server.plan(Said::new([Piece::Text("<summary>1. Goal: the brightest field</summary>")]));
        server.plan(Said::new([Piece::Text("c'est le champ 3")]));
        let turn = ask(&mut session, QUESTION, 30, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "c'est le champ 3", "{wire:?} {:?}", turn.outcome.error);
        assert_eq!((server.violations().len(), server.unused()), (0, 0), "{wire:?}");
        let requests = server.requests();
        let sizes: Vec<usize> = requests[13..16].iter().map(|request| request.to_string().len()).collect();
        assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{wire:?} {sizes:?}");
        let last = requests[15].to_string();
        assert!(last.contains("round 11.") && !last.contains("round 1."), "the oldest go: {wire:?} {last}");
        assert!(last.contains("are left out for space"), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cheaper_model_writes_the_summary_where_the_config_names_one() {
    let place = place(200_000);
    let cheap = place
        .script("name: cheap\nat_limit: \"<summary>1. Goal: told by the cheap one</summary>\"\nsteps:\n- say: never\n");
    let config = std::fs::read_to_string(place.home().join("astrarium.yaml")).unwrap();
    place.config(&format!("{config}summary_model: \"{cheap}\"\n"));
    let host = place.host().await;
    let mut script = String::from("name: t\nat_limit: not by this one\nsteps:\n");
    for step in 0..20 {
        writeln!(script, "- calls: [{{ tool: echo, input: {{ text: \"{step} {}\" }} }}]", "word ".repeat(100)).unwrap();
    }
    script.push_str("- say: done\n");
    let (mut session, _) = play(&host, &script, QUESTION, 30).await;
    let cancel = CancellationToken::new();
    let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
    let done = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await.unwrap();
    assert_eq!(done.layer, Some(Layer::Summary), "{done:?}");
    assert!(shown(&session).contains("told by the cheap one") && !shown(&session).contains("not by this one"));
    let last = host.store.last_request(&session.id).unwrap().unwrap();
    assert_eq!(last.model, "scripted:cheap", "the ledger says who was paid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_asks_for_room_and_gets_it_when_the_step_is_over() {
    let place = place(200_000);
    let host = place.host().await;
    let mut script = String::from("name: t\nat_limit: \"<summary>1. Goal: kept</summary>\"\nsteps:\n");
    for step in 0..20 {
        let text = format!("{step} {}", "measured ".repeat(60));
        writeln!(script, "- calls: [{{ tool: echo, input: {{ text: \"{text}\" }} }}]").unwrap();
    }
    script.push_str("- calls: [{ tool: compress_context, input: { instructions: keep field 7 } }]\n- say: done\n");
    let (session, turn) = play(&host, &script, QUESTION, 30).await;
    assert_eq!(turn.outcome.answer, "done", "{:?}", turn.outcome.error);
    let said = turn.outputs("compress_context").join("");
    assert!(said.contains("as soon as this step is over"), "{said}");
    let at = |found: &dyn Fn(&Event) -> bool| turn.events.iter().position(found).unwrap();
    let step = at(&|event| matches!(event, Event::Step { step: 21, .. }));
    let compacted = at(&|event| matches!(event, Event::Compacted { trigger: "tool", layer: "summary", .. }));
    assert!(step < compacted, "not before the step is over");
    assert_whole(session.conversation());
    assert!(session.conversation().len() < 20);
    assert!(shown(&session).contains("Goal: kept"));
    assert_eq!(host.store.epoch(&session.id, None).unwrap().unwrap().reason, "compaction");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_compaction_changes_nothing() {
    let place = place(200_000);
    let host = place.host().await;
    let mut script = String::from("name: t\nsteps:\n");
    for step in 0..20 {
        writeln!(script, "- calls: [{{ tool: echo, input: {{ text: \"{step} {}\" }} }}]", "word ".repeat(100)).unwrap();
    }
    script.push_str("- say: done\n");
    let (mut session, _) = play(&host, &script, QUESTION, 30).await;
    let (before, cancel) = (session.conversation().to_vec(), CancellationToken::new());
    cancel.cancel();
    let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
    let done = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await;
    assert!(matches!(done, Err(Failure::Cancelled)), "{done:?}");
    assert_eq!(session.conversation(), before);
    assert!(host.store.compactions(&session.id).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_cut_at_its_limit_is_continued_under_a_higher_one() {
    for (wire, name) in WIRES {
        let place = place(200_000);
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = open(&host, name, &server);
        server.plan(Said::new([Piece::Text("one, ")]).at_limit());
        server.plan(Said::new([Piece::Text("two, ")]).at_limit());
        server.plan(Said::new([Piece::Text("three")]));
        let turn = ask(&mut session, "count", 10, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "one, two, three", "{wire:?}");
        assert_eq!(server.violations(), [""; 0]);
        let key = if wire == Wire::Anthropic { "max_tokens" } else { "max_completion_tokens" };
        let limit = |request: &Value| request.get(key).or(request.get("max_tokens")).cloned();
        let limits: Vec<_> = server.requests().iter().filter_map(limit).collect();
        assert_eq!(limits, [json!(8_192), json!(32_768), json!(32_768)], "{wire:?}");

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
        let place = place(200_000);
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
async fn half_an_answer_is_kept_when_later_tries_say_nothing() {
    for (wire, name) in WIRES {
        let place = place(200_000);
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
    let place = place(200_000);
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
