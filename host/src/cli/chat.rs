//! `chat`: a conversation with a line editor. Ctrl-C cancels the turn and not the program; Ctrl-D leaves; `/help` lists the
//! commands.
//!
//! Where standard input is no terminal, each line of it is a question, and the exit status is that of the last one: a
//! script must see that it failed, a person has seen it.

use super::Exit;
use super::builtins::{self, Flow};
use super::run::{SessionArgs, answer, exit, note_script, watch};
use super::show::{Output, Printer, note_line, notice};
use super::signals;
use super::slash::{self, Prompt};
use super::wishes::PromptArgs;
use crate::compact::Trigger;
use crate::compaction::{self, Work};
use crate::config::Config;
use crate::event::EndReason;
use crate::host::{Host, Which};
use crate::model::Model;
use crate::prompt::effective::Wishes;
use crate::session::Session;
use crate::transcript::Usage;
use anyhow::{Context as _, Result};
use clap::Args;
use rustyline::error::{ReadlineError, Signal};
use rustyline::{DefaultEditor, ExternalPrinter as _};
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    session: SessionArgs,
}

/// A conversation under way.
pub(super) struct Talk<'a> {
    /// Where all is.
    pub host: &'a Host,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Its name, where it was named in this chat.
    pub named: Option<String>,
    /// The config that it was opened by.
    pub config: Arc<Config>,
    /// What the command line says of the prompt.
    pub prompt: &'a PromptArgs,
    /// The session; none before the first question, which is its title.
    pub session: Option<Session>,
    wishes: Wishes,
}

impl Talk<'_> {
    /// Opens a session for this conversation.
    pub(super) fn open(&self, which: Which<'_>) -> Result<Session> {
        self.host.session_with(which, self.model.clone(), self.wishes.clone())
    }

    /// Opens the model anew where the operator's file has changed since it was opened: for the next session.
    pub(super) fn renew(&mut self) -> Result<()> {
        let config = self.host.config();
        if config != self.config {
            self.model = match &self.named {
                Some(name) => self.host.model_named(name)?,
                None => self.host.model()?,
            };
            self.config = config;
        }
        Ok(())
    }

    /// Makes room because the user asks for it; Ctrl-C cancels it.
    pub(super) async fn compact(&mut self, instructions: &str) {
        let Some(session) = &mut self.session else { return note_line("there is no conversation yet to compact") };
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
}

/// Talks until the user leaves.
pub(super) async fn chat(host: &Host, args: &ChatArgs) -> Result<Exit> {
    super::plugin::warn(host);
    super::memory::warn(host);
    super::prompt::warn(host);
    slash::commands(host);
    let model = host.model()?;
    note_script(model.as_ref());
    // They go with the first question.
    let mut files = args.session.attached()?;
    let prompt = &args.session.prompt;
    let mut talk =
        Talk { host, model, named: None, config: host.config(), prompt, session: None, wishes: prompt.wishes(false)? };
    match args.session.which("") {
        Which::New { .. } => {}
        which => talk.session = Some(talk.open(which)?),
    }
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
    note_line(&format!("{}; Ctrl-C cancels a turn, Ctrl-D or /exit leaves, /help lists commands", talk.model.name()));
    if let Some(session) = &talk.session {
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
        let prompt = line.trim_end();
        if prompt.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(prompt);
        let _ = editor.append_history(&history);
        let question = match slash::read(host, prompt) {
            Ok(Prompt::Question(question)) => question,
            Ok(Prompt::BuiltIn(built_in, arguments)) => match builtins::run(&mut talk, built_in, arguments).await? {
                Flow::On => continue,
                Flow::Leave => break,
            },
            Err(unknown) => {
                note_line(&unknown);
                last = Exit::Usage;
                continue;
            }
        };
        if talk.session.is_none() {
            talk.session = Some(talk.open(Which::New { title: prompt })?);
        }
        let Some(session) = &mut talk.session else { continue };
        let asked = match question.asked(host, session, std::mem::take(&mut files)) {
            Ok(asked) => asked,
            Err(reason) => {
                note_line(&notice(&reason));
                last = Exit::Usage;
                continue;
            }
        };
        let outcome = answer(host, session, asked, args.session.max_steps(host), Output::Text).await;
        if outcome.reason == EndReason::Cancelled {
            note_line("cancelled; what was said of the answer is kept");
        }
        last = exit(&outcome);
    }
    if let Some(session) = talk.session {
        note_line(&format!("go on with: astrarium chat --session {}", session.id));
    }
    Ok(if std::io::stdin().is_terminal() { Exit::Done } else { last })
}
