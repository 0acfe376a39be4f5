//! The door that asks for a summary: inside the conversation where its cached prefix can be read again, else from outside,
//! with the conversation as text.
//!
//! It asks in words only. A question that is too long is asked again with the oldest rounds left out, a few times. A model
//! that only writes summaries and cannot is said, and the one that answers writes it.

use super::{Failure, Work};
use crate::compact::{self, Input, Trigger};
use crate::event::Event;
use crate::model::windows::too_long;
use crate::model::{Model, ModelError, ModelEvent, Request, ToolChoice};
use crate::session::{Session, Summarizer};
use crate::tokens::text;
use crate::transcript::{Block, Message, Reply, StopReason, Usage, text_of};
use std::sync::Arc;

/// Tokens that a summary may have at most: five short sections.
const LONGEST: u64 = 4_096;
/// Times that a model is asked from outside, each time with half as much.
const TRIES: u32 = 3;

/// Where a summary is asked for: what it is of, what is asked, and who is told and billed.
struct Desk<'a> {
    input: &'a Input<'a>,
    question: String,
    work: &'a Work<'a>,
    spent: &'a mut Usage,
}

/// A summary and what it cost, or why there is none.
type Written = Result<(String, Usage), String>;

/// Asks for the summary of a conversation of `tokens`; what it costs is added to `spent`, also where it is of no use.
pub(super) async fn ask(
    session: &mut Session,
    input: &Input<'_>,
    extra: &[String],
    tokens: u64,
    (spent, work): (&mut Usage, &Work<'_>),
) -> Result<Written, Failure> {
    let mut desk = Desk { input, question: compact::request(input.texts, extra), work, spent };
    let mut before = String::new();
    if let Some(other) = session.summary_model.clone() {
        match desk.outside(session, &other).await? {
            Ok(written) => return Ok(Ok(written)),
            Err(reason) => {
                let name = other.model.name();
                let text =
                    format!("summary_model {name} wrote no summary ({reason}); {} is asked", session.model.name());
                (work.sink)(Event::Notice { text });
                before = format!("{name}: {reason}; {}: ", session.model.name());
            }
        }
    }
    let written = match desk.inside(session, tokens).await? {
        Some(written) => written,
        None => {
            let own = Summarizer { model: session.model.clone(), window: input.window.tokens };
            desk.outside(session, &own).await?
        }
    };
    Ok(written.map_err(|reason| before + &reason))
}

impl Desk<'_> {
    /// Tokens that an answer may take in this window.
    fn output(&self, window: u64) -> u64 {
        LONGEST.min(self.input.window.output).min((window / 8).max(256))
    }

    fn scaled(&self, text: &str) -> u64 {
        (self::text(text, self.input.tokenizer) as f64 * self.input.scale) as u64 + 16
    }

    /// Asks at the end of the conversation, so that its cached prefix is read again; none where it has no room there, or
    /// where the model went on instead of writing.
    async fn inside(&mut self, session: &mut Session, tokens: u64) -> Result<Option<Written>, Failure> {
        let window = self.input.window.tokens;
        let output = self.output(window);
        if self.input.trigger == Trigger::Overflow || tokens + self.scaled(&self.question) + output > window {
            return Ok(None);
        }
        // Tools and their choice stay as they are, since another prefix would be billed anew.
        let (mut request, account) = session.request(ToolChoice::Unwanted)?;
        request.messages.push(Arc::new(Message::host(self.question.clone())));
        request.max_output_tokens = output as u32;
        match answer(&session.model.clone(), &request, self.work).await? {
            Ok(reply) => {
                session.record_request(account, &reply, self.work.step)?;
                *self.spent = self.spent.plus(reply.usage);
                let calls = reply.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
                Ok((!calls).then(|| said(reply)))
            }
            Err(error) if too_long(&error).is_none() => Ok(Some(Err(error.to_string()))),
            Err(_) => Ok(None),
        }
    }

    /// Asks `who` with the conversation as text.
    async fn outside(&mut self, session: &mut Session, who: &Summarizer) -> Result<Written, Failure> {
        let Input { texts, tokenizer, .. } = *self.input;
        let output = self.output(who.window);
        let fixed = self.scaled(&texts.summary_system) + self.scaled(&self.question) + output;
        let room = who.window.saturating_sub(fixed + who.window / 8);
        let mut budget = (room as f64 / self.input.scale) as u64;
        let mut last = String::new();
        for _ in 0..TRIES {
            let told = compact::transcript(self.input.messages, texts, budget, tokenizer);
            let bytes = (told.len() + self.question.len()) as u64;
            let request = Request {
                tools: [].into(),
                system: [texts.summary_system.clone()].into(),
                messages: vec![Arc::new(Message::host(format!("{told}\n\n{}", self.question)))],
                tool_choice: ToolChoice::None,
                max_output_tokens: output as u32,
                breakpoints: Vec::new(),
                cache_life: session.setup.cache_life,
            };
            match answer(&who.model, &request, self.work).await? {
                Ok(reply) => {
                    session.record_aside(bytes, &reply, self.work.step)?;
                    *self.spent = self.spent.plus(reply.usage);
                    return Ok(said(reply));
                }
                Err(error) => {
                    last = error.to_string();
                    if too_long(&error).is_none() {
                        break;
                    }
                    // Half of what was sent, or the same would be sent again where it was less than the budget.
                    budget = budget.min(text(&told, tokenizer)) / 2;
                }
            }
        }
        Ok(Err(last))
    }
}

fn said(reply: Reply) -> Written {
    match reply.stop {
        StopReason::Refusal => Err("the model declined to write it".into()),
        _ => match compact::clean(&text_of(&reply.content)) {
            Some(summary) => Ok((summary, reply.usage)),
            None => Err("the model wrote nothing".into()),
        },
    }
}

async fn answer(
    model: &Arc<dyn Model>,
    request: &Request,
    work: &Work<'_>,
) -> Result<Result<Reply, ModelError>, Failure> {
    // What streams in is no answer to the user.
    let mut on_event = |event: ModelEvent| {
        if let ModelEvent::Waiting { attempt, left, reason } = event {
            (work.sink)(Event::Waiting { attempt, seconds: left.as_millis().div_ceil(1_000) as u64, reason });
        }
    };
    tokio::select! {
        reply = model.ask(request, &mut on_event) => Ok(reply),
        () = work.cancel.cancelled() => Err(Failure::Cancelled),
    }
}
