//! What is seen of an agent while it works, and the report that comes of it.

use crate::assignment::Report;
use crate::event::{Event, Finished, Outcome};
use crate::plain::one_line;
use crate::transcript::CallStatus;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Lines of an activity log: more than the most steps make in any sane run.
const LINES: usize = 100;

/// Bytes of a call's arguments, and of a reason, in its line.
const SHOWN: usize = 120;

/// What an agent did so far.
pub(super) struct Seen {
    began: Instant,
    /// What its caller should know of how it was set up.
    notes: Vec<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Arguments of calls under way, by id.
    inputs: HashMap<String, String>,
    activity: Vec<String>,
    left_out: usize,
    tools: BTreeMap<String, u64>,
}

impl Seen {
    pub(super) fn new(notes: Vec<String>) -> Self {
        Self { began: Instant::now(), notes, state: Mutex::default() }
    }

    /// Takes an event in.
    pub(super) fn note(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CallStarted { id, input, .. } => {
                state.inputs.insert(id.clone(), one_line(&input.to_string(), SHOWN));
            }
            Event::CallFinished(finished) => {
                let input = state.inputs.remove(&finished.id).unwrap_or_default();
                *state.tools.entry(one_line(&finished.tool, SHOWN)).or_default() += 1;
                state.line(call_line(finished, &input));
            }
            Event::Notice { text } => state.line(format!("! {}", one_line(text, SHOWN))),
            Event::Compacted { trigger, layer, .. } => state.line(format!("! compacted ({trigger}, {layer})")),
            Event::Agent { agent, event, .. } => {
                if let Event::Done(outcome) = &**event {
                    state.line(format!("• agent {agent}: {}, {} steps", outcome.reason.as_str(), outcome.steps));
                }
            }
            _ => {}
        }
    }

    /// The report, once it has ended.
    pub(super) fn report(&self, outcome: &Outcome) -> Report {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left_out > 0 {
            let more = format!("… {} more", state.left_out);
            state.activity.push(more);
        }
        let usage = outcome.usage;
        let mut statistics = json!({
            "session": outcome.session,
            "model": outcome.model,
            "steps": outcome.steps,
            "tool_calls": outcome.tool_calls,
            "refused_calls": outcome.refused_calls,
            "tools": state.tools,
            "tokens": {
                "input": usage.input,
                "cache_read": usage.cache_read,
                "cache_write": usage.cache_write,
                "output": usage.output,
            },
            "cost": outcome.cost,
            "duration_ms": self.began.elapsed().as_millis() as u64,
        });
        if let Some(error) = &outcome.error {
            statistics["error"] = Value::from(error.as_str());
        }
        if !self.notes.is_empty() {
            statistics["notes"] = Value::from(self.notes.clone());
        }
        Report {
            answer: outcome.answer.clone(),
            reason: outcome.reason,
            activity: std::mem::take(&mut state.activity),
            statistics,
        }
    }
}

impl State {
    fn line(&mut self, line: String) {
        match self.activity.len() < LINES {
            true => self.activity.push(line),
            false => self.left_out += 1,
        }
    }
}

fn call_line(finished: &Finished, input: &str) -> String {
    let mark = match finished.status {
        CallStatus::Ok => '✓',
        CallStatus::Failed => '✗',
        CallStatus::Refused => '⊘',
    };
    let why = finished.reason.as_deref().map(|reason| format!(": {}", one_line(reason, SHOWN))).unwrap_or_default();
    format!("{mark} {} {input}{why}", one_line(&finished.tool, SHOWN))
}
