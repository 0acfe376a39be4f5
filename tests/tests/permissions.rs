//! Permission rules through a whole host: after the hooks, before the guest, by whatever name a tool is called, and with a
//! person who can be asked or without one.

use astrarium::audit::Kind;
use astrarium::consent::{Answer, Asker, Question};
use astrarium::host::Host;
use astrarium::store::AuditFilter;
use astrarium_tests::place::{Place, Turn, play};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A person who says the same each time, and the tools they were asked about.
struct Person {
    says: Answer,
    asked: Mutex<Vec<String>>,
}

impl Person {
    fn at(host: &Host, says: Answer) -> Arc<Self> {
        let person = Arc::new(Self { says, asked: Mutex::default() });
        host.ask_by(person.clone());
        person
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Asker for Person {
    async fn ask(&self, question: &Question, _: &CancellationToken) -> Option<Answer> {
        self.asked.lock().unwrap().push(format!("{} {}", question.tool, question.input));
        Some(self.says.clone())
    }
}

async fn turn(host: &Host, steps: &[&str]) -> Turn {
    let steps: String = steps.iter().map(|call| format!("- calls: [{call}]\n")).collect();
    play(host, &format!("name: p\nsteps:\n{steps}- say: done\n"), "q", 20).await.1
}

const WRITE: &str = "{ tool: file_write, input: { path: notes/a.txt, content: x } }";
const WRITE_BY_ADDRESS: &str =
    "{ tool: call_tool, input: { name: file_write, input: { path: notes/a.txt, content: x } } }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_call_is_refused_by_its_own_name_and_by_call_tool_alike() {
    let place = Place::new();
    place.config("language: en\npermissions: { deny: [{ tool: file_write, arguments: { path: 'notes/**' } }] }\n");
    let host = place.host().await;
    let elsewhere = "{ tool: call_tool, input: { name: file_write, input: { path: b.txt, content: x } } }";
    let done = turn(&host, &[WRITE, WRITE_BY_ADDRESS, elsewhere]).await;
    let outputs = done.outputs("file_write");
    assert_eq!(outputs.len(), 3, "the record names the tool that was meant: {outputs:?}");
    assert_eq!(outputs[0], outputs[1]);
    assert!(
        outputs[0].contains("refused by the operator's rule") && outputs[0].ends_with("do not retry"),
        "{outputs:?}"
    );
    assert!(!place.workspace().join("notes").exists());
    assert_eq!(place.text("b.txt"), "x", "a rule holds for its arguments only");
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap();
    let refused = rows.iter().filter(|row| {
        let entry = &row.entry;
        entry.kind == Kind::Call && entry.what == "file_write" && entry.outcome == "refused" && !entry.rule.is_empty()
    });
    assert_eq!(refused.count(), 2, "with the rule that refused it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_judge_what_call_tool_names() {
    let place = Place::new();
    place.config("language: en\n");
    let host = place.host().await;
    let guarded = "{ tool: call_tool, input: { name: file_write, input: { path: .git/hooks/x, content: x } } }";
    let done = turn(&host, &[guarded, "{ tool: call_tool, input: { name: call_tool, input: {} } }"]).await;
    assert!(done.outputs("file_write")[0].contains("refused by guard"), "{:?}", done.outputs("file_write"));
    assert!(done.outputs("call_tool")[0].contains("call_tool cannot call itself"), "{:?}", done.outputs("call_tool"));
    assert!(!place.workspace().join(".git").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_gets_a_person_or_a_refusal_that_says_so() {
    let place = Place::new();
    place.config("language: en\npermissions: { ask: [file_write] }\n");
    let host = place.host().await;
    let alone = turn(&host, &[WRITE]).await.outputs("file_write").concat();
    assert!(alone.contains("nobody can be asked here") && alone.ends_with("do not retry"), "{alone}");
    let no = Person::at(&host, Answer::No("not in notes".into()));
    let refused = turn(&host, &[WRITE]).await.outputs("file_write").concat();
    assert!(refused.contains("the user said no to this call: not in notes"), "{refused}");
    assert!(!place.workspace().join("notes").exists());
    assert_eq!(no.asked(), [r#"file_write {"path":"notes/a.txt","content":"x"}"#]);
    let once = Person::at(&host, Answer::Once);
    turn(&host, &[WRITE, WRITE_BY_ADDRESS]).await;
    assert_eq!(once.asked().len(), 2, "once is once");
    assert_eq!(place.text("notes/a.txt"), "x");
    let always = Person::at(&host, Answer::Always);
    turn(&host, &[WRITE, WRITE_BY_ADDRESS]).await;
    assert_eq!(always.asked().len(), 1, "always is for the session");
    turn(&host, &[WRITE]).await;
    assert_eq!(always.asked().len(), 2, "and for no other session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_modes_hold() {
    let place = Place::new();
    let read = "{ tool: glob_files, input: { pattern: '**' } }";
    place.config("language: en\npermissions: { mode: strict }\n");
    let host = place.host().await;
    let person = Person::at(&host, Answer::Once);
    turn(&host, &[read, WRITE]).await;
    assert_eq!(person.asked().len(), 1, "strict asks for what may change something");
    drop(host);
    place.config("language: en\npermissions: { mode: plan, allow: [file_write] }\n");
    let host = place.host().await;
    let person = Person::at(&host, Answer::Always);
    let done = turn(&host, &[read, WRITE]).await;
    assert!(done.outputs("file_write")[0].contains("in plan mode nothing runs that may change something"));
    assert!(done.outputs("glob_files")[0].contains("notes"), "reading goes on");
    assert!(person.asked().is_empty(), "plan asks nobody");
}
