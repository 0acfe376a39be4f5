//! Full windows: what a compaction leaves, that it helps, that hooks hear of it once, and that the record keeps everything.

use astrarium::compact::{Layer, Trigger};
use astrarium::compaction::{self, Failure, Work};
use astrarium::event::{EndReason, Event};
use astrarium::host::{Host, Which};
use astrarium::model::scripted::Scripted;
use astrarium::model::select;
use astrarium::model::wire::Limits;
use astrarium::request::ToolChoice;
use astrarium::session::{Session, Summarizer};
use astrarium::store::{KvScope, Task, TaskStatus};
use astrarium::transcript::{Block, Origin, Usage};
use astrarium_tests::laws::assert_accepted;
use astrarium_tests::place::{Place, ask, play};
use astrarium_tests::strict::{Form, Piece, Plan, Said, Strict, Wire};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

const WIRES: [(Wire, &str); 2] = [(Wire::Anthropic, "anthropic:strict-1"), (Wire::OpenAi, "openai:strict-1")];
const WISH: &str = "It is cloudy tonight. Never round a magnitude to fewer than three digits.";
const QUESTION: &str = "Always answer in French. Measure each of the fields and then name the brightest one.";

const CONFIG: &str = "language: en\ngrants:\n- { plugin: echo, kv: true }\n- { plugin: compact-watch, kv: true }\n";

fn place(window: u64) -> Place {
    let place = Place::new();
    place.plugin("echo").plugin("compact-watch").config(&format!("{CONFIG}context_window: {window}\n"));
    place
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
    script.push_str(&"- say: noted\n".repeat(4));
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
    // A wish of an earlier turn, neither among the first words nor in the last question.
    for question in ["hello", "are you there?", "good", WISH] {
        let turn = ask(&mut session, question, 5, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "noted");
    }
    let turn = ask(&mut session, QUESTION, STEPS + 1, &CancellationToken::new(), |_| {}).await;
    assert_eq!((turn.outcome.reason, turn.outcome.error.as_deref()), (EndReason::Done, None));
    assert_eq!((turn.outcome.answer.as_str(), turn.outcome.tool_calls), ("la plus brillante", STEPS));
    assert_accepted(session.conversation());

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
    assert!(shown.contains("Never round a magnitude") && !shown.contains("It is cloudy"), "{shown}");
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
        place.config(CONFIG);
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
        assert_eq!(session.window().tokens, 24_000, "a window that nobody named is the one that the server said");
        drop(session);
        drop(host);
        for (named, tokens) in
            [("context_window: 60000", 60_000), ("context_windows: { \"scripted:x\": 9000 }", 24_000)]
        {
            place.config(&format!("{CONFIG}{named}\n"));
            let host = place.host().await;
            let model = select::open(name, &server.endpoints(Limits::default())).unwrap();
            let session = host.session(Which::Named(&id), model).unwrap();
            assert_eq!(session.window().tokens, tokens, "what the operator names counts from then on: {named}");
        }
        let view: Value = place.run(&["session", "show", &id, "--json"]).json();
        assert_eq!(view["messages"].as_array().unwrap().len(), seen.len());
        let full = place.run(&["session", "show", &id, "--full"]).stdout;
        assert!(full.contains("compacted (overflow, summary)") && full.contains("→ echo"), "{full}");
        assert!(full.matches("→ echo").count() >= 12, "{full}");
        assert!(place.run(&["session", "show", &id]).stdout.contains("--full shows them"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_that_is_full_again_at_once_three_times_ends_the_turn_and_the_record_says_so() {
    let place = place(16_000);
    let host = place.host().await;
    let mut script = String::from("name: t\nat_limit: \"<summary>1. Goal: the brightest field</summary>\"\nsteps:\n");
    // Each step fills the window by itself.
    for step in 0..20 {
        let call =
            |side: usize| format!("{{ tool: echo, input: {{ text: \"{step} {side} {}\" }} }}", "word ".repeat(2_500));
        writeln!(script, "- calls: [{}]", (0..4).map(call).collect::<Vec<_>>().join(", ")).unwrap();
    }
    let (session, turn) = play(&host, &script, QUESTION, 60).await;
    assert_eq!(turn.outcome.reason, EndReason::Failed);
    let error = turn.outcome.error.unwrap();
    assert!(error.contains("the window of 16000 tokens is full again right after each compaction"), "{error}");
    assert_eq!(turn.outcome.tool_calls, 4 * 4, "four steps: one that fills it, and three refills");
    let done = host.store.compactions(&session.id).unwrap();
    let layers: Vec<bool> = done.iter().map(|done| done.layer.is_some()).collect();
    assert_eq!(layers, [true, true, true, false], "{done:?}");
    assert_accepted(session.conversation());
    let id = session.id.clone();
    drop(session);
    drop(host);
    let shown = place.run(&["session", "show", &id]).stdout;
    assert!(shown.contains("the last one: not compacted (auto): the window of 16000 tokens is full again"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automatic_compactions_that_cannot_help_are_left_out_and_the_conversation_goes_on() {
    // Tools and system prompt fill it, so that none ever helps.
    let place = place(1_000);
    let host = place.host().await;
    let script = format!("name: t\nsteps:\n{}", "- say: here\n".repeat(6));
    let (mut session, _) = play(&host, &script, QUESTION, 5).await;
    for _ in 0..5 {
        let turn = ask(&mut session, "again", 5, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.answer, "here");
    }
    let tried = host.store.compactions(&session.id).unwrap();
    // The fourth waits for growth; one is tried when it has come, fails, and opens it again.
    let [_, _, third, after] = &tried[..] else { panic!("{tried:?}") };
    assert_eq!(after.messages_before, third.messages_before + 4, "a turn went by without one: {tried:?}");
    assert!(after.tokens_before >= third.tokens_before + 1_000 / 20, "{tried:?}");
    let id = session.id.clone();
    drop(session);
    drop(host);
    let shown = place.run(&["session", "show", &id]).stdout;
    assert!(shown.contains("breaker: open after 4 compactions that did not help"), "{shown}");
    assert!(shown.contains("which leaves no room for a conversation"), "{shown}");
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

/// A session of twenty steps with `server`, ready for a compaction.
async fn grown(host: &Host, name: &str, server: &Strict) -> Session {
    let mut session = open(host, name, server);
    for id in 0..20 {
        server.plan(echo(id, &format!("{id} {}", "measured ".repeat(300))));
    }
    server.plan(Said::new([Piece::Text("c'est le champ 3")]));
    let turn = ask(&mut session, QUESTION, 30, &CancellationToken::new(), |_| {}).await;
    assert_eq!(turn.outcome.answer, "c'est le champ 3", "{:?}", turn.outcome.error);
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_model_that_fails_is_said_and_the_one_that_answers_writes_it_behind_its_cached_prefix() {
    for (wire, name) in WIRES {
        let place = place(200_000);
        let host = place.host().await;
        let (server, cheap) = (Strict::start().await, Strict::start().await);
        let mut session = grown(&host, name, &server).await;
        let model = select::open("anthropic:strict-cheap", &cheap.endpoints(Limits::default())).unwrap();
        session.summary_model = Some(Summarizer { model, window: 4_000 });
        let message = "no such model".to_owned();
        cheap.plan(Plan::Status { status: 404, kind: "not_found_error", message, retry_after: None });
        server.plan(Said::new([Piece::Text("<summary>1. Goal: told by the one that answers</summary>")]));

        let (seen, cancel) = (Mutex::new(Vec::new()), CancellationToken::new());
        let sink = |event| seen.lock().unwrap().push(event);
        let work = Work { step: 0, sink: &sink, cancel: &cancel };
        let mut spent = Usage::default();
        let done = compaction::compact(&mut session, Trigger::Manual, "", &mut spent, &work).await.unwrap();
        assert_eq!(done.layer, Some(Layer::Summary), "{wire:?} {done:?}");
        assert!(shown(&session).contains("told by the one that answers"));
        let seen = seen.lock().unwrap();
        let told = seen.iter().any(|event| {
            matches!(event, Event::Notice { text } if text.contains("anthropic:strict-cheap") && text.contains("no such model"))
        });
        assert!(told, "{wire:?} {seen:?}");

        // The cheap one was asked within its own window, the other one as always, so that what it cached is read again.
        let asked = cheap.requests().pop().unwrap().to_string();
        assert!(asked.len() < 4_000 * 5 && asked.contains("are left out for space"), "{wire:?} {}", asked.len());
        let requests = server.requests();
        let [.., before, summary] = &requests[..] else { panic!("{}", requests.len()) };
        for key in ["tools", "tool_choice", "system"] {
            assert_eq!(before[key], summary[key], "{wire:?} {key}");
        }
        assert_eq!((server.violations(), cheap.violations()), (vec![], vec![]), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_goes_on_instead_of_writing_a_summary_is_asked_from_outside() {
    for (wire, name) in WIRES {
        let place = place(200_000);
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = grown(&host, name, &server).await;
        let before = server.requests().len();
        server.plan(echo(99, "on and on"));
        server.plan(Said::new([Piece::Text("<summary>1. Goal: written at last</summary>")]));
        let cancel = CancellationToken::new();
        let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
        let done = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await.unwrap();
        assert_eq!((done.layer, done.reason), (Some(Layer::Summary), None), "{wire:?}");
        assert!(shown(&session).contains("written at last") && !shown(&session).contains("on and on"));
        let requests = server.requests();
        assert_eq!(requests.len(), before + 2, "{wire:?}");
        assert!(requests[before + 1].get("tools").is_none(), "{wire:?}: none is offered from outside");
        assert_eq!(server.violations(), [""; 0], "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_of_no_use_falls_to_the_next_layer_and_the_record_says_why() {
    let refusal = || Plan::Status {
        status: 400,
        kind: "invalid_request_error",
        message: "this one is refused".to_owned(),
        retry_after: None,
    };
    let inflated = text(format!("<summary>{}</summary>", "more and more words ".repeat(20_000)));
    let rows: [(&str, Plan, &str); 4] = [
        ("empty", Said::new([Piece::Text("<summary> </summary>")]).into(), "wrote nothing"),
        ("inflated", Said::new([Piece::Text(inflated)]).into(), "would replace"),
        ("refused", refusal(), "this one is refused"),
        (
            "broken",
            Said::new([Piece::Text("<summary>1.")]).form(Form { cut: Some(300), ..Form::default() }).into(),
            "broke off",
        ),
    ];
    for (row, plan, why) in rows {
        let place = place(200_000);
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = grown(&host, "anthropic:strict-1", &server).await;
        let tokens = session.next_tokens().unwrap();
        server.plan(plan);
        let cancel = CancellationToken::new();
        let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
        let done = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await.unwrap();
        assert!(done.layer.is_some_and(|layer| layer != Layer::Summary), "{row} {done:?}");
        let reason = done.reason.clone().unwrap();
        assert!(reason.starts_with("summary: ") && reason.contains(why), "{row} {reason}");
        assert_eq!(done.tokens_before, tokens, "{row}");
        assert_accepted(session.conversation());
        let id = session.id.clone();
        drop(session);
        drop(host);
        let full = place.run(&["session", "show", &id, "--full"]).stdout;
        assert!(full.contains(why), "{row} {full}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_asks_for_in_vain_opens_no_breaker() {
    let place = place(200_000);
    let host = place.host().await;
    let (mut session, _) = play(&host, "name: t\nsteps:\n- say: done\n", QUESTION, 5).await;
    let cancel = CancellationToken::new();
    let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
    for _ in 0..5 {
        let done = compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await;
        assert!(matches!(done, Err(Failure::Stuck(_))), "{done:?}");
    }
    assert_eq!(session.breaker().to_string(), "closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_in_the_middle_of_a_summary_changes_nothing() {
    for (wire, name) in WIRES {
        let place = place(200_000);
        let host = place.host().await;
        let server = Strict::start().await;
        let mut session = grown(&host, name, &server).await;
        let (before, tokens) = (session.conversation().to_vec(), session.next_tokens().unwrap());
        let (asked, cancel) = (server.requests().len(), CancellationToken::new());
        let summary = Said::new([Piece::Text("<summary>1. Goal: "), Piece::Text("the brightest</summary>")]);
        let stall = summary.bytes(wire).len() / 2;
        server.plan(summary.form(Form { stall: Some(stall), ..Form::default() }));
        let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
        let mut spent = Usage::default();
        let compacting = compaction::compact(&mut session, Trigger::Manual, "", &mut spent, &work);
        let stop = async {
            while server.requests().len() == asked {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (done, ()) = tokio::join!(compacting, stop);
        assert!(matches!(done, Err(Failure::Cancelled)), "{wire:?} {done:?}");
        assert_eq!(session.conversation(), before, "{wire:?}");
        assert_eq!(session.next_tokens().unwrap(), tokens, "{wire:?}");
        assert!(host.store.compactions(&session.id).unwrap().is_empty());
        server.plan(Said::new([Piece::Text("still here")]));
        let turn = ask(&mut session, "and now?", 5, &CancellationToken::new(), |_| {}).await;
        assert_eq!((turn.outcome.answer.as_str(), server.violations().len()), ("still here", 0), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_that_were_found_come_back_whether_they_were_called_or_not() {
    let place = place(200_000);
    let host = place.host().await;
    let mut script = String::from("name: t\nat_limit: \"<summary>1. Goal: kept</summary>\"\nsteps:\n");
    for step in 0..20 {
        writeln!(script, "- calls: [{{ tool: echo, input: {{ text: \"{step} {}\" }} }}]", "word ".repeat(100)).unwrap();
        if step == 2 {
            // They came after the session began, so they stand in none of its schemas.
            script.push_str("- calls: [{ tool: tool_search, input: { query: shout } }]\n");
        }
    }
    script.push_str("- say: done\n");
    let model = Arc::new(Scripted::from_str("t", &script).unwrap());
    let mut session = host.session(Which::New { title: "t" }, model).unwrap();
    session.request(ToolChoice::Auto).unwrap();
    place.plugin("shout");
    host.registry.refresh().await;
    let turn = ask(&mut session, QUESTION, 30, &CancellationToken::new(), |_| {}).await;
    assert!(turn.outputs("tool_search")[0].starts_with("shout (plugin shout)"), "{:?}", turn.outputs("tool_search"));
    let cancel = CancellationToken::new();
    let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
    compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await.unwrap();
    let last = session.conversation().iter().find(|message| message.origin == Origin::Compaction).unwrap().text();
    assert!(last.contains("shout") && last.contains("input schema: {"), "{last}");
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
    assert_accepted(session.conversation());
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
