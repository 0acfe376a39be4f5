//! The turn: the one room that knows the order of the rooms.
//!
//! Ask the model, record, decide, run the calls, record, and again, until there is an answer. Everything is on record
//! before the next act, so a run that is cut off anywhere resumes; whatever ends a run, there is one [`Outcome`]. It
//! renders no prompt, judges no call and speaks no wire itself.

use crate::context::CallContext;
use crate::event::{EndReason, Event, Outcome, Sink};
use crate::hooks::Hooks;
use crate::model::{ModelEvent, ToolChoice};
use crate::prompt;
use crate::prompt::nudge::{self, Nudge};
use crate::runtime::StepFigures;
use crate::session::Session;
use crate::stop::{self, Next};
use crate::store::StoreError;
use crate::transcript::{Block, Message, Origin, Reply, Role, StopReason, Usage, text_of};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

mod calls;

/// How a turn is to run.
pub struct Run<'a> {
    /// Steps it may take; at least 1.
    pub max_steps: u32,
    /// Where events go.
    pub sink: &'a Sink<'a>,
    /// Cancels it.
    pub cancel: &'a CancellationToken,
}

/// What a turn has done so far.
#[derive(Default)]
struct Tally {
    watch: nudge::Watch,
    tasks_written: u64,
    steps: u32,
    tool_calls: u32,
    refused: u32,
    usage: Usage,
}

/// Why a turn ends before its answer.
enum Halt {
    Cancelled,
    Failed(String),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Halt::Failed(error.to_string())
    }
}

/// Answers `question` in `session`.
pub async fn run(session: &mut Session, question: &str, run: &Run<'_>) -> Outcome {
    let mut tally = Tally::default();
    let hooks = session.hooks.clone();
    (run.sink)(Event::Started {
        session: session.id.clone(),
        resumed: session.resumed,
        model: session.model.name().into(),
    });
    let ended = steps(session, question, run, &mut tally).await;
    let (reason, answer, error) = match ended {
        Ok((reason, answer)) => (reason, answer, None),
        Err(Halt::Cancelled) => (EndReason::Cancelled, String::new(), None),
        Err(Halt::Failed(reason)) => (EndReason::Failed, String::new(), Some(reason)),
    };
    hooks.session_stop(&session.context(tally.steps), reason, tally.steps, tally.tool_calls).await;
    let outcome = Outcome {
        session: session.id.clone(),
        model: session.model.name().into(),
        reason,
        answer,
        steps: tally.steps,
        tool_calls: tally.tool_calls,
        refused_calls: tally.refused,
        usage: tally.usage,
        cost: session.price.map(|price| price.of(tally.usage)),
        error,
    };
    (run.sink)(Event::Done(outcome.clone()));
    outcome
}

async fn steps(
    session: &mut Session,
    question: &str,
    run: &Run<'_>,
    tally: &mut Tally,
) -> Result<(EndReason, String), Halt> {
    begin(session, question, run).await?;
    tally.tasks_written = session.store.tasks_written(&session.id)?;
    loop {
        tally.steps += 1;
        let context = session.context(tally.steps);
        let reply = ask(session, ToolChoice::Auto, run, tally).await?;
        let seq = record(session, &reply)?;
        let next = stop::next(&reply.content, &reply.stop, tally.steps, run.max_steps);
        let figures = match next {
            Next::RunCalls | Next::LastWord => {
                let figures = calls::run_all(session, seq, &reply, &context, run, tally).await?;
                if next == Next::RunCalls {
                    nudge(session, tally)?;
                }
                figures
            }
            Next::GoOn | Next::Done => StepFigures::default(),
        };
        finish_step(session, &context, run, figures, reply.usage, tally.steps).await;
        match next {
            Next::RunCalls | Next::GoOn => {}
            Next::LastWord => return last_word(session, run, tally).await,
            Next::Done => {
                if let Some(text) = shortfall(&reply.stop) {
                    (run.sink)(Event::Notice { text: text.into() });
                }
                return Ok((EndReason::Done, text_of(&reply.content)));
            }
        }
        if run.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
    }
}

/// Speaks up when the task list is left alone or the steps bring nothing new; each once (SPEC 1.15).
fn nudge(session: &mut Session, tally: &mut Tally) -> Result<(), Halt> {
    let written = session.store.tasks_written(&session.id)?;
    let last = session.messages().iter().rev().find(|message| message.origin == Origin::Tools);
    let results = last.into_iter().flat_map(|message| &message.content);
    let results = results.filter_map(|block| match block {
        Block::ToolResult { parts, .. } => {
            let mut hasher = std::hash::DefaultHasher::new();
            parts.iter().for_each(|part| part.as_text().hash(&mut hasher));
            Some(hasher.finish())
        }
        _ => None,
    });
    let step = nudge::Step {
        tasks_touched: written != tally.tasks_written,
        open_tasks: session.open_tasks()?,
        results: results.collect(),
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

/// What the user should know of an answer that ended otherwise than by its end.
fn shortfall(stop: &StopReason) -> Option<&'static str> {
    match stop {
        StopReason::MaxTokens => Some("the answer was cut at its output limit (max_output_tokens in the config)"),
        StopReason::Refusal => Some("the model declined to answer"),
        _ => None,
    }
}

/// Puts the question on record, with what the hooks add and the tasks that wait.
async fn begin(session: &mut Session, question: &str, run: &Run<'_>) -> Result<(), Halt> {
    // An earlier turn of this process may have failed between a call and its result.
    session.mend()?;
    let context = session.context(0);
    if !session.begun {
        session.begun = true;
        let open = session.open_tasks()?;
        let hooks: Arc<Hooks> = session.hooks.clone();
        let model = session.model.name().to_owned();
        let (texts, recovery) = hooks.session_start(&context, run.cancel, session.resumed, &model, open).await;
        for text in texts {
            session.append(Message::host(prompt::reminder(&text)), None)?;
        }
        session.append(Message::user(question), None)?;
        if recovery && open > 0 {
            let block = session.task_recovery()?;
            session.append(Message::host(block), None)?;
        }
    } else {
        session.append(Message::user(question), None)?;
    }
    Ok(())
}

/// Asks the model, and shows what streams in.
async fn ask(session: &mut Session, choice: ToolChoice, run: &Run<'_>, tally: &mut Tally) -> Result<Reply, Halt> {
    for news in session.news()? {
        session.append(Message::host(news), None)?;
    }
    let (request, account) = session.request(choice)?;
    let mut on_event = |event: ModelEvent| match event {
        ModelEvent::Text(text) => (run.sink)(Event::Text { text }),
        ModelEvent::Thinking(text) => (run.sink)(Event::Thinking { text }),
        ModelEvent::ToolUse { .. } => {}
        ModelEvent::Withdrawn => (run.sink)(Event::Withdrawn),
        ModelEvent::Waiting { attempt, left, reason } => {
            (run.sink)(Event::Waiting { attempt, seconds: left.as_millis().div_ceil(1_000) as u64, reason });
        }
        ModelEvent::Fallback { from, to } => {
            (run.sink)(Event::Notice { text: format!("{from} is overloaded; {to} answers for a while") });
        }
    };
    let reply = tokio::select! {
        reply = session.model.ask(&request, &mut on_event) => reply.map_err(|error| Halt::Failed(error.to_string()))?,
        () = run.cancel.cancelled() => return Err(Halt::Cancelled),
    };
    session.record_request(account, &reply, tally.steps)?;
    tally.usage = tally.usage.plus(reply.usage);
    Ok(reply)
}

fn record(session: &mut Session, reply: &Reply) -> Result<u64, Halt> {
    let says_something = reply.content.iter().any(|block| !matches!(block, Block::Thinking { .. }));
    if !says_something {
        return Err(Halt::Failed(format!(
            "{} answered with nothing (stop reason {:?}); ask again, or choose another model with --model",
            session.model.name(),
            reply.stop
        )));
    }
    let message = Message { role: Role::Assistant, origin: Origin::Model, content: reply.content.clone() };
    Ok(session.append(message, Some(reply.usage))?)
}

async fn finish_step(
    session: &Session,
    context: &CallContext,
    run: &Run<'_>,
    mut figures: StepFigures,
    usage: Usage,
    step: u32,
) {
    figures.usage = usage;
    figures.messages = session.messages().len() as u32;
    session.hooks.step_complete(context, run.cancel, figures).await;
    (run.sink)(Event::Step { step, usage });
}

/// The steps are used up: the answer comes all the same, without tools, and says so.
async fn last_word(session: &mut Session, run: &Run<'_>, tally: &mut Tally) -> Result<(EndReason, String), Halt> {
    (run.sink)(Event::Notice {
        text: format!("the step limit of {} is reached; the model is asked for its answer", run.max_steps),
    });
    let steps = run.max_steps.to_string();
    let said = session.texts().fill("step-limit", &[("steps", &steps)]);
    let note = session.texts().fill("step-limit-note", &[("steps", &steps)]);
    session.append(Message::host(prompt::reminder(&said)), None)?;
    let mut reply = ask(session, ToolChoice::None, run, tally).await?;
    // A model that calls tools all the same gets no results any more, so its calls must not stand in the transcript.
    reply.content.retain(|block| !matches!(block, Block::ToolUse { .. }));
    let text = text_of(&reply.content);
    let break_first = if text.trim().is_empty() || text.ends_with('\n') { "" } else { "\n\n" };
    (run.sink)(Event::Text { text: format!("{break_first}{note}\n") });
    if text.trim().is_empty() {
        reply.content = vec![Block::Text { text: note.clone() }];
        record(session, &reply)?;
        return Ok((EndReason::StepLimit, note));
    }
    record(session, &reply)?;
    Ok((EndReason::StepLimit, format!("{text}\n\n{note}")))
}
