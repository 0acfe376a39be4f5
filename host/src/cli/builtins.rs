//! The program's own commands in a chat, one line of a table each; what is not in the table is not there.

use super::chat::Talk;
use super::show::{note_line, notice, print_line};
use super::{memory, plugin, prompt, skill, slash};
use crate::command::Command;
use crate::host::Which;
use crate::plain::one_line;
use crate::skill::listing;
use anyhow::Result;

/// One of the program's own commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuiltIn {
    Help,
    Clear,
    Compact,
    Model,
    Plugins,
    Skills,
    Memory,
    Cost,
    Prompt,
    Exit,
}

/// How one is called, what it does, and what does the same without a chat.
struct Line(BuiltIn, &'static str, &'static str, &'static str, &'static str);

const TABLE: [Line; 10] = [
    Line(BuiltIn::Help, "help", "", "lists the commands", "astrarium --help"),
    Line(BuiltIn::Clear, "clear", "", "begins a new conversation; the old one is kept", "astrarium run"),
    Line(BuiltIn::Compact, "compact", "[INSTRUCTIONS]", "makes room in the window", "astrarium chat"),
    Line(BuiltIn::Model, "model", "[MODEL]", "shows or changes who answers", "--model"),
    Line(BuiltIn::Plugins, "plugins", "[NAME]", "shows what runs, and what it may touch", "astrarium plugin list"),
    Line(BuiltIn::Skills, "skills", "[NAME]", "shows the skills", "astrarium skill list"),
    Line(BuiltIn::Memory, "memory", "[NAME]", "shows what is known beyond this session", "astrarium memory list"),
    Line(BuiltIn::Cost, "cost", "", "shows what this conversation has cost", "astrarium session show ID"),
    Line(BuiltIn::Prompt, "prompt", "", "shows what the model is sent in front", "astrarium prompt show"),
    Line(BuiltIn::Exit, "exit", "", "leaves", "astrarium run"),
];

/// Another word for `exit`.
const QUIT: &str = "quit";

/// Names that no command file can have.
pub(super) fn names() -> Vec<&'static str> {
    TABLE.iter().map(|line| line.1).chain([QUIT]).collect()
}

impl BuiltIn {
    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = if name == QUIT { "exit" } else { name };
        TABLE.iter().find(|line| line.1 == name).map(|line| line.0)
    }

    /// Why it is not for `run`, and what is.
    pub(super) fn outside_chat(self) -> String {
        let line = TABLE.iter().find(|line| line.0 == self).map_or(("", ""), |line| (line.1, line.4));
        format!("/{} is for a chat; here use {}", line.0, line.1)
    }
}

/// Whether the chat goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// It does.
    On,
    /// The user leaves.
    Leave,
}

/// Does what the user asks for. A mistake is said and ends nothing.
pub(super) async fn run(talk: &mut Talk<'_>, built_in: BuiltIn, arguments: &str) -> Result<Flow> {
    let named = (!arguments.is_empty()).then(|| arguments.to_owned());
    let json = false;
    let done = match built_in {
        BuiltIn::Exit => return Ok(Flow::Leave),
        BuiltIn::Help => {
            help(talk);
            Ok(())
        }
        BuiltIn::Clear => {
            clear(talk);
            talk.renew()
        }
        BuiltIn::Compact => {
            talk.compact(arguments).await;
            Ok(())
        }
        BuiltIn::Model => model(talk, arguments)?,
        BuiltIn::Cost => cost(talk),
        BuiltIn::Prompt => {
            let id = talk.session.as_ref().map(|session| session.id.as_str());
            prompt::show(talk.host, id, talk.prompt, json).await
        }
        BuiltIn::Plugins => {
            let command = match named {
                Some(name) => plugin::PluginCommand::Show { name, json },
                None => plugin::PluginCommand::List { json },
            };
            plugin::read(talk.host, &command).map(|_| ())
        }
        BuiltIn::Skills => {
            let command = match named {
                Some(name) => skill::SkillCommand::Show { name, json },
                None => skill::SkillCommand::List { json },
            };
            skill::skill(&talk.host.options, &command).map(|_| ())
        }
        BuiltIn::Memory => {
            let command = match named {
                Some(name) => memory::MemoryCommand::Show { name, json },
                None => memory::MemoryCommand::List { all: false, json },
            };
            memory::memory(talk.host, &command).map(|_| ())
        }
    };
    if let Err(error) = done {
        note_line(&notice(&format!("{error:#}")));
    }
    Ok(Flow::On)
}

fn help(talk: &Talk<'_>) {
    let line = |name: &str, hint: &str, about: &str| {
        let called = format!("/{name} {hint}");
        print_line(&one_line(&format!("{called:<28} {about}"), 160));
    };
    for Line(_, name, hint, about, _) in &TABLE {
        line(name, hint, about);
    }
    for (name, found) in &slash::commands(talk.host).found {
        let Command { argument_hint, description, .. } = &found.command;
        line(name, argument_hint.as_deref().unwrap_or_default(), &format!("{description} ({})", found.owner.word()));
    }
    for live in talk.host.skills.snapshot().skills().filter(|live| live.skill.user_invocable) {
        let hint = live.skill.argument_hint.as_deref().unwrap_or_default();
        let about = listing::described(&live.skill, talk.host.language());
        line(&live.key, hint, &format!("{about} (skill, {})", live.owner.word()));
    }
    print_line("anything else is a question; a prompt that begins with a space is sent as it is");
}

/// The lock of the old conversation goes with it, so another process may go on with it.
fn clear(talk: &mut Talk<'_>) {
    match talk.session.take() {
        Some(session) => note_line(&format!(
            "a new conversation begins with your next question; the old one: astrarium chat --session {}",
            session.id
        )),
        None => note_line("there is no conversation yet"),
    }
}

/// Only what leaves no session open is an error of the chat.
fn model(talk: &mut Talk<'_>, name: &str) -> Result<Result<()>> {
    if name.is_empty() {
        print_line(&one_line(talk.model.name(), usize::MAX));
        return Ok(Ok(()));
    }
    let model = match talk.host.model_named(name) {
        Ok(model) => model,
        Err(error) => return Ok(Err(error)),
    };
    (talk.model, talk.named, talk.config) = (model, Some(name.to_owned()), talk.host.config());
    // Opened anew, since window, prices and what stands in front are the model's. Closed first, for the lock.
    if let Some(id) = talk.session.take().map(|session| session.id.clone()) {
        talk.session = Some(talk.open(Which::Named(&id))?);
    }
    note_line(&format!("{} answers from now on", talk.model.name()));
    Ok(Ok(()))
}

fn cost(talk: &Talk<'_>) -> Result<()> {
    let Some(session) = &talk.session else {
        note_line("there is no conversation yet");
        return Ok(());
    };
    let usage = session.store.usage(&session.id)?;
    print_line(&format!(
        "tokens: {} fresh, {} read from cache, {} written to it, {} answered",
        usage.input, usage.cache_read, usage.cache_write, usage.output
    ));
    let model = one_line(session.model.name(), 120);
    print_line(&match session.price {
        Some(price) => format!("cost: {:.4}, at the prices of {model} in the config", price.of(usage)),
        None => format!("cost: unknown; write what {model} costs under prices: in astrarium.yaml"),
    });
    Ok(())
}
