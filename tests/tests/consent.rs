//! A person who is asked: what they are shown, what an answer holds for, what changes meanwhile, and the terminal itself.

use astrarium::audit::{Entry, Kind};
use astrarium::config;
use astrarium::consent::{Answer, Asker, Question};
use astrarium::host::Host;
use astrarium::plugin::Settings;
use astrarium::runtime::Desk;
use astrarium::store::AuditFilter;
use astrarium::tool_call::{Calls, Consent, Finished, text_of};
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, at_a_terminal, call_with};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A person with prepared answers, who remembers the questions.
struct Person {
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<Question>>,
    /// What happens while the question is open.
    meanwhile: Box<dyn Fn() + Send + Sync>,
}

impl Person {
    fn who_says(answers: &[Answer]) -> Arc<Self> {
        Self::with(answers, || {})
    }

    fn with(answers: &[Answer], meanwhile: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let answers = Mutex::new(answers.iter().rev().cloned().collect());
        Arc::new(Self { answers, asked: Mutex::default(), meanwhile: Box::new(meanwhile) })
    }
}

#[async_trait::async_trait]
impl Asker for Person {
    async fn ask(&self, question: &Question, _: &CancellationToken) -> Option<Answer> {
        self.asked.lock().unwrap().push(question.clone());
        (self.meanwhile)();
        self.answers.lock().unwrap().pop()
    }
}

/// Calls of one session, with this person beside it.
fn beside(host: &Host, person: &Arc<Person>) -> Calls {
    let mut calls = Calls::new(host.registry.clone(), Desk::default());
    calls.consent = Arc::new(Consent::new(Some(person.clone())));
    calls
}

async fn write(calls: &Calls, host: &Host, path: &str) -> Finished {
    let input = json!({ "path": path, "content": "x" });
    call_with(calls, host, "file_write", &input, &CancellationToken::new()).await
}

fn permissions(host: &Host) -> Vec<Entry> {
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap().into_iter().map(|row| row.entry);
    rows.filter(|entry| entry.kind == Kind::Permission).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_shown_the_call_and_once_is_once() {
    let place = Place::new();
    place.config("language: en\npermissions: { ask: [file_write] }\n");
    let host = place.host().await;
    let person = Person::who_says(&[Answer::Once, Answer::No(String::new()), Answer::No("use notes/".into())]);
    let calls = beside(&host, &person);
    assert_eq!(write(&calls, &host, "a.txt").await.status, CallStatus::Ok);
    assert_eq!(place.text("a.txt"), "x");
    for (path, words) in
        [("b.txt", "said no to this call; do not retry"), ("c.txt", "said no to this call: use notes/")]
    {
        let finished = write(&calls, &host, path).await;
        assert_eq!(finished.status, CallStatus::Refused);
        assert!(text_of(&finished.parts).contains(words), "{finished:?}");
        assert!(!place.workspace().join(path).exists());
    }
    let asked = person.asked.lock().unwrap();
    assert_eq!((asked[0].tool.as_str(), asked[0].plugin.as_str()), ("file_write", "files"));
    assert_eq!(asked[0].input, json!({ "path": "a.txt", "content": "x" }));
    assert_eq!(asked[0].reasons, [("ask: file_write".to_owned(), String::new())]);
    let told: Vec<String> =
        permissions(&host).iter().map(|e| format!("{} {} {}", e.outcome, e.target, e.rule)).collect();
    assert_eq!(
        told,
        ["once file_write ask: file_write", "no file_write ask: file_write", "no file_write ask: file_write"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_holds_for_the_tool_the_rule_and_the_session() {
    let place = Place::new();
    place.config("language: en\npermissions: { ask: ['file_*'] }\n");
    let host = place.host().await;
    let person = Person::who_says(&[Answer::Always, Answer::No(String::new()), Answer::No(String::new())]);
    let calls = beside(&host, &person);
    for path in ["a.txt", "b.txt"] {
        assert_eq!(write(&calls, &host, path).await.status, CallStatus::Ok);
    }
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    let edit = json!({ "path": "a.txt", "old_text": "x", "new_text": "y" });
    let edited = call_with(&calls, &host, "file_edit", &edit, &CancellationToken::new()).await;
    assert_eq!(edited.status, CallStatus::Refused, "another tool is asked about anew");
    let other = beside(&host, &person);
    assert_eq!(write(&other, &host, "c.txt").await.status, CallStatus::Refused, "another session too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_asks_is_answered_by_a_person_and_by_none_else() {
    let place = Place::new();
    place.plugin("gate-ask").config("language: en\npermissions: { allow: ['*'] }\n");
    let host = place.host().await;
    let person = Person::who_says(&[Answer::Once, Answer::Cancel]);
    let calls = beside(&host, &person);
    assert_eq!(write(&calls, &host, "a.txt").await.status, CallStatus::Ok);
    assert_eq!(person.asked.lock().unwrap()[0].reasons[0].0, "gate-ask");
    let cancel = CancellationToken::new();
    let input = json!({ "path": "b.txt", "content": "x" });
    let finished = call_with(&calls, &host, "file_write", &input, &cancel).await;
    assert!(cancel.is_cancelled() && finished.status == CallStatus::Refused, "{finished:?}");
    assert!(!place.workspace().join("b.txt").exists());
    let nobody = Calls::new(host.registry.clone(), Desk::default());
    let text = text_of(&write(&nobody, &host, "c.txt").await.parts);
    assert!(text.contains("nobody can be asked here") && text.ends_with("do not retry"), "{text}");
    let told: Vec<String> = permissions(&host).into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(told, ["once", "cancelled", "nobody"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changed_while_a_person_thought_does_not_run() {
    let place = Place::new();
    place.config("language: en\npermissions: { ask: [file_write] }\n");
    let host = Arc::new(place.host().await);
    let (home, refreshed) = (place.home(), host.clone());
    let person = Person::with(&[Answer::Once], move || {
        config::set_disabled(&home, "files", true).unwrap();
        let disabled = config::disabled(&home).unwrap();
        refreshed.registry.set_settings(Settings { disabled, ..refreshed.registry.settings() });
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(refreshed.registry.refresh()));
    });
    let calls = beside(&host, &person);
    let finished = write(&calls, &host, "a.txt").await;
    assert_eq!(finished.status, CallStatus::Refused);
    assert!(text_of(&finished.parts).contains("changed while the user was asked"), "{finished:?}");
    assert!(!place.workspace().join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_is_written_takes_effect_while_the_host_runs() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    let (sender, mut changed) = tokio::sync::mpsc::unbounded_channel();
    let _watching = host.watch(move |line| drop(sender.send(line))).unwrap();
    let calls = Calls::new(host.registry.clone(), Desk::default());
    assert_eq!(write(&calls, &host, "a.txt").await.status, CallStatus::Ok);
    place.config("language: en\npermissions: { deny: [file_write] }\n");
    while changed.recv().await.is_some_and(|line| !line.contains("permission")) {}
    assert_eq!(write(&calls, &host, "a.txt").await.status, CallStatus::Refused);
    assert_eq!(permissions(&host).last().unwrap().what, "rules");
}

#[test]
fn the_program_takes_a_mode_and_refuses_bad_rules() {
    let place = Place::new();
    place.config("language: en\n");
    let write = r#"{"path":"a.txt","content":"x"}"#;
    let refused = place.run(&["tool", "call", "file_write", write, "--permission-mode", "plan"]);
    assert!(refused.status == 3 && refused.stderr.contains("plan mode"), "{refused:?}");
    assert_eq!(place.run(&["plugin", "list", "--permission-mode", "yolo"]).status, 2);
    for (rules, words) in [
        ("deny: [{ tols: x }]", "names no tool"),
        ("deny: [{ tool: x, when: {} }]", "unknown key \"when\""),
        ("mode: yolo", "yolo"),
    ] {
        place.config(&format!("permissions: {{ {rules} }}\n"));
        let ran = place.run(&["plugin", "list"]);
        assert!(ran.status == 2 && ran.stderr.contains(words) && ran.stderr.contains("line 1"), "{rules}: {ran:?}");
    }
}

/// The end of the question.
const CUE: &str = "a word for the model) › ";

#[test]
fn a_terminal_shows_the_call_and_takes_the_answer() {
    let place = Place::new();
    place.config("language: en\npermissions: { ask: [file_write] }\n");
    let run = |path: &str, typed: &str| {
        let call = json!({ "path": path, "content": "x" }).to_string();
        at_a_terminal(&place, &["tool", "call", "file_write", &call], CUE, typed)
    };
    let (status, shown) = run("yes.txt", "o\r");
    assert_eq!(status, 0, "{shown}");
    assert!(shown.contains("may file_write of the plugin files run") && shown.contains("path: yes.txt"), "{shown}");
    assert_eq!(place.text("yes.txt"), "x");
    let (status, shown) = run("no.txt", "n not that one\r");
    assert!(status == 3 && shown.contains("said no to this call: not that one"), "{status} {shown}");
    let (status, shown) = run("interrupted.txt", "\u{3}");
    assert_eq!(status, 130, "{shown}");
    assert!(!place.workspace().join("no.txt").exists() && !place.workspace().join("interrupted.txt").exists());
    // In a run of a model too, and for the rest of it.
    let write = |path: &str| format!("{{ tool: file_write, input: {{ path: {path}, content: x }} }}");
    let steps = format!("name: t\nsteps:\n- calls: [{}, {}]\n- say: finished\n", write("1.txt"), write("2.txt"));
    let (status, shown) = at_a_terminal(&place, &["run", "go", "--model", &place.script(&steps)], CUE, "a\r");
    assert!(status == 0 && shown.contains("finished"), "{status} {shown}");
    assert_eq!(shown.matches("may file_write of the plugin").count(), 1, "{shown}");
    assert!(place.workspace().join("1.txt").exists() && place.workspace().join("2.txt").exists());
}
