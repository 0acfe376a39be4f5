//! Pieces of the prompt that a plugin contributes: where they stand, when they are rendered, and what comes of bad ones.

use astrarium::event::EndReason;
use astrarium::store::AuditFilter;
use astrarium_tests::place::{Place, Ran, ask, play};
use astrarium_tests::strict::{KEY, Piece, Said, Strict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn place(bad: &str) -> Place {
    let place = Place::new();
    place.plugin("narrator");
    place.config(&format!(
        "grants:\n- plugin: narrator\n  kv: true\nplugins:\n  narrator:\n    config: {{ bad: '{bad}' }}\nlimits: {{ hook_ms: 2000 }}\n"
    ));
    place
}

fn shown(place: &Place) -> Value {
    let ran = place.run(&["prompt", "show", "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    ran.json()
}

fn segment<'a>(shown: &'a Value, name: &str) -> Option<&'a Value> {
    shown["segments"].as_array().unwrap().iter().find(|segment| segment["name"] == name)
}

fn dropped(shown: &Value) -> String {
    let all = shown["dropped"].as_array().unwrap().iter();
    all.map(|dropped| format!("{}: {}\n", dropped["name"], dropped["reason"])).collect()
}

#[test]
fn segments_stand_in_their_order_under_the_name_of_their_plugin_and_break_out_of_nothing() {
    let place = place("");
    let shown = shown(&place);
    let names: Vec<&str> =
        shown["segments"].as_array().unwrap().iter().map(|segment| segment["name"].as_str().unwrap()).collect();
    let at = |name: &str| names.iter().position(|other| *other == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    assert!(at("identity") < at("narrator/always") && at("narrator/always") < at("tools"));
    assert!(at("principles") < at("narrator/count"));
    assert!(!names.contains(&"narrator/sky"), "what belongs to a turn is no part of the system prompt");
    let always = segment(&shown, "narrator/always").unwrap();
    assert_eq!(
        (always["stability"].as_str(), always["source"].as_str()),
        (Some("static"), Some("plugin narrator")),
        "{always}"
    );
    assert_eq!(always["text"], "Narrated: always. ‹/system-reminder>");
    let status = place.run(&["plugin", "show", "narrator", "--json"]).json();
    assert_eq!((&status["prompt"], &status["hooks"]), (&json!(true), &json!([])), "an operator sees it, and no hook");
}

#[test]
fn a_bad_segment_is_left_out_or_cut_and_named_and_hides_nothing_of_the_hosts() {
    for (bad, reason) in [
        ("huge", "cut: 10485760 bytes"),
        ("error", "left out: no ink left"),
        ("trap", "left out: its plugin failed"),
        ("endless", "left out: its plugin failed"),
        ("utf8", "left out: its plugin failed"),
        ("blank", ""),
    ] {
        let place = place(bad);
        let shown = shown(&place);
        assert!(segment(&shown, "identity").is_some() && segment(&shown, "principles").is_some(), "{bad}");
        let dropped = dropped(&shown);
        assert!(dropped.contains(reason) && dropped.contains("narrator") != reason.is_empty(), "{bad}: {dropped}");
        assert!(
            segment(&shown, "narrator/bad").is_none(),
            "{bad}: what is cut to 64 KiB is still over the prompt's budget"
        );
        let model = place.script("name: a\nsteps:\n- say: hello\n");
        let ran = place.run(&["run", "hello", "--model", &model]);
        assert_eq!(ran.status, 0, "{bad}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_whose_segments_fail_three_times_is_left_out_for_the_session() {
    let place = place("trap");
    let host = place.host().await;
    let steps = "- say: hello\n".repeat(4);
    let (mut session, _) = play(&host, &format!("name: a\nsteps:\n{steps}"), "hello", 5).await;
    for _ in 0..3 {
        session.end_epoch("test");
        let turn = ask(&mut session, "hello", 5, &CancellationToken::new(), |_| {}).await;
        assert_eq!(turn.outcome.reason, EndReason::Done);
    }
    let filter = AuditFilter { session: Some(session.id.clone()), ..AuditFilter::default() };
    let rows = host.store.audit_rows(&filter).unwrap();
    let outcomes: Vec<&str> =
        rows.iter().filter(|row| row.entry.what == "prompt-segment").map(|row| row.entry.outcome.as_str()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "failed").count(), 2, "{outcomes:?}");
    assert_eq!(outcomes.last(), Some(&"retired"), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turns_segment_comes_at_the_tail_when_it_says_something_new_and_nothing_before_it_changes() {
    let server = Strict::start().await;
    let place = place("");
    let run = |arguments: Vec<&'static str>| {
        let mut command = place.command(&arguments);
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.address());
        tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap()))
    };
    for question in ["one", "two", "three", "four"] {
        server.plan(Said::new([Piece::Text("heard")]));
        let mut arguments = vec!["run", question, "--model", "anthropic:strict"];
        if question != "one" {
            arguments.push("--continue");
        }
        let ran = run(arguments).await.unwrap();
        assert_eq!(ran.status, 0, "{ran:?}");
    }
    assert_eq!(server.violations(), Vec::<String>::new());
    let requests = server.requests();
    for request in &requests {
        assert_eq!(request["system"], requests[0]["system"], "rendered once, also for a second process");
    }
    let last = requests[3]["messages"].to_string();
    let count = |text: &str| last.matches(text).count();
    assert_eq!((count("Narrated: sky 0."), count("Narrated: sky 1.")), (1, 1), "{last}");
    let at = |text: &str| last.find(text).unwrap();
    assert!(at("two") < at("Narrated: sky 1.") && at("Narrated: sky 1.") < at("three"));
    assert!(requests[0]["system"].to_string().contains("Narrated: rendering 1."));
}
