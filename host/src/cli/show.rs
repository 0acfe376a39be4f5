//! How a run looks: text for people, one JSON document, or a JSON line for each event.

use crate::event::{Event, Finished, Outcome, Sink};
use crate::plain;
use crate::transcript::CallStatus;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The shape of what a run prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// The answer as it streams; calls on standard error
    Text,
    /// One document when the run has ended
    Json,
    /// One line for each event
    StreamJson,
}

/// A printer of events, and the calls it has seen.
pub(super) struct Printer {
    output: Output,
    state: Mutex<State>,
    spinner: ProgressBar,
}

#[derive(Default)]
struct State {
    /// Whether the last thing on standard output was a piece of an answer without a line end.
    open_line: bool,
    /// The try that was last counted down to.
    waits_for: u32,
    finished: Vec<Finished>,
}

impl Printer {
    pub(super) fn new(output: Output) -> Arc<Self> {
        let spinner = if output == Output::Text { spinner("") } else { ProgressBar::hidden() };
        Arc::new(Self { output, state: Mutex::default(), spinner })
    }

    /// Where a turn sends its events.
    pub(super) fn sink(self: &Arc<Self>) -> Arc<Sink<'static>> {
        let printer = self.clone();
        Arc::new(move |event| printer.show(&event))
    }

    fn show(&self, event: &Event) {
        match self.output {
            Output::Text => self.show_text(event),
            Output::StreamJson => print_line(&serde_json::to_string(event).unwrap_or_default()),
            Output::Json => {
                if let Event::CallFinished(finished) = event {
                    self.state().finished.push(finished.clone());
                }
            }
        }
    }

    fn show_text(&self, event: &Event) {
        match event {
            Event::Started { .. } => {
                self.state().waits_for = 0;
                self.wait("thinking");
            }
            Event::Text { text } => {
                self.spinner.finish_and_clear();
                let mut out = std::io::stdout().lock();
                // In a pipe the answer is data and stays as the model wrote it.
                let shown = if out.is_terminal() { plain::lines(text) } else { text.clone() };
                let _ = out.write_all(shown.as_bytes()).and_then(|()| out.flush());
                self.state().open_line = !text.ends_with('\n');
            }
            Event::Thinking { .. } => self.wait("thinking"),
            Event::Withdrawn => self.note(&notice("the answer broke off; what was shown of it does not count")),
            Event::Waiting { attempt, seconds, reason } => self.count_down(*attempt, *seconds, reason),
            Event::CallStarted { tool, .. } => self.wait(tool),
            Event::CallFinished(finished) => self.note(&call_lines(finished)),
            Event::Progress { plugin, fraction, message } => {
                let percent = fraction.map(|fraction| format!(" {:.0} %", fraction * 100.0)).unwrap_or_default();
                self.wait(&format!("{plugin}{percent} {message}"));
            }
            Event::Step { .. } => self.wait("thinking"),
            Event::Notice { text } => self.note(&notice(text)),
            Event::Compacted { trigger, layer, messages, tokens, reason } => {
                let why = reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
                self.note(&notice(&format!(
                    "compacted ({trigger}, {layer}): {} messages to {}, about {} tokens to {}{why}",
                    messages.0, messages.1, tokens.0, tokens.1
                )));
            }
            Event::Agent { agent, event, .. } => self.show_agent(agent, event),
            Event::Done(_) => {
                self.spinner.finish_and_clear();
                self.end_line();
            }
        }
    }

    /// What another agent does: its calls a line each, and how it ended.
    fn show_agent(&self, agent: &str, event: &Event) {
        let agent = if agent.is_empty() { "agent" } else { agent };
        match event {
            Event::CallFinished(finished) => {
                let lines = call_lines(finished);
                self.note(&format!("  {agent} › {}", lines.lines().next().unwrap_or_default()));
            }
            Event::Notice { text } => self.note(&format!("  {agent} › {}", notice(text))),
            Event::Agent { agent: inner, event, .. } => self.show_agent(&format!("{agent} › {inner}"), event),
            Event::Done(outcome) => self.note(&format!(
                "  {agent} › {}: {} steps, {} tool calls",
                outcome.reason.as_str(),
                outcome.steps,
                outcome.tool_calls
            )),
            _ => self.wait(agent),
        }
    }

    /// Ends the line that streams and the spinner, until the next event.
    pub(super) fn be_still(&self) {
        self.end_line();
        self.spinner.finish_and_clear();
    }

    fn wait(&self, message: &str) {
        if self.spinner.is_hidden() {
            return;
        }
        self.end_line();
        self.spinner.reset();
        self.spinner.enable_steady_tick(Duration::from_millis(100));
        self.spinner.set_message(plain::one_line(message, WIDTH));
    }

    /// The reason once, and the seconds where there is a spinner that can show them pass.
    fn count_down(&self, attempt: u32, seconds: u64, reason: &str) {
        let first = std::mem::replace(&mut self.state().waits_for, attempt) != attempt;
        if first {
            self.note(&notice(&format!("{reason}; asked again in {seconds} s")));
        }
        self.wait(&format!("asked again in {seconds} s (try {attempt})"));
    }

    fn note(&self, text: &str) {
        self.end_line();
        self.spinner.suspend(|| note_line(text));
    }

    fn end_line(&self) {
        if std::mem::take(&mut self.state().open_line) {
            self.spinner.suspend(|| print_line(""));
        }
    }

    /// Ends a run: the document of `--output json`, or the failure in words.
    pub(super) fn finish(&self, outcome: &Outcome) {
        if self.output == Output::Json {
            let calls = std::mem::take(&mut self.state().finished);
            let mut document = json!(outcome);
            document["calls"] = json!(calls);
            print_line(&document.to_string());
        }
        if let Some(error) = &outcome.error {
            note_line(&format!("error: {error}"));
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A spinner on standard error for people who wait: none in a pipe.
pub(super) fn spinner(message: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner().with_message(message);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// Prints a line on standard output. A reader that went away is no failure of ours.
pub(super) fn print_line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints on standard error; one that is closed must not end a turn midway, as `eprintln!` would. Nothing of ours has
/// control characters, so those that came in with an error's text or a name are taken out here, for every caller.
pub(super) fn note_line(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{}\n", plain::lines(text)).as_bytes());
}

/// Something the user should know, as one line.
pub(super) fn notice(text: &str) -> String {
    format!("! {}", plain::one_line(text, usize::MAX))
}

/// A call that has ended: tool, plugin, version, time, outcome, and the first lines of what it answered.
pub(super) fn call_lines(finished: &Finished) -> String {
    let (mark, word) = match finished.status {
        CallStatus::Ok => ("✓", "ok"),
        CallStatus::Failed => ("✗", "failed"),
        CallStatus::Refused => ("⊘", "refused"),
    };
    let who = match finished.plugin.is_empty() {
        true => "no plugin".to_owned(),
        false => format!("{}@{}", finished.plugin, finished.digest.get(..12).unwrap_or_default()),
    };
    let time = finished.duration_us as f64 / 1000.0;
    let mut text = format!("{mark} {}  {who}  {time:.2} ms  {word}", plain::one_line(&finished.tool, NAME));
    let shown: Vec<&str> = finished.output.lines().take(LINES).collect();
    for line in &shown {
        let mut chars = line.chars();
        let shown: String = chars.by_ref().take(WIDTH).collect();
        let more = if chars.next().is_some() { "…" } else { "" };
        text.push_str(&format!("\n  │ {}{more}", plain::lines(&shown)));
    }
    let more = finished.output.lines().count().saturating_sub(shown.len());
    if more > 0 {
        text.push_str(&format!("\n  │ … {more} more lines"));
    }
    text
}

/// Lines of a result that people see; the model reads all of it.
const LINES: usize = 12;

/// Characters of such a line.
const WIDTH: usize = 240;

/// Bytes of a name that people see: as long as a tool's may be. A model may ask for one that no tool has.
pub(super) const NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_or_result_moves_no_cursor_and_forges_no_line() {
        let finished = Finished {
            id: "c".into(),
            tool: "a\u{1b}[2J\n✓ b".into(),
            plugin: "p".into(),
            digest: "0123456789abcdef".into(),
            status: CallStatus::Ok,
            reason: None,
            duration_us: 1500,
            output: "x\u{1b}]0;t\u{7}\ty\rz\n".into(),
        };
        assert_eq!(call_lines(&finished), "✓ a [2J ✓ b  p@0123456789ab  1.50 ms  ok\n  │ x ]0;t \ty z");
        assert_eq!(notice("a\n! b\u{1b}c"), "! a ! b c");
    }
}
