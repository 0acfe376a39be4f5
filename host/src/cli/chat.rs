//! `chat`: a conversation with a line editor. Ctrl-C cancels the turn and not the program; Ctrl-D leaves; `/compact` makes
//! room in the window.
//!
//! Where standard input is no terminal, each line of it is a question, and the exit status is that of the last one: a
//! script must see that it failed, a person has seen it.

use super::Exit;
use super::run::{SessionArgs, answer, exit, note_script, watch};
use super::show::{Output, Printer, note_line, notice};
use super::signals;
use crate::compact::Trigger;
use crate::compaction::{self, Work};
use crate::event::EndReason;
use crate::host::{Host, Which};
use crate::session::Session;
use crate::transcript::Usage;
use anyhow::{Context as _, Result};
use clap::Args;
use rustyline::error::{ReadlineError, Signal};
use rustyline::{DefaultEditor, ExternalPrinter as _};
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    session: SessionArgs,
}

/// Talks until the user leaves.
pub(super) async fn chat(host: &Host, args: &ChatArgs) -> Result<Exit> {
    super::plugin::warn(host);
    super::memory::warn(host);
    let model = host.model()?;
    note_script(model.as_ref());
    let wishes = args.session.prompt.wishes(false)?;
    let mut session = match args.session.which("") {
        // A new one begins with its first question, which is its title.
        Which::New { .. } => None,
        which => Some(host.session_with(which, model.clone(), wishes.clone())?),
    };
    let history = host.options.home.join("history.txt");
    let mut editor = DefaultEditor::new().context("the line editor does not start; use `astrarium run` instead")?;
    // No history yet is no failure.
    let _ = editor.load_history(&history);
    // Through the editor's own printer, so that a notice does not overwrite the line being typed.
    let printer = editor.create_external_printer().ok().map(Mutex::new);
    let _watching = watch(host, move |line| match &printer {
        Some(printer) => {
            let _ = printer.lock().unwrap_or_else(PoisonError::into_inner).print(format!("{}\n", notice(&line)));
        }
        None => note_line(&notice(&line)),
    });
    note_line(&format!("{}; Ctrl-C cancels a turn, Ctrl-D or /exit leaves", model.name()));
    if let Some(session) = &session {
        note_line(&format!("going on with {} after {} messages", session.id, session.messages().len()));
    }
    let mut last = Exit::Done;
    loop {
        // The editor blocks, so it must not sit on an async thread.
        let (back, line) = tokio::task::spawn_blocking(move || {
            let line = editor.readline("› ");
            (editor, line)
        })
        .await
        .context("the line editor failed")?;
        editor = back;
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            // While a line is edited the editor takes the signal; no run is under way then.
            Err(ReadlineError::Signal(signal)) if signal != Signal::Resize => return Ok(Exit::Cancelled),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("the terminal does not read"),
        };
        let prompt = line.trim();
        if prompt.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(prompt);
        let _ = editor.append_history(&history);
        match command(prompt) {
            Some(("exit" | "quit", _)) => break,
            Some(("compact", instructions)) => {
                match &mut session {
                    Some(session) => compact(session, instructions).await,
                    None => note_line("there is no conversation yet to compact"),
                }
                continue;
            }
            Some((other, _)) => {
                note_line(&format!(
                    "there is no /{other}; /compact [INSTRUCTIONS] makes room, /exit leaves, anything else is a question"
                ));
                continue;
            }
            None => {}
        }
        let session = match &mut session {
            Some(session) => session,
            none => none.insert(host.session_with(Which::New { title: prompt }, model.clone(), wishes.clone())?),
        };
        let outcome = answer(host, session, prompt, args.session.max_steps(host), Output::Text).await;
        if outcome.reason == EndReason::Cancelled {
            note_line("cancelled; what was said of the answer is kept");
        }
        last = exit(&outcome);
    }
    if let Some(session) = session {
        note_line(&format!("go on with: astrarium chat --session {}", session.id));
    }
    Ok(if std::io::stdin().is_terminal() { Exit::Done } else { last })
}

/// Makes room because the user asks for it; Ctrl-C cancels it.
async fn compact(session: &mut Session, instructions: &str) {
    let printer = Printer::new(Output::Text);
    let sink = printer.sink();
    let cancel = CancellationToken::new();
    let running = signals::run_guard(&cancel);
    let work = Work { step: 0, sink: &*sink, cancel: &cancel };
    let mut spent = Usage::default();
    let done = compaction::compact(session, Trigger::Manual, instructions, &mut spent, &work).await;
    drop(running);
    if let Err(failure) = done {
        note_line(&notice(&failure.to_string()));
    }
}

/// The word of a `/word` and what follows it. A path such as `/data/a.fits` is a question.
fn command(prompt: &str) -> Option<(&str, &str)> {
    let rest = prompt.strip_prefix('/')?;
    let (word, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    is_word.then_some((word, arguments.trim()))
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_slash_word_is_a_command_and_a_path_is_not() {
        assert_eq!(command("/exit"), Some(("exit", "")));
        assert_eq!(command("/compact  keep the paths"), Some(("compact", "keep the paths")));
        assert_eq!(command("/data/a.fits"), None);
        assert_eq!(command("/data/a.fits shows what?"), None);
        assert_eq!(command("/"), None);
        assert_eq!(command("what is /exit"), None);
    }
}
