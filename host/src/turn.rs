//! The turn: the one room that knows the order of the rooms.
//!
//! Ask the model, record, decide, run the calls, record, and again, until there is an answer. Everything is on record
//! before the next act, so a run that is cut off anywhere resumes; whatever ends a run, there is one [`Outcome`]. It
//! renders no prompt, judges no call and speaks no wire itself.

use crate::compact::{Thrash, Trigger};
use crate::compaction::{self, Failure, Work};
use crate::context::CallContext;
use crate::event::{EndReason, Event, Outcome, Sink};
use crate::model::ToolChoice;
use crate::prompt;
use crate::prompt::nudge::Watch;
use crate::runtime::StepFigures;
use crate::session::Session;
use crate::stop::{self, Next, OutputLimit, Repeats};
use crate::store::StoreError;
use crate::subagent::Office;
use crate::transcript::{Block, Message, Origin, Reply, Role, StopReason, Usage, text_of};
use tokio_util::sync::CancellationToken;

mod asking;
mod calls;
mod ends;
mod nudges;

use asking::ask;
use nudges::{Hopeless, cut_call, nudge, repetition};

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
    watch: Watch,
    repeats: Repeats,
    thrash: Thrash,
    output: OutputLimit,
    /// What was said of an answer that is continued.
    pieces: String,
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

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Halt::Cancelled,
            failure => Halt::Failed(failure.to_string()),
        }
    }
}

/// What is asked.
pub struct Question {
    /// Files beside it, as `attach` makes them a message.
    pub attached: Option<Message>,
    /// The user's message.
    pub message: Message,
}

impl<T: Into<Message>> From<T> for Question {
    fn from(message: T) -> Self {
        Self { attached: None, message: message.into() }
    }
}

/// Answers `question` in `session`, and runs the agents that its guests ask for meanwhile.
pub async fn run(session: &mut Session, question: impl Into<Question>, run: &Run<'_>) -> Outcome {
    let office = Office::of(session, run);
    let (mut outcome, agents) = office.beside(answer(session, question.into(), run)).await;
    for agent in &agents {
        outcome.usage = outcome.usage.plus(agent.outcome.usage);
        outcome.cost = outcome.cost.zip(agent.outcome.cost).map(|(own, other)| own + other);
    }
    outcome.agents = agents;
    (run.sink)(Event::Done(outcome.clone()));
    outcome
}

async fn answer(session: &mut Session, question: Question, run: &Run<'_>) -> Outcome {
    let mut tally = Tally::default();
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
    ends::end(session, &tally, reason, &answer).await;
    Outcome {
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
        agents: Vec::new(),
    }
}

async fn steps(
    session: &mut Session,
    question: Question,
    run: &Run<'_>,
    tally: &mut Tally,
) -> Result<(EndReason, String), Halt> {
    ends::begin(session, question, run).await?;
    tally.tasks_written = session.store.tasks_written(&session.id)?;
    loop {
        tally.steps += 1;
        let context = session.context(tally.steps);
        let mut reply = ask(session, ToolChoice::Auto, run, tally).await?;
        if silenced(&reply) && tally.output.cut(session.max_output_tokens, session.window().tokens) {
            continue;
        }
        let cut = stop::cuts_a_call(&mut reply);
        let seq = record(session, &reply)?;
        let next = stop::next(&reply.content, &reply.stop, tally.steps, run.max_steps);
        let mut hopeless = None;
        let figures = match next {
            Next::RunCalls | Next::LastWord => {
                session.lay_out()?;
                let figures = calls::run_all(session, seq, &reply, &context, run, tally).await?;
                if next == Next::RunCalls {
                    nudge(session, tally)?;
                    hopeless = repetition(session, &reply, tally)?.or(cut_call(session, cut, tally)?);
                }
                figures
            }
            Next::GoOn | Next::Continue | Next::Done => StepFigures::default(),
        };
        finish_step(session, &context, run, figures, reply.usage, tally.steps).await;
        if let Some(instructions) = session.wanted() {
            compact_as_wanted(session, &instructions, run, tally).await?;
        }
        match next {
            Next::RunCalls if let Some(Hopeless { why, said, note }) = hopeless => {
                return last_word(session, run, tally, why.into(), (said, note)).await;
            }
            Next::RunCalls | Next::GoOn => {}
            Next::Continue if tally.output.cut(session.max_output_tokens, session.window().tokens) => {
                tally.pieces.push_str(&text_of(&reply.content));
                let text = session.texts().get("output-limit").to_owned();
                session.append(Message::host(prompt::reminder(&text)), None)?;
            }
            Next::LastWord => {
                let why = format!("the step limit of {} is reached; the model is asked for its answer", run.max_steps);
                let steps = run.max_steps.to_string();
                let fill = |name: &str| session.texts().fill(name, &[("steps", &steps)]);
                let texts = (fill("step-limit"), fill("step-limit-note"));
                return last_word(session, run, tally, why, texts).await;
            }
            Next::Continue | Next::Done => {
                if let Some(text) = shortfall(&reply.stop) {
                    (run.sink)(Event::Notice { text: text.into() });
                }
                let pieces = std::mem::take(&mut tally.pieces);
                return Ok((EndReason::Done, pieces + &text_of(&reply.content)));
            }
        }
        if run.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
    }
}

/// Whether an answer reached its limit before it said a word, as one that only thinks may.
fn silenced(reply: &Reply) -> bool {
    let says_something = reply.content.iter().any(|block| !matches!(block, Block::Thinking { .. }));
    !says_something && reply.stop == StopReason::MaxTokens
}

/// Compacts because a tool asked for it. What fails is told, and the turn goes on.
async fn compact_as_wanted(
    session: &mut Session,
    instructions: &str,
    run: &Run<'_>,
    tally: &mut Tally,
) -> Result<(), Halt> {
    let work = Work { step: tally.steps, sink: run.sink, cancel: run.cancel };
    match compaction::compact(session, Trigger::Tool, instructions, &mut tally.usage, &work).await {
        Err(failure @ (Failure::Stuck(_) | Failure::Failed(_))) => {
            (run.sink)(Event::Notice { text: failure.to_string() });
            Ok(())
        }
        done => Ok(done.map(|_| ())?),
    }
}

/// What the user should know of an answer that ended otherwise than by its end.
fn shortfall(stop: &StopReason) -> Option<&'static str> {
    match stop {
        StopReason::MaxTokens => Some("the answer was cut at its output limit (max_output_tokens in the config)"),
        StopReason::Refusal => Some("the model declined to answer"),
        _ => None,
    }
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
    figures.messages = session.conversation().len() as u32;
    session.hooks.step_complete(context, run.cancel, figures).await;
    for text in session.hooks.take_news() {
        (run.sink)(Event::Notice { text });
    }
    (run.sink)(Event::Step { step, usage });
}

/// No more calls: the answer comes all the same, and says why it ends here. `texts` are what the model is told and the note
/// to its answer.
async fn last_word(
    session: &mut Session,
    run: &Run<'_>,
    tally: &mut Tally,
    why: String,
    (said, note): (String, String),
) -> Result<(EndReason, String), Halt> {
    (run.sink)(Event::Notice { text: why });
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
