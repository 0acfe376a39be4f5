//! A guest that hears of everything: it counts each event in its store by the kind of agent, and gives agents a word on their
//! way. Told by its configuration to `trap` in one of them, such as `subagent pre-tool-use`, it panics there instead.

use astrarium_sdk::hooks::{
    PostToolUse, PostToolUseDecision, PostToolUseEvent, PreToolUse, PreToolUseDecision, PreToolUseEvent, SessionStart,
    SessionStartAnswer, SessionStartEvent, SessionStop, SessionStopEvent, StepComplete, StepCompleteEvent,
    SubagentStart, SubagentStartEvent, SubagentStop, SubagentStopEvent,
};
use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, hooks};

struct Watch;

fn count(ctx: &Context, what: &str) -> Result<(), Error> {
    let trap: Option<String> = astrarium_sdk::config::get("trap")?;
    let what = format!("{} {what}", ctx.agent.name());
    if trap.as_ref() == Some(&what) {
        panic!("agent-watch was told to trap in {what}");
    }
    kv::increment(Scope::Plugin, &what, 1)?;
    Ok(())
}

impl SessionStart for Watch {
    fn handle(ctx: &Context, _: SessionStartEvent) -> Result<SessionStartAnswer, Error> {
        count(ctx, "session-start")?;
        Ok(SessionStartAnswer::default())
    }
}

impl PreToolUse for Watch {
    fn handle(ctx: &Context, _: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
        count(ctx, "pre-tool-use")?;
        Ok(PreToolUseDecision::Proceed)
    }
}

impl PostToolUse for Watch {
    fn handle(ctx: &Context, _: PostToolUseEvent) -> Result<PostToolUseDecision, Error> {
        count(ctx, "post-tool-use")?;
        Ok(PostToolUseDecision::Keep)
    }
}

impl StepComplete for Watch {
    fn handle(ctx: &Context, _: StepCompleteEvent) -> Result<(), Error> {
        count(ctx, "step-complete")
    }
}

impl SubagentStart for Watch {
    fn handle(ctx: &Context, event: SubagentStartEvent) -> Result<Option<String>, Error> {
        count(ctx, "subagent-start")?;
        kv::set(Scope::Plugin, "begins", format!("{} | {} | {}", event.agent, event.task, event.max_steps).as_bytes())?;
        Ok(Some("mind the moon".into()))
    }
}

impl SubagentStop for Watch {
    fn handle(ctx: &Context, event: SubagentStopEvent) -> Result<(), Error> {
        count(ctx, "subagent-stop")?;
        let SubagentStopEvent { agent, reason, steps, tool_calls, summary, .. } = event;
        let told = format!("{agent} | {reason} | {steps} | {tool_calls} | {summary}");
        kv::set(Scope::Plugin, "ended", told.as_bytes())?;
        Ok(())
    }
}

impl SessionStop for Watch {
    fn handle(ctx: &Context, _: SessionStopEvent) -> Result<(), Error> {
        count(ctx, "session-stop")
    }
}

hooks! {
    session_start: Watch,
    pre_tool_use: Watch,
    post_tool_use: Watch,
    step_complete: Watch,
    subagent_start: Watch,
    subagent_stop: Watch,
    session_stop: Watch,
}
