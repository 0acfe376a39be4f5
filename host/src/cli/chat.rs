//! `chat`: a conversation with a line editor. Ctrl-C cancels the turn and not the program; Ctrl-D leaves.

use super::Exit;
use super::run::{SessionArgs, answer, note_script, watch};
use super::show::Output;
use crate::host::Host;
use anyhow::{Context as _, Result};
use clap::Args;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

#[derive(Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    session: SessionArgs,
}

/// Talks until the user leaves.
pub(super) async fn chat(host: &Host, args: &ChatArgs) -> Result<Exit> {
    super::plugin::warn(host);
    let model = host.model()?;
    note_script(model.as_ref());
    let mut session = None;
    let _watching = watch(host);
    let history = host.options.home.join("history.txt");
    let mut editor = DefaultEditor::new().context("the line editor does not start; use `astrarium run` instead")?;
    // No history yet is no failure.
    let _ = editor.load_history(&history);
    eprintln!("{}; Ctrl-C cancels a turn, Ctrl-D or /exit leaves", model.name());
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
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("the terminal does not read"),
        };
        let prompt = line.trim();
        match prompt {
            "" => continue,
            "/exit" => break,
            _ => {}
        }
        let _ = editor.add_history_entry(prompt);
        let _ = editor.append_history(&history);
        let session = match &mut session {
            Some(session) => session,
            none => none.insert(host.session(args.session.which(prompt), model.clone())?),
        };
        answer(host, session, prompt, args.session.max_steps(host), Output::Text).await;
    }
    if let Some(session) = session {
        eprintln!("go on with: astrarium chat --session {}", session.id);
    }
    Ok(Exit::Done)
}
