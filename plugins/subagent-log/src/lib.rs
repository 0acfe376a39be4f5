//! Writes to the log which subagents a session started and what became of each, and keeps count.

use astrarium_sdk::hooks::{SubagentStart, SubagentStartEvent, SubagentStop, SubagentStopEvent};
use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, hooks, log};

struct SubagentLog;

/// Characters of a task or an answer in the log: a line, not a page.
const SHOWN: usize = 160;

impl SubagentStart for SubagentLog {
    fn handle(ctx: &Context, event: SubagentStartEvent) -> Result<Option<String>, Error> {
        let number = kv::increment(Scope::Session, "subagents", 1)?;
        let SubagentStartEvent { agent, task, max_steps, .. } = event;
        log::info(format!(
            "session {}, subagent {number} ({}) starts, at most {max_steps} steps: {}",
            ctx.session,
            name(&agent),
            line(&task)
        ));
        Ok(None)
    }
}

impl SubagentStop for SubagentLog {
    fn handle(ctx: &Context, event: SubagentStopEvent) -> Result<(), Error> {
        let SubagentStopEvent { agent, reason, steps, tool_calls, summary, .. } = event;
        kv::increment(Scope::Session, &format!("subagents-{reason}"), 1)?;
        log::info(format!(
            "session {}, a subagent ({}) ended ({reason}) after {steps} steps and {tool_calls} calls: {}",
            ctx.session,
            name(&agent),
            line(&summary)
        ));
        Ok(())
    }
}

hooks! { subagent_start: SubagentLog, subagent_stop: SubagentLog }

fn name(agent: &str) -> &str {
    if agent.is_empty() { "default" } else { agent }
}

/// The beginning, on one line.
fn line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_one_line_of_bounded_length() {
        assert_eq!(line("look\n  at\tthis"), "look at this");
        assert_eq!(line(&"星".repeat(500)).chars().count(), SHOWN + 1);
        assert_eq!(name(""), "default");
    }
}
