//! How a turn begins and ends: what is put on record before the first step, and which hooks hear of either. A person's own
//! session has `session-start` and `session-stop`, an agent that works for another one `subagent-start` and `subagent-stop`.

use super::{Halt, Question, Run, Tally};
use crate::context::CallContext;
use crate::event::EndReason;
use crate::hooks::Hooks;
use crate::prompt;
use crate::runtime::{AgentBegins, AgentEnded};
use crate::session::Session;
use crate::store::StoreError;
use crate::transcript::Message;
use serde_json::{Value, json};
use std::sync::Arc;

/// Puts the question on record, with what the hooks add and the tasks that wait.
pub(super) async fn begin(session: &mut Session, question: Question, run: &Run<'_>) -> Result<(), Halt> {
    // An earlier turn of this process may have failed between a call and its result.
    session.mend()?;
    let first = !std::mem::replace(&mut session.begun, true);
    if first && let Some((context, extra)) = caller(session) {
        let agent = session.post.agent.clone();
        let task = question.message.text();
        let begins = AgentBegins { agent: &agent, task: &task, max_steps: run.max_steps, extra: &extra };
        let hooks: Arc<Hooks> = session.hooks.clone();
        for text in hooks.subagent_start(&context, run.cancel, &begins).await {
            session.append(Message::host(prompt::reminder(&text)), None)?;
        }
    } else if first {
        return begin_session(session, question, run).await;
    }
    put(session, question, run).await?;
    Ok(())
}

async fn begin_session(session: &mut Session, question: Question, run: &Run<'_>) -> Result<(), Halt> {
    let context = session.context(0);
    let open = session.open_tasks()?;
    let hooks: Arc<Hooks> = session.hooks.clone();
    let model = session.model.name().to_owned();
    let (texts, recovery) = hooks.session_start(&context, run.cancel, session.resumed, &model, open).await;
    for text in texts {
        session.append(Message::host(prompt::reminder(&text)), None)?;
    }
    put(session, question, run).await?;
    if recovery && open > 0 {
        let block = session.task_recovery()?;
        session.append(Message::host(block), None)?;
    }
    Ok(())
}

/// The question, behind what plugins say of this turn and the files beside it.
async fn put(session: &mut Session, question: Question, run: &Run<'_>) -> Result<(), StoreError> {
    let segments = session.turn_segments(run.cancel).await;
    for message in segments.into_iter().chain(question.attached).chain([question.message]) {
        session.append(message, None)?;
    }
    Ok(())
}

/// Tells the hooks.
pub(super) async fn end(session: &Session, tally: &Tally, reason: EndReason, answer: &str) {
    match caller(session) {
        None => {
            let context = session.context(tally.steps);
            session.hooks.session_stop(&context, reason, tally.steps, tally.tool_calls).await;
        }
        Some((context, extra)) => {
            let ended = AgentEnded {
                agent: &session.post.agent,
                reason,
                steps: tally.steps,
                tool_calls: tally.tool_calls,
                answer,
                extra: &extra,
            };
            session.hooks.subagent_stop(&context, &ended).await;
        }
    }
}

/// The call that the session works for, as its hooks are told: they belong to the conversation that has the agent, which has a
/// session of its own; none for a person's own session.
fn caller(session: &Session) -> Option<(CallContext, Value)> {
    let call = session.post.works_for.clone()?;
    Some((CallContext { agent: session.post.kind, ..call }, json!({ "session": session.id })))
}
