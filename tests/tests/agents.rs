//! Agents that work for another one: what they are told and may do, which hooks hear of them, what is kept and counted.

use astrarium::context::AgentKind;
use astrarium::event::{EndReason, Event};
use astrarium::host::Host;
use astrarium::store::{AgentRecord, KvScope};
use astrarium::transcript::Origin;
use astrarium_tests::place::{Place, Turn, play};
use std::collections::BTreeMap;

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
