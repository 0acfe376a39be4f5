//! The calls of one step: read-only ones side by side, others in order, results in call order.

use super::{Halt, Run, Tally};
use crate::context::CallContext;
use crate::event::{Event, Finished as Shown};
use crate::prompt;
use crate::runtime::StepFigures;
use crate::session::Session;
use crate::tool_call::{Asked, Finished, Ready, addressed, text_of};
use crate::transcript::{Block, CallStatus, Message, Origin, Reply, Role};
use futures::future::join_all;

/// Runs every call of `reply`, the message at `seq`, and puts the results on record in one message.
pub(super) async fn run_all(
    session: &mut Session,
    seq: u64,
    reply: &Reply,
    context: &CallContext,
    run: &Run<'_>,
    tally: &mut Tally,
) -> Result<StepFigures, Halt> {
    let asked: Vec<(usize, Asked<'_>)> = reply
        .content
        .iter()
        .enumerate()
        .filter_map(|(place, block)| match block {
            Block::ToolUse { id, name, input, malformed } => {
                let asked = Asked { id, tool: name, input, malformed: malformed.as_deref() };
                // An address that does not read stays as it is; the call is refused with the reason.
                Some((place, addressed(asked).unwrap_or(asked)))
            }
            _ => None,
        })
        .collect();
    let mut results = Vec::with_capacity(asked.len());
    let mut contexts = Vec::new();
    let mut figures = StepFigures::default();
    let mut rest = asked.as_slice();
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(side_by_side(session, rest));
        rest = after;
        for (asked, finished, mut texts) in run_batch(session, seq, batch, context, run).await? {
            figures.tool_calls += 1;
            figures.failed_calls += u32::from(finished.status != CallStatus::Ok);
            tally.refused += u32::from(finished.status == CallStatus::Refused);
            contexts.append(&mut texts);
            let is_error = finished.status != CallStatus::Ok;
            results.push(Block::ToolResult { id: asked.id.to_owned(), parts: finished.parts, is_error });
        }
    }
    tally.tool_calls += figures.tool_calls;
    session.append(Message { role: Role::User, origin: Origin::Tools, content: results }, None)?;
    for text in contexts {
        session.append(Message::host(prompt::reminder(&text)), None)?;
    }
    Ok(figures)
}

/// How many of the next calls may run together: a run of read-only ones, or a single other one.
fn side_by_side(session: &Session, calls: &[(usize, Asked<'_>)]) -> usize {
    let snapshot = session.calls.registry.snapshot();
    let read_only = |(_, asked): &&(usize, Asked<'_>)| snapshot.tool(asked.tool).is_none_or(|(_, tool)| tool.read_only);
    calls.iter().take_while(read_only).count().max(1)
}

/// Judges the calls one after another, then runs those that may run together. Each is on record before it runs, and
/// again when it has ended.
async fn run_batch<'a>(
    session: &Session,
    seq: u64,
    batch: &[(usize, Asked<'a>)],
    context: &CallContext,
    run: &Run<'_>,
) -> Result<Vec<(Asked<'a>, Finished, Vec<String>)>, Halt> {
    let mut prepared = Vec::with_capacity(batch.len());
    for &(place, asked) in batch {
        let context = CallContext { call: asked.id.to_owned(), ..context.clone() };
        let (tool, input) = (asked.tool.to_owned(), asked.input.clone());
        (run.sink)(Event::CallStarted { id: asked.id.to_owned(), tool, input });
        let ready = session.calls.prepare(asked, &context, run.cancel).await;
        let (plugin, digest, input) = match &ready {
            Ok(ready) => (&ready.plugin, &ready.digest, &*ready.input),
            Err(finished) => (&finished.plugin, &finished.digest, asked.input),
        };
        let input = input.to_string();
        session.store.begin_call(&session.id, seq, place, asked.id, asked.tool, &input, plugin, digest)?;
        prepared.push((place, asked, context, ready));
    }
    let running = prepared.into_iter().map(|(place, asked, context, ready)| async move {
        let (finished, texts) = finish(session, ready, &context, run).await;
        let (status, duration) = (finished.status, finished.duration);
        session.store.end_call(&session.id, seq, place, status, &finished.parts, duration)?;
        (run.sink)(Event::CallFinished(Shown {
            id: asked.id.to_owned(),
            tool: asked.tool.to_owned(),
            plugin: finished.plugin.clone(),
            digest: finished.digest.clone(),
            status,
            reason: finished.reason.clone(),
            duration_us: duration.as_micros() as u64,
            output: text_of(&finished.parts),
        }));
        Ok::<_, Halt>((asked, finished, texts))
    });
    join_all(running).await.into_iter().collect()
}

async fn finish(
    session: &Session,
    ready: Result<Ready<'_>, Finished>,
    context: &CallContext,
    run: &Run<'_>,
) -> (Finished, Vec<String>) {
    match ready {
        Ok(ready) => {
            let finished = session.calls.run(&ready, context, run.cancel).await;
            (finished, ready.contexts)
        }
        Err(finished) => (finished, Vec::new()),
    }
}
