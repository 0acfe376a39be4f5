//! `run` and the demo: one prompt, one answer.

use super::show::{Output, Printer, note_line, notice};
use super::slash::{self, Asked, Prompt};
use super::wishes::PromptArgs;
use super::{Exit, consent, signals, usage};
use crate::attach::Attachment;
use crate::attachments;
use crate::event::{EndReason, Outcome};
use crate::host::{Host, Options, Which};
use crate::model::Model;
use crate::session::Session;
use crate::turn::Run;
use anyhow::{Context as _, Result};
use clap::Args;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Steps a turn may take where nothing else is said.
pub(super) const MAX_STEPS: u32 = 50;

#[derive(Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) session: SessionArgs,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
    /// The prompt; - reads it from standard input
    prompt: String,
}

#[derive(Args)]
pub(super) struct SessionArgs {
    /// Goes on with this session; the beginning of its id is enough
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    session: Option<String>,
    /// Goes on with the last session of this workspace
    #[arg(long = "continue")]
    resume: bool,
    /// Steps the turn may take before it has to answer [default: the config's, or 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Puts a text file or a picture beside the question; may be given many times
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) prompt: PromptArgs,
}

impl SessionArgs {
    pub(super) fn which<'a>(&'a self, title: &'a str) -> Which<'a> {
        match (&self.session, self.resume) {
            (Some(id), _) => Which::Named(id),
            (None, true) => Which::Latest,
            (None, false) => Which::New { title },
        }
    }

    /// The files of `--attach`.
    pub(super) fn attached(&self) -> Result<Vec<Attachment>> {
        attachments::named(&self.attach).map_err(usage)
    }

    pub(super) fn max_steps(&self, host: &Host) -> u32 {
        self.max_steps.or(host.config().max_steps).unwrap_or(MAX_STEPS)
    }
}

/// Answers one prompt.
pub(super) async fn run(host: &Host, args: &RunArgs) -> Result<Exit> {
    let prompt = match args.prompt.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("the prompt on standard input does not read as UTF-8 text")?;
            text
        }
        prompt => prompt.to_owned(),
    };
    if prompt.trim().is_empty() {
        return Err(usage("the prompt is empty; write what the agent should do"));
    }
    let question = match slash::read(host, &prompt).map_err(usage)? {
        Prompt::Question(question) => question,
        Prompt::BuiltIn(built_in, _) => return Err(usage(built_in.outside_chat())),
    };
    let files = args.session.attached()?;
    super::plugin::warn(host);
    super::memory::warn(host);
    super::prompt::warn(host);
    let model = host.model()?;
    note_script(model.as_ref());
    let mut session = host.session_with(args.session.which(&prompt), model, args.session.prompt.wishes(true)?)?;
    let _watching = watch(host, |line| note_line(&notice(&line)));
    let asked = question.asked(host, &session, files).map_err(usage)?;
    let outcome = answer(host, &mut session, asked, args.session.max_steps(host), args.output).await;
    if outcome.reason == EndReason::Cancelled {
        note_line(&format!("cancelled; what was said of the answer is kept; go on with --session {}", outcome.session));
    }
    Ok(exit(&outcome))
}

/// Runs a turn that Ctrl-C cancels. A second Ctrl-C does not wait for the hooks that hear of its end.
pub(super) async fn answer(
    host: &Host,
    session: &mut Session,
    asked: Asked,
    max_steps: u32,
    output: Output,
) -> Outcome {
    let printer = Printer::new(output);
    let sink = printer.sink();
    host.show_progress(sink.clone());
    consent::shows(&printer);
    let cancel = CancellationToken::new();
    let running = signals::run_guard(&cancel);
    let outcome = asked.turn(session, &Run { max_steps, sink: &*sink, cancel: &cancel }).await;
    drop(running);
    printer.finish(&outcome);
    outcome
}

pub(super) fn exit(outcome: &Outcome) -> Exit {
    match outcome.reason {
        EndReason::Done | EndReason::StepLimit => Exit::Done,
        EndReason::Cancelled => Exit::Cancelled,
        EndReason::Failed => Exit::Failed,
    }
}

/// Live swap during a run; without it the run goes on all the same.
pub(super) fn watch(host: &Host, told: impl Fn(String) + Send + Sync + 'static) -> Option<crate::host::Watching> {
    match host.watch(told) {
        Ok(guard) => Some(guard),
        Err(error) => {
            tracing::warn!("{error:#}");
            None
        }
    }
}

/// Nobody should take a script for a model.
pub(super) fn note_script(model: &dyn Model) {
    if model.name().starts_with("scripted:") {
        note_line(&notice(&format!("a scripted model answers ({}): it plays a file and thinks nothing", model.name())));
    }
}

/// Plays the demo over a copy of the small workspace that ships.
pub(super) async fn demo(host: &Host) -> Result<Exit> {
    let (choice, _) = host.choice();
    let source = host.options.share.join("demo/workspace");
    let folder =
        tempfile::Builder::new().prefix("astrarium-demo-").tempdir().context("cannot make a folder for the demo")?;
    let workspace = folder.path().join("workspace");
    copy(&source, &workspace).with_context(|| {
        format!("the demo's files in {} cannot be copied; `cargo xtask run` puts them there", source.display())
    })?;
    let options = Options {
        workspace,
        home: folder.path().join("home"),
        config: None,
        library: None,
        model: None,
        ..host.options.clone()
    };
    let host = Host::open(options).await?;
    super::plugin::warn(&host);
    let model = host.demo_model()?;
    note_line(&format!("Astrarium demo. A scripted model answers: it plays {} and thinks nothing.", model.name()));
    note_line("The tools and hooks are real: each call below ran in its own WebAssembly sandbox, on real files.\n");
    let prompt =
        "Look through this observing project, mend what is wrong in the reduction notes, and tell me what you did.";
    note_line(&format!("> {prompt}\n"));
    let mut session = host.session(Which::New { title: prompt }, model)?;
    let outcome = answer(&host, &mut session, Asked::text(prompt), MAX_STEPS, Output::Text).await;
    note_line(&format!(
        "\n{} tool calls ran in WASM, {} more were refused by a hook in WASM, in {} steps.",
        outcome.tool_calls - outcome.refused_calls,
        outcome.refused_calls,
        outcome.steps
    ));
    match choice.name {
        Some(name) => note_line(&format!(
            "Your model is {name} ({}). Use it: astrarium run \"…\", or astrarium chat",
            choice.rule
        )),
        None => note_line(
            "With a real model: set ANTHROPIC_API_KEY or OPENAI_API_KEY (OPENAI_BASE_URL for a local server), or name one\n\
             with --model anthropic:NAME | openai:NAME, then: cargo xtask run -- run \"…\", or cargo xtask run -- chat",
        ),
    }
    Ok(exit(&outcome))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(|_| ())?,
        }
    }
    Ok(())
}
