//! What a prompt turns out to be: a question, a command of the program, or a prompt command or skill that becomes a question.
//!
//! The same for `chat` and `run`. Names of the program's own commands come first, then those of command files, then skills.

use super::builtins::{self, BuiltIn};
use super::show::{note_line, notice};
use crate::agent;
use crate::attach::{self, Attachment, Room};
use crate::attachments;
use crate::command::{self, Command, fill, nearest, slash};
use crate::commands::{self, Commands, Found};
use crate::event::Outcome;
use crate::host::Host;
use crate::plain::one_line;
use crate::session::Session;
use crate::skill::Mode;
use crate::skills::{Live, Owner};
use crate::subagent::Fitted;
use crate::tool_call::Narrowed;
use crate::turn::{self, Run};
use std::sync::Arc;

/// What a prompt turned out to be.
pub(super) enum Prompt<'a> {
    /// Something for the model.
    Question(Question<'a>),
    /// A command of the program, and its arguments.
    BuiltIn(BuiltIn, &'a str),
}

/// Something for the model, before there is a session.
pub(super) enum Question<'a> {
    /// As it is typed.
    Text(&'a str),
    /// A command file, and its arguments.
    Command(Box<Found>, &'a str),
    /// A skill, and its arguments.
    Skill(Arc<Live>, &'a str),
}

/// A question as the turn takes it.
pub(super) struct Asked {
    /// What goes on record.
    pub question: turn::Question,
    /// Who answers, where it is not the session's model.
    pub model: Option<Fitted>,
    /// Tools that may be called meanwhile, where it is not all of them.
    pub only: Option<Narrowed>,
}

impl Asked {
    /// A plain question.
    pub(super) fn text(text: &str) -> Self {
        Self { question: text.into(), model: None, only: None }
    }

    /// Has it answered in `session`, whose model and tools are its own again afterwards.
    pub(super) async fn turn(self, session: &mut Session, run: &Run<'_>) -> Outcome {
        let Asked { question, model, only } = self;
        session.calls.only = only;
        let own = model.map(|model| session.answered_by(model));
        let outcome = turn::run(session, question, run).await;
        if let Some(own) = own {
            session.answered_by(own);
        }
        session.calls.only = None;
        outcome
    }
}

impl Question<'_> {
    /// As the turn takes it, with the files of the command line and those that the person's own words mention. A command's
    /// file mentions none: it may be a stranger's. The error is one line for the user.
    pub(super) fn asked(&self, host: &Host, session: &Session, mut files: Vec<Attachment>) -> Result<Asked, String> {
        let (mut asked, typed) = match self {
            Question::Text(text) => (Asked::text(text), text),
            Question::Command(found, arguments) => (expand(host, session, found, arguments), arguments),
            Question::Skill(live, arguments) => (load(session, live, arguments)?, arguments),
        };
        let (mentioned, left_out) = attachments::mentioned(&host.options.workspace, &host.kept_out(), typed);
        files.extend(mentioned);
        let room = Room::left(session.window().tokens, session.conversation().iter().map(|message| &**message));
        let (attached, cut) = attach::message(&files, room, session.texts(), session.tokenizer());
        for line in left_out.iter().chain(&cut) {
            note_line(&notice(line));
        }
        asked.question.attached = attached;
        Ok(asked)
    }
}

/// All command files; what is wrong with some is said.
pub(super) fn commands(host: &Host) -> Commands {
    let commands = commands::read(&host.options.command_roots(), &builtins::names());
    commands.problems.iter().for_each(|line| note_line(&notice(line)));
    commands
}

/// Reads a prompt. The error names the command that was probably meant.
pub(super) fn read<'a>(host: &Host, prompt: &'a str) -> Result<Prompt<'a>, String> {
    let Some(slash) = slash(prompt) else { return Ok(Prompt::Question(Question::Text(prompt.trim()))) };
    if let Some(built_in) = BuiltIn::named(slash.name) {
        return Ok(Prompt::BuiltIn(built_in, slash.arguments));
    }
    let mut commands = commands(host);
    if let Some(found) = commands.found.remove(slash.name) {
        return Ok(Prompt::Question(Question::Command(Box::new(found), slash.arguments)));
    }
    let skills = host.skills.snapshot();
    match skills.get(slash.name) {
        Some(live) if live.skill.user_invocable => {
            return Ok(Prompt::Question(Question::Skill(live.clone(), slash.arguments)));
        }
        Some(live) if live.skill.disable_model_invocation => {
            return Err(format!(
                "the skill {} is for nobody: its author set both disable-model-invocation: true and user-invocable: false; \
                 take out one of them",
                live.skill.name
            ));
        }
        Some(live) => {
            return Err(format!(
                "the skill {} is for the model only: its author set user-invocable: false",
                live.skill.name
            ));
        }
        None => {}
    }
    let names = builtins::names().into_iter().chain(commands.found.keys().map(String::as_str));
    let called = skills.skills().filter(|live| live.skill.user_invocable);
    let names = names.chain(called.map(|live| live.key.as_str()));
    let meant = nearest(slash.name, names).map_or_else(String::new, |name| format!("; did you mean /{name}?"));
    Err(format!(
        "there is no command /{}{meant} (/help in a chat lists them; a prompt that begins with a space is sent as it is)",
        one_line(slash.name, 80)
    ))
}

/// The question that a skill makes: its body, as `load_skill` would give it to the model.
fn load(session: &Session, live: &Live, arguments: &str) -> Result<Asked, String> {
    let text = session.skills.called(&live.key, arguments, session.texts()).map_err(|error| error.to_string())?;
    // What a fork is answered by, its own agent knows.
    let asked = live.skill.model.as_deref().filter(|model| *model != "inherit" && live.skill.context == Mode::Inline);
    let model = asked.and_then(|asked| model(session, &live.key, asked, live.owner));
    Ok(Asked { question: command::message(&live.key, arguments, &text).into(), model, only: None })
}

/// The question that a command file makes.
fn expand(host: &Host, session: &Session, found: &Found, arguments: &str) -> Asked {
    let Command { name, body, findings, model, .. } = &found.command;
    for finding in findings {
        note_line(&notice(&format!("{}:{}: {}", found.file.display(), finding.line, finding.text)));
    }
    Asked {
        question: command::message(name, arguments, &fill(body, arguments)).into(),
        model: model.as_deref().and_then(|asked| self::model(session, name, asked, found.owner)),
        only: only(host, &found.command),
    }
}

/// The model that a command or skill asks for. One that does not open is said, and the session's answers.
fn model(session: &Session, command: &str, asked: &str, owner: Owner) -> Option<Fitted> {
    let own = session.model.name();
    match session.staff.model(asked, own, owner == Owner::Workspace) {
        Ok(fitted) if fitted.model.name() == own => None,
        Ok(fitted) => {
            note_line(&format!("{} answers /{command}", fitted.model.name()));
            Some(fitted)
        }
        Err(reason) => {
            let said = format!("/{command} asks for the model {asked}, which does not open: {reason}; {own} answers");
            note_line(&notice(&said));
            None
        }
    }
}

/// The tools that a command is confined to. Names that no tool has are said; when none is left, none may be called: a limit
/// that was written wrongly is still one.
fn only(host: &Host, command: &Command) -> Option<Narrowed> {
    if !command.limits_tools {
        return None;
    }
    let snapshot = host.registry.snapshot();
    let (tools, left_out) = agent::tools(&command.allowed_tools, |name| snapshot.tool(name).is_some());
    if !left_out.is_empty() {
        let rest = if tools.is_empty() { "; no tool may be called" } else { "" };
        let said = format!("allowed-tools of /{}: {}{rest}", command.name, left_out.join("; "));
        note_line(&notice(&said));
    }
    Some(Narrowed { by: format!("/{}", command.name), tools })
}
