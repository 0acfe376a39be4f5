//! What the host says to the model between steps: the task list is left alone, nothing new comes, one call is repeated, or a
//! call was cut at the output limit.
//! When it is said is decided elsewhere, by pure rules; here it is put into words and on record.

use super::{Halt, Tally};
use crate::prompt;
use crate::prompt::nudge::{Nudge, Step};
use crate::session::Session;
use crate::stop::Repeated;
use crate::transcript::{Block, Message, Origin, Reply};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Speaks up when the task list is left alone or the steps bring nothing new; each once (SPEC 1.15).
pub(super) fn nudge(session: &mut Session, tally: &mut Tally) -> Result<(), Halt> {
    let written = session.store.tasks_written(&session.id)?;
    let step = Step {
        tasks_touched: written != tally.tasks_written,
        open_tasks: session.open_tasks()?,
        results: last_results(session),
    };
    tally.tasks_written = written;
    for nudge in tally.watch.step(&step) {
        let text = match nudge {
            Nudge::TasksUntouched { steps, open } => {
                let (steps, open) = (steps.to_string(), open.to_string());
                session.texts().fill("tasks-untouched", &[("steps", &steps), ("open", &open)])
            }
            Nudge::NothingNew => session.texts().get("nothing-new").to_owned(),
        };
        session.append(Message::host(prompt::reminder(&text)), None)?;
    }
    Ok(())
}

/// Why no further call can help, what the model is told of it, and the note to its last answer.
pub(super) struct Hopeless {
    pub why: &'static str,
    pub said: String,
    pub note: String,
}

impl Hopeless {
    /// With the texts `NAME-stop` and `NAME-note`.
    fn of(session: &Session, why: &'static str, name: &str) -> Self {
        let text = |end: &str| session.texts().get(&format!("{name}-{end}")).to_owned();
        Self { why, said: text("stop"), note: text("note") }
    }
}

/// Whether the step's calls and results are those of the steps before it, too often; tells the model once before.
pub(super) fn repetition(session: &mut Session, reply: &Reply, tally: &mut Tally) -> Result<Option<Hopeless>, Halt> {
    let mut hasher = DefaultHasher::new();
    for block in &reply.content {
        if let Block::ToolUse { name, input, malformed, .. } = block {
            (name, input.to_string(), malformed).hash(&mut hasher);
        }
    }
    last_results(session).hash(&mut hasher);
    let repeated = tally.repeats.step(hasher.finish());
    match repeated {
        Repeated::No => {}
        Repeated::Nudge(times) => {
            let text = session.texts().fill("same-call", &[("times", &times.to_string())]);
            session.append(Message::host(prompt::reminder(&text)), None)?;
        }
        Repeated::Stop => {
            let why = "the model repeats the same call; it is asked for its answer without tools";
            return Ok(Some(Hopeless::of(session, why, "same-call")));
        }
    }
    Ok(None)
}

/// Tells the model where its last call was cut off by the output limit, which is raised for the next one; too often, and
/// smaller ones are not to be hoped for.
pub(super) fn cut_call(session: &mut Session, cut: bool, tally: &mut Tally) -> Result<Option<Hopeless>, Halt> {
    if !cut {
        tally.output.whole();
        return Ok(None);
    }
    if !tally.output.cut(session.max_output_tokens, session.window().tokens) {
        let why = "the model's calls are cut at its output limit (max_output_tokens in the config) again and again; it is \
                   asked for its answer without tools";
        return Ok(Some(Hopeless::of(session, why, "cut-call")));
    }
    let text = session.texts().get("cut-call").to_owned();
    session.append(Message::host(prompt::reminder(&text)), None)?;
    Ok(None)
}

/// A hash of each result of the last step.
fn last_results(session: &Session) -> Vec<u64> {
    let last = session.messages().iter().rev().find(|message| message.origin == Origin::Tools);
    let blocks = last.into_iter().flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult { parts, .. } => {
            let mut hasher = DefaultHasher::new();
            parts.iter().for_each(|part| part.as_text().hash(&mut hasher));
            Some(hasher.finish())
        }
        _ => None,
    });
    results.collect()
}
