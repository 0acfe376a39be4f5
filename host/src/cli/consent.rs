//! Asking at the terminal: shows the call and offers once, always in this session, no.
//!
//! Only where standard input and standard error are a terminal: otherwise nobody is there, and the call is refused. What is
//! shown is a stranger's and stands escaped; what is not shown for its length is said.

use super::show::{Printer, note_line};
use crate::consent::{Answer, Asker, Question};
use crate::host::Host;
use crate::plain;
use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Lines of one argument that are shown.
const LINES: usize = 20;

/// Bytes of one such line.
const WIDTH: usize = 400;

/// Prints the run under way; set by [`shows`]. It must be still while a question is open.
static PRINTER: Mutex<Option<Arc<Printer>>> = Mutex::new(None);

/// The terminal, while a person sits at it.
struct Terminal;

/// Lets the host's sessions ask at the terminal, if there is one.
pub(super) fn ask_at_terminal(host: &Host) {
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        host.ask_by(Arc::new(Terminal));
    }
}

/// Names the printer of the run that begins.
pub(super) fn shows(printer: &Arc<Printer>) {
    *PRINTER.lock().unwrap_or_else(PoisonError::into_inner) = Some(printer.clone());
}

#[async_trait::async_trait]
impl Asker for Terminal {
    async fn ask(&self, question: &Question, _cancel: &CancellationToken) -> Option<Answer> {
        if let Some(printer) = &*PRINTER.lock().unwrap_or_else(PoisonError::into_inner) {
            printer.be_still();
        }
        note_line(&shown(question));
        // The editor blocks. In its raw mode Ctrl-C is a key, so a cancel by it comes through the answer.
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }
}

fn read() -> Option<Answer> {
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let mut editor = DefaultEditor::with_config(config).ok()?;
    loop {
        match editor.readline("  once (o), always in this session (a), no (n, or n and a word for the model) › ") {
            Ok(line) => match answer(&line) {
                Some(answer) => return Some(answer),
                None => note_line("  o, a or n"),
            },
            Err(ReadlineError::Interrupted) => return Some(Answer::Cancel),
            Err(ReadlineError::Eof) => return Some(Answer::No(String::new())),
            Err(_) => return None,
        }
    }
}

/// Nothing but a plain yes is a yes.
fn answer(line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_lowercase().as_str(), rest.trim()) {
        ("o" | "once", "") => Some(Answer::Once),
        ("a" | "always", "") => Some(Answer::Always),
        ("n" | "no", word) => Some(Answer::No(word.to_owned())),
        _ => None,
    }
}

fn shown(question: &Question) -> String {
    let Question { tool, plugin, input, reasons } = question;
    let one_line = |text: &str| plain::escaped(text, WIDTH);
    let mut text = format!("? may {} of the plugin {} run with this?", one_line(tool), one_line(plugin));
    match input.as_object() {
        Some(arguments) => {
            for (name, value) in arguments {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.push_str(&argument(&one_line(name), &value));
            }
        }
        None => text.push_str(&argument("input", &input.to_string())),
    }
    for (who, why) in reasons {
        let why = if why.is_empty() { String::new() } else { format!(": {}", one_line(why)) };
        text.push_str(&format!("\n  asked by {}{why}", one_line(who)));
    }
    text
}

fn argument(name: &str, value: &str) -> String {
    let lines: Vec<&str> = value.split('\n').collect();
    let mut text = String::new();
    for (number, line) in lines.iter().take(LINES).enumerate() {
        let name = if number == 0 { format!("{name}: ") } else { String::new() };
        text.push_str(&format!("\n  │ {name}{}", plain::escaped(line, WIDTH)));
        if line.len() > WIDTH {
            text.push_str(&format!(" ({} bytes of this line are not shown)", line.len() - WIDTH));
        }
    }
    if lines.len() > LINES {
        text.push_str(&format!("\n  │ ({} more lines are not shown)", lines.len() - LINES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        assert_eq!(answer(" o "), Some(Answer::Once));
        assert_eq!(answer("Always"), Some(Answer::Always));
        assert_eq!(answer("n use git instead"), Some(Answer::No("use git instead".into())));
        for line in ["", "y", "o rm", "ok", "once and for all", "1"] {
            assert_eq!(answer(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_question_shows_the_call_and_hides_nothing_silently() {
        let question = Question {
            tool: "run_bash".into(),
            plugin: "bash".into(),
            input: json!({ "command": format!("ls\u{1b}[2K\u{202e}x\n{}", "y\n".repeat(40)), "timeout_s": 3 }),
            reasons: vec![("ask: run_bash".into(), String::new()), ("guard".into(), "it\nlooks odd".into())],
        };
        let text = shown(&question).replace("\n  │ y", "");
        expect![[r#"
            ? may run_bash of the plugin bash run with this?
              │ command: ls\u{1b}[2K\u{202e}x
              │ (22 more lines are not shown)
              │ timeout_s: 3
              asked by ask: run_bash
              asked by guard: it\u{a}looks odd"#]]
        .assert_eq(&text);
    }
}
