//! What the operator's config says of models, as the program acts on it: who stands in, how long a silence may be, how large
//! the window is, and what a summary is to mind.

use astrarium_tests::place::{Place, Ran};
use astrarium_tests::strict::{Form, KEY, Piece, Plan, Said, Strict};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// With both vendors at `server`.
fn at(server: &Strict, mut command: Command) -> Command {
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.address());
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{}/v1", server.address()));
    command
}

async fn run(mut command: Command) -> Ran {
    tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fallback_of_the_config_answers_after_three_overloads() {
    let (place, server) = (Place::new(), Strict::start().await);
    place.config("fallback_model: openai:strict-2\nretry: { first_wait_ms: 1, longest_wait_ms: 2 }\n");
    for _ in 0..3 {
        let message = "overloaded".to_owned();
        server.plan(Plan::Status { status: 529, kind: "overloaded_error", message, retry_after: None });
    }
    server.plan(Said::new([Piece::Text("I stand in")]));
    let ran = run(at(&server, place.command(&["run", "hello", "--model", "anthropic:strict-1"]))).await;
    assert_eq!((ran.status, ran.stdout.trim()), (0, "I stand in"), "{ran:?}");
    assert!(ran.stderr.contains("anthropic:strict-1 is overloaded; openai:strict-2 answers"), "{ran:?}");
    let models: Vec<String> =
        server.requests().iter().map(|request| request["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(models, ["strict-1", "strict-1", "strict-1", "strict-2"]);
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_given_up_after_the_seconds_of_the_config() {
    let (place, server) = (Place::new(), Strict::start().await);
    place.config("retry: { attempts: 1, silence_s: 1 }\n");
    server.plan(Said::new([Piece::Text("half an answer")]).form(Form { stall: Some(400), ..Form::default() }));
    let ran = run(at(&server, place.command(&["run", "hello", "--model", "anthropic:strict-1"]))).await;
    assert!(ran.status == 1 && ran.stderr.contains("1 s"), "{ran:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_window_that_the_config_names_for_a_model_is_the_one_that_fills() {
    let place = Place::new();
    let mut script = String::from("name: t\nat_limit: \"<summary>1. Goal: kept</summary>\"\nsteps:\n");
    for step in 0..12 {
        place.file(&format!("{step}.txt"), format!("{step}\n{}", "measured once more\n".repeat(400)));
        writeln!(script, "- calls: [{{ tool: read_file, input: {{ path: {step}.txt }} }}]").unwrap();
    }
    script.push_str("- say: done\n");
    let model = place.script(&script);
    let compactions = || {
        let ran = place.run(&["run", "measure", "--model", &model, "--output", "stream-json", "--max-steps", "40"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == "compacted").count()
    };
    place.config(&format!("context_windows: {{ '{model}': 16000 }}\n"));
    assert!(compactions() > 0);
    place.config("context_windows: { 'scripted:another': 16000 }\n");
    assert_eq!(compactions(), 0, "another model's window is none of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_behind_compact_reaches_the_question_for_the_summary() {
    let (place, server) = (Place::new(), Strict::start().await);
    place.config("language: en\n");
    // A file for the question that says nothing is no question.
    let texts = place.home().join("personas/compact");
    std::fs::create_dir_all(&texts).unwrap();
    std::fs::write(texts.join("summary-request.en.md"), " \n").unwrap();
    for step in 0..12 {
        place.file(&format!("{step}.txt"), format!("{step} {}", "measured ".repeat(600)));
        let (id, input) = (format!("toolu_{step}").leak(), format!("{{\"path\":\"{step}.txt\"}}").leak());
        server.plan(Said::new([Piece::Call(id, "read_file", input)]));
    }
    server.plan(Said::new([Piece::Text("measured")]));
    server.plan(Said::new([Piece::Text("<summary>1. Goal: measure</summary>")]));
    server.plan(Said::new([Piece::Text("still here")]));
    let command = place.command(&["chat", "--model", "anthropic:strict-1", "--max-steps", "30"]);
    let mut command = at(&server, command);
    let ran = tokio::task::spawn_blocking(move || {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"measure\n/compact keep field 7\nand now?\n").unwrap();
        Ran::of(child.wait_with_output().unwrap())
    });
    let ran = ran.await.unwrap();
    assert!(ran.status == 0 && ran.stdout.contains("still here"), "{ran:?}");
    assert!(ran.stdout.contains("compacted (") || ran.stderr.contains("compacted ("), "{ran:?}");
    let requests = server.requests();
    let [.., summary, after] = &requests[..] else { panic!("{}", requests.len()) };
    let last = summary["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("mind especially") && last.contains("keep field 7"), "{last}");
    assert!(last.contains("under exactly these five headings"), "the question that ships is asked: {last}");
    assert!(ran.stderr.contains("the text summary-request is empty"), "{ran:?}");
    assert!(after.to_string().contains("Goal: measure"));
    assert_eq!((server.violations(), server.unused()), (vec![], 0));
}
