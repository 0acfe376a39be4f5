//! The door that asks for a summary: inside the conversation where its cached prefix can be read again, else from outside,
//! with the conversation as text.
//!
//! It asks in words only. A question that is too long is asked again with the oldest rounds left out, a few times.

use super::{Failure, Work};
use crate::compact::{self, Input, Trigger};
use crate::event::Event;
use crate::model::windows::too_long;
use crate::model::{Model, ModelError, ModelEvent, Request, ToolChoice};
use crate::session::Session;
use crate::tokens::text;
use crate::transcript::{Message, Reply, StopReason, Usage, text_of};
use std::sync::Arc;

/// Tokens that a summary may have at most: five short sections.
const LONGEST: u64 = 4_096;
/// Times that a model is asked from outside, each time with half as much.
const TRIES: u32 = 3;

/// The summary and what it cost, or why there is none.
pub(super) async fn ask(
    session: &mut Session,
    input: &Input<'_>,
    extra: &[String],
    tokens: u64,
    work: &Work<'_>,
) -> Result<Result<(String, Usage), String>, Failure> {
    let question = compact::request(input.texts, extra);
    let output = LONGEST.min(input.window.output).min((input.window.tokens / 8).max(256));
    let scaled = |text: &str| (self::text(text, input.tokenizer) as f64 * input.scale) as u64 + 16;
    let fits = tokens + scaled(&question) + output <= input.window.tokens;
    if session.summary_model.is_none() && input.trigger != Trigger::Overflow && fits {
        // The tools stay in it, since taking them out would change the prefix.
        let (mut request, account) = session.request(ToolChoice::None)?;
        request.messages.push(Arc::new(Message::host(question.clone())));
        request.max_output_tokens = output as u32;
        match answer(&session.model.clone(), &request, work).await? {
            Ok(reply) => {
                session.record_request(account, &reply, work.step)?;
                return Ok(said(reply));
            }
            Err(error) if too_long(&error).is_none() => return Ok(Err(error.to_string())),
            Err(_) => {}
        }
    }
    let model = session.summary_model.clone().unwrap_or_else(|| session.model.clone());
    let fixed = scaled(&input.texts.summary_system) + scaled(&question) + output;
    let room = input.window.tokens.saturating_sub(fixed + input.window.tokens / 8);
    let mut budget = (room as f64 / input.scale) as u64;
    let mut last = String::new();
    for _ in 0..TRIES {
        let told = compact::transcript(input.messages, input.texts, budget, input.tokenizer);
        let bytes = (told.len() + question.len()) as u64;
        let request = Request {
            tools: [].into(),
            system: [input.texts.summary_system.clone()].into(),
            messages: vec![Arc::new(Message::host(format!("{told}\n\n{question}")))],
            tool_choice: ToolChoice::None,
            max_output_tokens: output as u32,
            breakpoints: Vec::new(),
            cache_life: session.setup.cache_life,
        };
        match answer(&model, &request, work).await? {
            Ok(reply) => {
                session.record_aside(bytes, &reply, work.step)?;
                return Ok(said(reply));
            }
            Err(error) => {
                last = error.to_string();
                if too_long(&error).is_none() {
                    break;
                }
                // Half of what was sent, or the same would be sent again where it was less than the budget.
                budget = budget.min(text(&told, input.tokenizer)) / 2;
            }
        }
    }
    Ok(Err(last))
}

fn said(reply: Reply) -> Result<(String, Usage), String> {
    match reply.stop {
        StopReason::Refusal => Err("the model declined to write it".into()),
        _ => Ok((text_of(&reply.content), reply.usage)),
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
