//! One question to the model: room is made before it where the window is full, and again where the server says so; what
//! streams in is shown, and what a broken answer had said is kept.

use super::{Halt, Run, Tally};
use crate::compact::Trigger;
use crate::compaction::{self, Failure, Work};
use crate::event::Event;
use crate::model::windows::{limit_too_high, too_long};
use crate::model::{ModelError, ModelEvent, ToolChoice};
use crate::prompt;
use crate::session::Session;
use crate::transcript::{Block, Message, Origin, Reply, Role};

/// Asks the model, and shows what streams in; makes room first where the window is full, and again where the server says so.
pub(super) async fn ask(
    session: &mut Session,
    choice: ToolChoice,
    run: &Run<'_>,
    tally: &mut Tally,
) -> Result<Reply, Halt> {
    let work = Work { step: tally.steps, sink: run.sink, cancel: run.cancel };
    session.contribute(tally.steps, run.cancel).await;
    compaction::make_room(session, &mut tally.thrash, &mut tally.usage, &work).await?;
    loop {
        session.contribute(tally.steps, run.cancel).await;
        for news in session.news()? {
            session.append(Message::host(news), None)?;
        }
        let (mut request, account) = session.request(choice)?;
        request.max_output_tokens = tally.output.limit(session.max_output_tokens);
        let (mut said, mut withdrawn) = (String::new(), String::new());
        let mut on_event = |event: ModelEvent| match event {
            ModelEvent::Text(text) => {
                said.push_str(&text);
                (run.sink)(Event::Text { text });
            }
            ModelEvent::Thinking(text) => (run.sink)(Event::Thinking { text }),
            ModelEvent::ToolUse { .. } => {}
            ModelEvent::Withdrawn => {
                // Tries that follow may say nothing at all.
                let last = std::mem::take(&mut said);
                if !last.trim().is_empty() {
                    withdrawn = last;
                }
                (run.sink)(Event::Withdrawn);
            }
            ModelEvent::Waiting { attempt, left, reason } => {
                (run.sink)(Event::Waiting { attempt, seconds: left.as_millis().div_ceil(1_000) as u64, reason });
            }
            ModelEvent::Fallback { from, to } => {
                (run.sink)(Event::Notice { text: format!("{from} is overloaded; {to} answers for a while") });
            }
        };
        let reply = tokio::select! {
            reply = session.model.ask(&request, &mut on_event) => Some(reply),
            () = run.cancel.cancelled() => None,
        };
        let partial = if said.trim().is_empty() { &withdrawn } else { &said };
        match reply {
            Some(Ok(reply)) => {
                session.record_request(account, &reply, tally.steps)?;
                session.count(&reply)?;
                tally.usage = tally.usage.plus(reply.usage);
                return Ok(reply);
            }
            // A model may give less than the raised limit, or have no room for it, before anything is compacted for its sake.
            Some(Err(error))
                if (limit_too_high(&error) || too_long(&error).is_some())
                    && tally.output.refused(session.max_output_tokens) => {}
            Some(Err(error)) if too_long(&error).is_some() => overflow(session, &error, run, tally).await?,
            Some(Err(error)) => {
                keep_partial(session, partial)?;
                return Err(Halt::Failed(error.to_string()));
            }
            None => {
                keep_partial(session, partial)?;
                return Err(Halt::Cancelled);
            }
        }
    }
}

/// The server refused the request as too long: believe it and compact.
async fn overflow(session: &mut Session, error: &ModelError, run: &Run<'_>, tally: &mut Tally) -> Result<(), Halt> {
    if let Some(window) = too_long(error).and_then(|refusal| refusal.window) {
        session.learn_window(window);
    }
    if tally.thrash.full(tally.steps) {
        return Err(compaction::thrashed(session, Trigger::Overflow)?.into());
    }
    let work = Work { step: tally.steps, sink: run.sink, cancel: run.cancel };
    match compaction::compact(session, Trigger::Overflow, "", &mut tally.usage, &work).await {
        Err(failure @ (Failure::Stuck(_) | Failure::Failed(_))) => Err(Halt::Failed(format!("{error}; {failure}"))),
        done => Ok(done.map(|_| ())?),
    }
}

/// What a broken answer had said stays on record, with a word that it is not whole.
fn keep_partial(session: &mut Session, said: &str) -> Result<(), Halt> {
    if said.trim().is_empty() {
        return Ok(());
    }
    let content = vec![Block::Text { text: said.to_owned() }];
    session.append(Message { role: Role::Assistant, origin: Origin::Model, content }, None)?;
    let text = session.texts().get("answer-broke-off").to_owned();
    session.append(Message::host(prompt::reminder(&text)), None)?;
    Ok(())
}
