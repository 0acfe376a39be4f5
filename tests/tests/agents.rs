//! Agents that work for another one: what they are told and may do, which hooks hear of them, what is kept and counted.

use astrarium::audit::Kind;
use astrarium::consent::{Answer, Asker, Question};
use astrarium::context::AgentKind;
use astrarium::event::{EndReason, Event};
use astrarium::host::{Host, Which};
use astrarium::model::{Model, ModelError, ModelEvent, Request};
use astrarium::session::Session;
use astrarium::store::{AgentRecord, AuditFilter, KvScope};
use astrarium::transcript::{Block, CallStatus, Origin, Reply, Role, StopReason, Usage};
use astrarium_tests::place::{self, Place, Turn, play};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A place with a guest that hears of everything, and some files.
fn place(config: &str) -> Place {
    let place = Place::new();
    place
        .plugin("agent-watch")
        .config(&format!("language: en\ngrants:\n- {{ plugin: agent-watch, kv: true }}\n{config}"));
    place.file("a.fits", "a").file("b.fits", "b");
    place
}

/// A script; a line is an answer.
async fn turn(host: &Host, steps: &[&str]) -> (String, Turn) {
    let steps: String = steps.iter().map(|step| format!("- {step}\n")).collect();
    let (session, turn) = play(host, &format!("name: s\nsteps:\n{steps}"), "SECRET QUESTION", 20).await;
    (session.id, turn)
}

fn ask(task: &str, more: &str) -> String {
    format!("calls: [{{ tool: subagent, input: {{ task: \"{task}\"{more} }} }}]")
}

/// What the watch has counted: kind of agent and event.
fn heard(host: &Host) -> BTreeMap<String, String> {
    let events = [
        "session-start",
        "pre-tool-use",
        "post-tool-use",
        "step-complete",
        "subagent-start",
        "subagent-stop",
        "session-stop",
    ];
    let mut heard = BTreeMap::new();
    for event in events {
        for kind in ["main", "subagent", "skill-fork"] {
            let key = format!("{kind} {event}");
            if let Some(value) = host.store.kv_get("agent-watch", &KvScope::Plugin, &key).unwrap() {
                heard.insert(key, String::from_utf8(value).unwrap());
            }
        }
    }
    heard
}

fn kept(host: &Host, key: &str) -> String {
    String::from_utf8(host.store.kv_get("agent-watch", &KvScope::Plugin, key).unwrap().unwrap_or_default()).unwrap()
}

fn only_child(host: &Host, parent: &str) -> AgentRecord {
    let mut agents = host.store.agents_of(parent).unwrap();
    assert_eq!(agents.len(), 1, "{agents:?}");
    agents.remove(0)
}

const GLOB: &str = "calls: [{ tool: glob_files, input: { pattern: '*.fits' } }]";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_works_in_a_session_of_its_own_and_reports() {
    let place = place("prices: { \"scripted:test\": { input: 1, output: 1 } }\n");
    let host = place.host().await;
    let counts = |input, output| format!("usage: {{ input: {input}, output: {output} }}");
    let (session, done) = turn(
        &host,
        &[
            &format!("{}\n  {}", ask("count the fields", ""), counts(1000, 100)),
            &format!("{GLOB}\n  {}", counts(200, 20)),
            &format!("say: two fields\n  {}", counts(300, 30)),
            &format!("say: all done\n  {}", counts(4000, 400)),
        ],
    )
    .await;
    assert_eq!((done.outcome.reason, done.outcome.answer.as_str()), (EndReason::Done, "all done"));
    assert_eq!((done.outcome.steps, done.outcome.tool_calls), (2, 1), "its own");
    let report = done.outputs("subagent").concat();
    assert!(
        report
            .starts_with("two fields\n\n[activity]\n✓ glob_files {\"pattern\":\"*.fits\"}\n\n[statistics: 2 steps, 1")
    );
    assert!(report.contains("(glob_files ×1), 0 refused, 500 tokens sent, 50 answered]"), "{report}");

    // What it cost is the parent's, and can be told from the parent's own.
    let [agent] = &done.outcome.agents[..] else { panic!("{:?}", done.outcome.agents) };
    assert_eq!((agent.kind, agent.agent.as_str(), agent.call.as_str()), (AgentKind::Subagent, "", "call_1_1"));
    assert_eq!((agent.outcome.usage.input, agent.outcome.usage.output), (500, 50));
    assert_eq!((done.outcome.usage.input, done.outcome.usage.output), (5500, 550));
    assert_eq!(done.outcome.cost, Some(6050.0 / 1e6));

    // It is told its task and what hooks say, and nothing of the conversation.
    let child = only_child(&host, &session);
    assert_eq!(
        (child.kind.as_str(), child.reason.as_deref(), child.title.as_str()),
        ("subagent", Some("done"), "count the fields")
    );
    let messages = host.store.messages(&child.session).unwrap();
    let said: Vec<(Origin, String)> = messages.iter().map(|message| (message.origin, message.text())).collect();
    assert!(said[0].1.contains("mind the moon") && said[0].0 == Origin::Host, "{said:?}");
    assert_eq!(said[1], (Origin::User, "count the fields".into()));
    let prefix = host.store.epoch(&child.session, None).unwrap().unwrap().prefix;
    assert!(prefix.contains("You work on one part of a task") && prefix.contains("glob_files"), "{prefix}");
    assert!(
        !prefix.contains("\"subagent\"") && !prefix.contains("SECRET") && !prefix.contains("How you work"),
        "{prefix}"
    );
    assert!(!said.iter().any(|(_, text)| text.contains("SECRET")));

    // Each hook heard of each event once, with the agent whose it was.
    let expected = [
        ("main post-tool-use", "1"),
        ("main pre-tool-use", "1"),
        ("main session-start", "1"),
        ("main session-stop", "1"),
        ("main step-complete", "2"),
        ("subagent post-tool-use", "1"),
        ("subagent pre-tool-use", "1"),
        ("subagent step-complete", "2"),
        ("subagent subagent-start", "1"),
        ("subagent subagent-stop", "1"),
    ];
    assert_eq!(heard(&host), expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(kept(&host, "begins"), " | count the fields | 5");
    assert_eq!(kept(&host, "ended"), " | done | 2 | 1 | two fields");

    // Its events come inside of the parent's; its answer is none of the parent's text.
    let inside = |event: &&Event| matches!(event, Event::Agent { session, .. } if *session == child.session);
    assert!(done.events.iter().filter(inside).count() > 5);
    let text: String = done
        .events
        .iter()
        .filter_map(|event| if let Event::Text { text } = event { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(text, "all done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_starts_no_agents_unless_the_operator_lets_it_and_then_not_for_ever() {
    let nested = |tool: &str| format!("calls: [{{ tool: {tool}, input: {{ task: deeper }} }}]");
    for tool in ["subagent", "call_tool"] {
        let place = place("");
        let host = place.host().await;
        let call = match tool {
            "call_tool" => {
                "calls: [{ tool: call_tool, input: { name: subagent, input: { task: deeper } } }]".to_owned()
            }
            tool => nested(tool),
        };
        let (session, done) = turn(&host, &[&ask("look", ""), &call, "say: alone", "say: done"]).await;
        let report = done.outputs("subagent").concat();
        assert!(report.starts_with("alone") && report.contains("⊘ subagent"), "{report}");
        assert!(report.contains("is not among the tools of this agent") && report.contains("1 refused"), "{report}");
        assert_eq!(host.store.agents_of(&session).unwrap().len(), 1);
        assert!(host.store.agents_of(&only_child(&host, &session).session).unwrap().is_empty());
    }
    let place = place("agents: { depth: 2 }\n");
    let host = place.host().await;
    let script = [
        ask("one", ""),
        nested("subagent"),
        nested("subagent"),
        "say: two".into(),
        "say: one".into(),
        "say: done".into(),
    ];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let (session, done) = turn(&host, &script).await;
    assert_eq!(done.outcome.reason, EndReason::Done, "{:?}", done.outcome);
    let child = only_child(&host, &session);
    let grandchild = only_child(&host, &child.session);
    assert!(host.store.agents_of(&grandchild.session).unwrap().is_empty(), "two deep and no deeper");
    let report = done.outputs("subagent").concat();
    assert!(report.contains("• agent") && report.starts_with("one"), "{report}");
    let tokens = done.outcome.agents[0].outcome.agents[0].outcome.usage.input;
    assert!(tokens > 0 && done.outcome.agents[0].outcome.usage.input > tokens, "costs add up through the levels");
    drop(host);
    place.config("agents: { depth: 4 }\n");
    let refused = place.run(&["session", "list"]);
    assert!(refused.status == 2 && refused.stderr.contains("must be from 0 to 3"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_are_five_and_never_more_than_ten_and_the_answer_always_comes() {
    let place = place("");
    let host = place.host().await;
    for (more, limit) in [("", 5), (", max_steps: 2", 2), (", max_steps: 10", 10)] {
        let mut script = vec![ask("look long", more)];
        script.extend((0..limit).map(|n| format!("calls: [{{ tool: glob_files, input: {{ pattern: '{n}' }} }}]")));
        script.push("say: done".into());
        let script: Vec<&str> = script.iter().map(String::as_str).collect();
        let (session, done) = turn(&host, &script).await;
        let child = only_child(&host, &session);
        assert_eq!(child.reason.as_deref(), Some("step-limit"), "{more}");
        assert_eq!(child.statistics.unwrap()["steps"], limit);
        assert!(
            done.outputs("subagent")[0].contains("The limit of steps was reached"),
            "{:?}",
            done.outputs("subagent")
        );
        assert_eq!(done.outcome.reason, EndReason::Done);
    }
    let (_, done) = turn(&host, &[&ask("x", ", max_steps: 11"), "say: done"]).await;
    assert!(done.outputs("subagent")[0].contains("max_steps"), "{:?}", done.outputs("subagent"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn named_tools_are_the_only_ones_and_must_be_there() {
    let place = place("");
    let host = place.host().await;
    let (session, done) = turn(
        &host,
        &[
            &ask("look", ", tools: [read_file]"),
            GLOB,
            "calls: [{ tool: call_tool, input: { name: glob_files, input: { pattern: '*' } } }]",
            "calls: [{ tool: read_file, input: { path: a.fits } }]",
            "say: read",
            "say: done",
        ],
    )
    .await;
    let report = done.outputs("subagent").concat();
    assert!(report.contains("3 tool calls (glob_files ×2, read_file ×1), 2 refused"), "{report}");
    let prefix = host.store.epoch(&only_child(&host, &session).session, None).unwrap().unwrap().prefix;
    assert!(prefix.contains("read_file") && !prefix.contains("\"glob_files\""), "{prefix}");
    for tools in ["[nothing_such]", "[subagent]"] {
        let (session, done) = turn(&host, &[&ask("look", &format!(", tools: {tools}")), "say: done"]).await;
        assert!(
            done.outputs("subagent")[0].contains("is no tool that the agent could have"),
            "{:?}",
            done.outputs("subagent")
        );
        assert!(host.store.agents_of(&session).unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_turn_nobody_can_be_started() {
    let place = place("");
    let ran = place.run(&["tool", "call", "subagent", r#"{ "task": "look" }"#]);
    assert!(ran.status == 1 && ran.stderr.contains("no turn is under way"), "{ran:?}");
}

/// A model that answers by what it is asked: no order of agents that work side by side can confuse it.
struct ByTask<F>(F);

#[async_trait::async_trait]
impl<F: Fn(&str, usize) -> Said + Send + Sync> Model for ByTask<F> {
    fn name(&self) -> &str {
        "scripted:by-task"
    }

    async fn ask(&self, request: &Request, _: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError> {
        let task = request.messages.iter().find(|message| message.origin == Origin::User).map(|message| message.text());
        let answers = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let calls = match (self.0)(&task.unwrap_or_default(), answers) {
            Said::Text(text) => vec![Block::Text { text }],
            Said::Calls(calls) => {
                let block = |(at, (name, input)): (usize, (&str, Value))| Block::ToolUse {
                    id: format!("c{answers}_{at}"),
                    name: name.to_owned(),
                    input,
                    malformed: None,
                };
                calls.into_iter().enumerate().map(block).collect()
            }
            Said::Fails => return Err(ModelError::Config("the model is gone".into())),
            Said::Never(begun) => {
                begun.notify_one();
                std::future::pending().await
            }
        };
        let stop = match calls.iter().any(|block| matches!(block, Block::ToolUse { .. })) {
            true => StopReason::ToolUse,
            false => StopReason::EndTurn,
        };
        let size: usize = request.messages.iter().map(|message| message.text().len() + 50).sum();
        let size = size + request.messages.iter().flat_map(|message| &message.content).map(results).sum::<usize>();
        let usage = Usage { input: size as u64 / 4, output: 10, ..Usage::default() };
        Ok(Reply { content: calls, stop, usage, model: self.name().into() })
    }

    async fn check(&self) -> Result<String, ModelError> {
        Ok(String::new())
    }
}

/// Bytes of a result.
fn results(block: &Block) -> usize {
    match block {
        Block::ToolResult { parts, .. } => parts.iter().map(|part| part.as_text().len()).sum(),
        _ => 0,
    }
}

enum Said {
    Text(String),
    Calls(Vec<(&'static str, Value)>),
    Fails,
    /// Says so, and never answers.
    Never(Arc<Notify>),
}

fn session(host: &Host, says: impl Fn(&str, usize) -> Said + Send + Sync + 'static) -> Session {
    host.session(Which::New { title: "q" }, Arc::new(ByTask(says))).unwrap()
}

async fn run(session: &mut Session, question: &str) -> Turn {
    place::ask(session, question, 20, &CancellationToken::new(), |_| {}).await
}

/// Far more than any of these turns takes; a turn that waits for itself would take for ever.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_parents_that_wait_for_their_agents_do_not_hold_the_permits_these_need() {
    let place = place("limits: { parallel_calls: 2 }\n");
    let host = place.host().await;
    let mut sessions: Vec<Session> = (0..20)
        .map(|_| {
            session(&host, |task, answers| match (task, answers) {
                ("q", 0) => {
                    Said::Calls(vec![("subagent", json!({ "task": "one" })), ("subagent", json!({ "task": "two" }))])
                }
                ("q", _) => Said::Text("done".into()),
                (_, 0) => Said::Calls(vec![("glob_files", json!({ "pattern": "*.fits" }))]),
                (task, _) => Said::Text(format!("saw {task}")),
            })
        })
        .collect();
    let turns = futures::future::join_all(sessions.iter_mut().map(|session| run(session, "q")));
    let turns = tokio::time::timeout(LONG, turns).await.expect("they wait for each other");
    for done in turns {
        assert_eq!(done.outcome.agents.len(), 2, "{:?} {:?}", done.outcome, done.outputs("subagent"));
        let reports = done.outputs("subagent").concat();
        assert!(reports.contains("saw one") && reports.contains("saw two"), "{reports}");
        assert_eq!(reports.matches("✓ glob_files").count(), 2, "{reports}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_may_take_longer_than_a_tool_may() {
    let place = place("limits: { tool_ms: 1500 }\n");
    let host = place.host().await;
    let slow = "say: a b c d e f\n  delay_ms: 600";
    let (_, done) = turn(&host, &[&ask("think long", ""), slow, "say: done"]).await;
    let report = done.outputs("subagent").concat();
    assert!(report.starts_with("a b c d e f"), "its caller's clock stood still: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_cancelled_with_their_parent_and_say_so() {
    let place = place("");
    let host = place.host().await;
    let begun = Arc::new(Notify::new());
    let begins = begun.clone();
    let mut session = session(&host, move |task, answers| match (task, answers) {
        ("q", 0) => Said::Calls(vec![("subagent", json!({ "task": "one" })), ("subagent", json!({ "task": "two" }))]),
        ("q", _) => Said::Text("goes on".into()),
        ("two", _) => Said::Text("two is done".into()),
        _ => Said::Never(begins.clone()),
    });
    let cancel = CancellationToken::new();
    let turn = {
        let turn = place::ask(&mut session, "q", 20, &cancel, |_| {});
        let cancelling = async {
            begun.notified().await;
            cancel.cancel();
        };
        tokio::time::timeout(LONG, async { tokio::join!(turn, cancelling) }).await.expect("it ends at once").0
    };
    assert_eq!(turn.outcome.reason, EndReason::Cancelled);
    let agents = host.store.agents_of(&session.id).unwrap();
    let mut ended: Vec<_> = agents.iter().map(|agent| (agent.title.as_str(), agent.reason.as_deref())).collect();
    ended.sort();
    assert_eq!(ended[0], ("one", Some("cancelled")), "{agents:?}");
    assert!(kept(&host, "ended").contains("cancelled") || ended[1].1 == Some("done"), "{}", kept(&host, "ended"));
    assert_eq!(heard(&host)["subagent subagent-stop"], "2");
    // The transcript goes on: each call has its one result, and nobody works for it again.
    let next = run(&mut session, "q").await;
    assert_eq!(next.outcome.answer, "goes on");
    assert_eq!(host.store.agents_of(&session.id).unwrap().len(), 2);
    let results = session.messages().iter().flat_map(|message| &message.content);
    assert_eq!(results.filter(|block| matches!(block, Block::ToolResult { .. })).count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_cut_off_with_the_host_is_said_to_be_interrupted_and_works_no_more() {
    let place = place("");
    let script = format!(
        "name: s\nsteps:\n- {}\n- say: {}\n  delay_ms: 1000\n- say: went on\n",
        ask("dig", ""),
        "x ".repeat(60)
    );
    let model = place.script(&script);
    let mut child =
        place.command(&["run", "q", "--model", &model]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Killed as soon as the agent is on record.
    let database = place.home().join("astrarium.db");
    let began = Instant::now();
    let agents = || {
        let db = rusqlite::Connection::open_with_flags(&database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        db.query_row("select session || ' ' || parent from agents", [], |row| row.get::<_, String>(0)).ok()
    };
    let pair = loop {
        if let Some(pair) = agents() {
            break pair;
        }
        assert!(began.elapsed() < LONG && child.try_wait().unwrap().is_none(), "no agent began");
        std::thread::sleep(Duration::from_millis(20));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let (agent, parent) = pair.split_once(' ').unwrap();
    let shown = place.run(&["session", "show", parent]);
    assert!(shown.stdout.contains(&format!("agent {agent} subagent: interrupted: dig")), "{shown:?}");
    let listed = place.run(&["session", "list"]);
    assert!(listed.stdout.contains(parent) && !listed.stdout.contains(agent), "{listed:?}");
    // The agent's session is nobody's to go on with, and `--continue` is the parent's.
    let refused = place.run(&["run", "x", "--session", agent, "--model", &model]);
    assert!(refused.status != 0 && refused.stderr.contains("go on with that one"), "{refused:?}");
    // The second answer, which is due now, was the agent's slow one.
    let model = place.script("name: s\nsteps:\n- say: a\n- say: went on\n");
    let resumed = place.run(&["run", "x", "--continue", "--model", &model, "--output", "json"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    let document = resumed.json();
    assert_eq!((document["session"].as_str(), document["agents"].as_array().map(Vec::len)), (Some(parent), Some(0)));
    let shown = place.run(&["session", "show", parent, "--json"]).json();
    assert_eq!(shown["agents"].as_array().unwrap().len(), 1);
    assert!(shown.to_string().contains("may or may not have taken effect"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_fails_is_a_failed_call_and_not_a_failed_turn() {
    let place = place("");
    let host = place.host().await;
    let mut session = session(&host, |task, answers| match (task, answers) {
        ("q", 0) => Said::Calls(vec![("subagent", json!({ "task": "one" }))]),
        ("q", _) => Said::Text("without it".into()),
        _ => Said::Fails,
    });
    let done = run(&mut session, "q").await;
    assert_eq!((done.outcome.reason, done.outcome.answer.as_str()), (EndReason::Done, "without it"));
    let report = done.outputs("subagent").concat();
    assert!(report.contains("[it failed: the model is gone]"), "{report}");
    assert_eq!(done.outcome.agents[0].outcome.reason, EndReason::Failed);
    assert!(kept(&host, "ended").starts_with(" | failed | 1 | 0 | "), "{}", kept(&host, "ended"));
    let failed =
        done.events.iter().any(|event| matches!(event, Event::CallFinished(call) if call.status == CallStatus::Failed));
    assert!(failed, "the model reads it as an error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_agents_meet_the_same_hooks_rules_and_person() {
    let write = "calls: [{ tool: file_write, input: { path: notes/a.txt, content: x } }]";
    let guarded = "calls: [{ tool: file_write, input: { path: .git/hooks/x, content: x } }]";
    let place = place("permissions: { deny: [{ tool: file_write, arguments: { path: 'notes/**' } }] }\n");
    let host = place.host().await;
    let (session, done) = turn(&host, &[&ask("write", ""), write, guarded, "say: refused", "say: done"]).await;
    let report = done.outputs("subagent").concat();
    assert!(report.contains("refused by the operator's rule") && report.contains("refused by guard"), "{report}");
    assert!(report.contains("2 refused") && !place.workspace().join("notes").exists());
    // All of it is on the audit, with the kind of agent, under the agent's own session.
    let child = only_child(&host, &session).session;
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap();
    let of = |id: &str| rows.iter().filter(|row| row.entry.session == *id).map(|row| &row.entry).collect::<Vec<_>>();
    assert!(of(&child).iter().all(|entry| entry.agent == Some(AgentKind::Subagent)));
    let refused = of(&child).iter().filter(|entry| entry.kind == Kind::Call && entry.outcome == "refused").count();
    assert_eq!(refused, 2);
    assert!(of(&child).iter().any(|entry| entry.what == "step-complete"));
    for hook in ["subagent-start", "subagent-stop"] {
        let heard = of(&session).into_iter().find(|entry| entry.what == hook).unwrap();
        assert_eq!((heard.agent, heard.call.as_str()), (Some(AgentKind::Subagent), "call_1_1"), "{hook}");
    }
    let used = of(&session).iter().any(|entry| entry.kind == Kind::Capability && entry.what == "agents");
    assert!(used, "that the tool used its grant is on record with the parent's call");

    // A person is asked once for a tool that they allow for the session: agents are part of it.
    drop(host);
    place.config("language: en\ngrants:\n- { plugin: agent-watch, kv: true }\npermissions: { ask: [file_write] }\n");
    let host = place.host().await;
    let person = Arc::new(Person { says: Answer::Always, asked: Mutex::default() });
    host.ask_by(person.clone());
    let other = "calls: [{ tool: file_write, input: { path: b.txt, content: x } }]";
    turn(
        &host,
        &[&ask("write", ""), write, "say: written", &ask("write again", ""), other, "say: written", other, "say: done"],
    )
    .await;
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    assert_eq!((place.text("notes/a.txt"), place.text("b.txt")), ("x".into(), "x".into()));
    // Cancelling at such a question cancels all of the work, and not only the agent's.
    let person = Arc::new(Person { says: Answer::Cancel, asked: Mutex::default() });
    host.ask_by(person);
    let (_, done) = turn(&host, &[&ask("write", ""), write, "say: no", "say: done"]).await;
    assert_eq!(done.outcome.reason, EndReason::Cancelled);
}

struct Person {
    says: Answer,
    asked: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Asker for Person {
    async fn ask(&self, question: &Question, _: &CancellationToken) -> Option<Answer> {
        self.asked.lock().unwrap().push(question.tool.clone());
        Some(self.says.clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_plan_mode_an_agent_looks_and_changes_nothing() {
    let place = place("permissions: { mode: plan }\n");
    let host = place.host().await;
    let write = "calls: [{ tool: file_write, input: { path: a.txt, content: x } }]";
    let (_, done) = turn(&host, &[&ask("look", ""), GLOB, write, "say: looked", "say: done"]).await;
    let report = done.outputs("subagent").concat();
    assert!(report.contains("✓ glob_files") && report.contains("in plan mode nothing runs"), "{report}");
    assert!(!place.workspace().join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_says_who_the_agent_is_what_it_has_and_how_long_it_works() {
    let place = place("");
    place.file(
        ".claude/agents/digger.md",
        "---\nname: digger\ndescription: Digs in files\ntools: Read, Glob, mcp__x__y\nmaxTurns: 2\nmodel: opus\ncolor: red\n---\nYou dig DEEP.\n",
    );
    place.file(".claude/agents/broken.md", "# no agent at all\n");
    let host = place.host().await;
    let write = "calls: [{ tool: file_write, input: { path: a.txt, content: x } }]";
    let (session, done) = turn(&host, &[&ask("dig", ", agent: Digger"), GLOB, write, "say: done"]).await;
    let report = done.outputs("subagent").concat();
    assert!(report.contains("✓ glob_files") && report.contains("file_write is not among the tools"), "{report}");
    assert!(report.contains("mcp__x__y is left out") && report.contains("answers instead"), "{report}");
    let child = only_child(&host, &session);
    assert_eq!((child.agent.as_str(), child.reason.as_deref()), ("digger", Some("step-limit")));
    assert_eq!(done.outcome.agents[0].agent, "digger");
    let prefix = host.store.epoch(&child.session, None).unwrap().unwrap().prefix;
    assert!(prefix.contains("You dig DEEP.") && prefix.contains("You work on one part of a task"), "{prefix}");
    assert_eq!(kept(&host, "begins"), "digger | dig | 2");
    // The parent's tool names it, and a definition that came later can be used at once.
    let parent = host.store.epoch(&session, None).unwrap().unwrap().prefix;
    assert!(parent.contains("- digger: Digs in files") && !parent.contains("broken"), "{parent}");
    let (_, done) = turn(&host, &[&ask("x", ", agent: nobody"), "say: done"]).await;
    let refusal = done.outputs("subagent").concat();
    assert!(refusal.contains("there is no agent nobody") && refusal.contains("digger"), "{refusal}");
}

#[test]
fn agents_are_listed_and_shown_and_a_broken_one_hides_no_other() {
    let place = Place::new();
    place.file(
        ".astrarium/agents/digger.md",
        "---\nname: digger\ndescription: Digs\ntools: [read_file]\ncolor: red\n---\nYou dig.\n",
    );
    place.file(".claude/agents/digger.md", "---\nname: Digger\ndescription: other\n---\nOther.\n");
    place.file(".claude/agents/bad.md", "none");
    let ran = place.run(&["agent", "list"]);
    assert!(ran.status == 0 && ran.stdout.contains("digger") && ran.stdout.contains("workspace Digs"), "{ran:?}");
    assert!(ran.stdout.contains("explorer") && ran.stdout.contains("shipped"), "{ran:?}");
    assert!(ran.stderr.contains("bad.md is left out") && ran.stderr.contains("takes the place of"), "{ran:?}");
    let listed = place.run(&["agent", "list", "--json"]).json();
    let digger = listed.as_array().unwrap().iter().find(|agent| agent["name"] == "digger").unwrap();
    assert_eq!((&digger["tools"], &digger["owner"]), (&json!(["read_file"]), &json!("workspace")));
    let shown = place.run(&["agent", "show", "DIGGER"]);
    assert!(shown.stdout.ends_with("\nYou dig.\n") && shown.stdout.contains("color is kept"), "{shown:?}");
    assert_eq!(place.run(&["agent", "show", "nobody"]).status, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_that_fail_in_an_agent_fail_as_they_do_anywhere() {
    // A gate that traps refuses the agent's calls; an observer that traps is left alone, and counted over all agents.
    for (hook, calls) in [("pre-tool-use", 1), ("subagent-start", 3), ("subagent-stop", 3)] {
        let trap = format!("subagent {hook}");
        let place = place(&format!("plugins: {{ agent-watch: {{ config: {{ trap: {trap} }} }} }}\n"));
        let host = place.host().await;
        let mut session = session(&host, move |task, answers| match (task, answers) {
            ("q", n) if n < calls => Said::Calls(vec![("subagent", json!({ "task": "one" }))]),
            ("q", _) => Said::Text("done".into()),
            (_, 0) => Said::Calls(vec![("glob_files", json!({ "pattern": "*.fits" }))]),
            _ => Said::Text("saw".into()),
        });
        let done = run(&mut session, "q").await;
        assert_eq!(done.outcome.reason, EndReason::Done, "{trap}: {:?}", done.outcome);
        let report = done.outputs("subagent").concat();
        assert_eq!(
            report.contains("⊘ glob_files") && report.contains("refused by agent-watch"),
            calls == 1,
            "{report}"
        );
        let rows = host.store.audit_rows(&AuditFilter::default()).unwrap();
        let outcomes: Vec<_> = rows
            .iter()
            .filter(|row| row.entry.what == hook && row.entry.plugin == "agent-watch")
            .filter(|row| row.entry.agent == Some(AgentKind::Subagent))
            .map(|row| row.entry.outcome.as_str())
            .collect();
        match calls {
            1 => assert_eq!(outcomes, ["failed"]),
            _ => assert_eq!(outcomes, ["failed", "failed", "retired"], "{trap}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_over_its_window_makes_room_and_goes_on() {
    let place = place("context_window: 6000\n");
    place.file("long.txt", "a line of seven words and a number\n".repeat(2000));
    let host = place.host().await;
    let mut session = session(&host, |task, answers| match (task, answers) {
        ("q", 0) => Said::Calls(vec![("subagent", json!({ "task": "read", "tools": ["read_file"], "max_steps": 10 }))]),
        ("q", _) => Said::Text("done".into()),
        (_, n) if n < 6 => {
            Said::Calls(vec![("read_file", json!({ "path": "long.txt", "offset": n * 100 + 1, "limit": 100 }))])
        }
        _ => Said::Text("read it all".into()),
    });
    let done = tokio::time::timeout(LONG, run(&mut session, "q")).await.unwrap();
    let child = only_child(&host, &session.id);
    assert!(!host.store.compactions(&child.session).unwrap().is_empty(), "the agent's own window was full");
    assert!(host.store.compactions(&session.id).unwrap().is_empty(), "and its parent's was not");
    assert_eq!(done.outcome.reason, EndReason::Done, "{:?} {:?}", done.outcome, child);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_takes_tools_away_whole_and_puts_skills_in_front_of_the_task() {
    let place = place("permissions: { allow: [run_bash] }\n");
    place.file(
        ".astrarium/agents/careful.md",
        "---\nname: careful\ndescription: Looks\ndisallowedTools: [\"Bash(rm:*)\", Writ]\nskills: [fits, nosuch]\n---\nYou look.\n",
    );
    place.file(".astrarium/skills/fits/SKILL.md", "---\nname: fits\ndescription: FITS\n---\nMind the BSCALE key.\n");
    let host = place.host().await;
    let (session, done) = turn(
        &host,
        &[
            &ask("look", ", agent: careful"),
            "calls: [{ tool: run_bash, input: { command: 'touch made' } }]",
            "say: looked",
            "say: done",
        ],
    )
    .await;
    assert!(!place.workspace().join("made").exists(), "less than was meant is left, never more");
    let report = &done.outputs("subagent")[0];
    assert!(report.contains("disallowed-tools: Writ is left out"), "{report}");
    assert!(report.contains("skills: nosuch is left out"), "{report}");
    let child = only_child(&host, &session);
    let rows = |id: &str| {
        let filter = AuditFilter { session: Some(id.to_owned()), ..AuditFilter::default() };
        host.store.audit_rows(&filter).unwrap().into_iter().map(|row| row.entry.session).collect::<Vec<_>>()
    };
    assert!(rows(&session).contains(&child.session) && rows(&session).contains(&session), "whose work it was for");
    assert!(!rows(&child.session).contains(&session));
    let messages = host.store.messages(&child.session).unwrap();
    let at = |words: &str| messages.iter().position(|message| message.text().contains(words));
    let (skill, task) = (at("Mind the BSCALE key.").unwrap(), at("look").unwrap());
    assert!(skill < task || messages[task].text() == messages[skill].text(), "{skill} {task}");
}
