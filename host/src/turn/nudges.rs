//! What the host says to the model between steps: the task list is left alone, nothing new comes, or one call is repeated.
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

/// Whether the step's calls and results are those of the steps before it; tells the model once.
pub(super) fn repetition(session: &mut Session, reply: &Reply, tally: &mut Tally) -> Result<Repeated, Halt> {
    let mut hasher = DefaultHasher::new();
    for block in &reply.content {
        if let Block::ToolUse { name, input, malformed, .. } = block {
            (name, input.to_string(), malformed).hash(&mut hasher);
        }
    }
    last_results(session).hash(&mut hasher);
    let repeated = tally.repeats.step(hasher.finish());
    if let Repeated::Nudge(times) = repeated {
        let text = session.texts().fill("same-call", &[("times", &times.to_string())]);
        session.append(Message::host(prompt::reminder(&text)), None)?;
    }
    Ok(repeated)
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
