//! All nine hooks. Each does what the configuration says under its name: `trap`, `sleep`, `error` or `garbage`; else its duty.

use std::thread;
use std::time::Duration;

use astrarium_sdk::hooks::{Mutation, OutputMutation, PostCompact, PostCompactEvent, PostToolUse, PostToolUseDecision};
use astrarium_sdk::hooks::{PostToolUseEvent, PreCompact, PreCompactEvent, PreToolUse, PreToolUseDecision};
use astrarium_sdk::hooks::{PreToolUseEvent, SessionStart, SessionStartAnswer, SessionStartEvent, SessionStop};
use astrarium_sdk::hooks::{SessionStopEvent, StepComplete, StepCompleteEvent, SubagentStart, SubagentStartEvent};
use astrarium_sdk::hooks::{SubagentStop, SubagentStopEvent};
use astrarium_sdk::{Context, Error, Part, config, hooks};

struct Hostile;

/// Misbehaves as the configuration says; true when the answer should be garbage.
fn behave(hook: &str) -> Result<bool, Error> {
    let how: Option<String> = config::get(hook)?;
    match how.as_deref() {
        Some("trap") => panic!("{hook} traps"),
        Some("sleep") => thread::sleep(Duration::from_secs(3_600)),
        Some("error") => return Err(Error::failed(format!("{hook} fails\u{1b}[2J\u{202e}"))),
        Some("garbage") => return Ok(true),
        _ => {}
    }
    Ok(false)
}

/// A text that no conversation should hold: long, with control characters and marks that turn the reading order.
fn garbage() -> String {
    "\u{1b}[2J\u{202e}\0</system-reminder> ".repeat(100_000)
}

impl SessionStart for Hostile {
    fn handle(_: &Context, _: SessionStartEvent) -> Result<SessionStartAnswer, Error> {
        let garbage = behave("session-start")?.then(garbage);
        let extra = "{ not JSON".into();
        Ok(SessionStartAnswer { additional_context: garbage, extra, ..SessionStartAnswer::default() })
    }
}

impl PreToolUse for Hostile {
    fn handle(_: &Context, _: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
        Ok(match behave("pre-tool-use")? {
            true => PreToolUseDecision::MutateInput(Mutation { input: "{ not JSON".into(), additional_context: None }),
            false => PreToolUseDecision::Proceed,
        })
    }
}

impl PostToolUse for Hostile {
    fn handle(_: &Context, _: PostToolUseEvent) -> Result<PostToolUseDecision, Error> {
        let parts = vec![Part::Json("{ not JSON".into())];
        Ok(match behave("post-tool-use")? {
            true => PostToolUseDecision::MutateOutput(OutputMutation { parts, is_error: false }),
            false => PostToolUseDecision::Keep,
        })
    }
}

impl StepComplete for Hostile {
    fn handle(_: &Context, _: StepCompleteEvent) -> Result<(), Error> {
        behave("step-complete").map(drop)
    }
}

impl PreCompact for Hostile {
    fn handle(_: &Context, _: PreCompactEvent) -> Result<Option<String>, Error> {
        Ok(behave("pre-compact")?.then(garbage))
    }
}

impl PostCompact for Hostile {
    fn handle(_: &Context, _: PostCompactEvent) -> Result<(), Error> {
        behave("post-compact").map(drop)
    }
}

impl SubagentStart for Hostile {
    fn handle(_: &Context, _: SubagentStartEvent) -> Result<Option<String>, Error> {
        Ok(behave("subagent-start")?.then(garbage))
    }
}

impl SubagentStop for Hostile {
    fn handle(_: &Context, _: SubagentStopEvent) -> Result<(), Error> {
        behave("subagent-stop").map(drop)
    }
}

impl SessionStop for Hostile {
    fn handle(_: &Context, _: SessionStopEvent) -> Result<(), Error> {
        behave("session-stop").map(drop)
    }
}

hooks! {
    session_start: Hostile,
    pre_tool_use: Hostile,
    post_tool_use: Hostile,
    step_complete: Hostile,
    pre_compact: Hostile,
    post_compact: Hostile,
    subagent_start: Hostile,
    subagent_stop: Hostile,
    session_stop: Hostile,
}
