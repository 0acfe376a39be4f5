//! Counts what a session uses, step by step, and writes it to the log: an observer that changes nothing.

mod totals;

use astrarium_sdk::hooks::{SessionStart, SessionStartAnswer, SessionStartEvent, SessionStop, SessionStopEvent};
use astrarium_sdk::hooks::{StepComplete, StepCompleteEvent};
use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, hooks, log};

use totals::Totals;

struct StepLog;

impl SessionStart for StepLog {
    fn handle(ctx: &Context, event: SessionStartEvent) -> Result<SessionStartAnswer, Error> {
        let how = if event.resumed { "resumed" } else { "started" };
        log::info(format!("session {} {how} with {}, {} open tasks", ctx.session, event.model, event.open_tasks));
        Ok(SessionStartAnswer::default())
    }
}

impl StepComplete for StepLog {
    fn handle(ctx: &Context, event: StepCompleteEvent) -> Result<(), Error> {
        let step = Totals::from(&event);
        step.try_map(|key, value| kv::increment(Scope::Session, key, value))?;
        log::info(format!("{} step {}: {step}", ctx.agent.name(), ctx.step));
        Ok(())
    }
}

impl SessionStop for StepLog {
    fn handle(ctx: &Context, event: SessionStopEvent) -> Result<(), Error> {
        // Adding nothing answers with the sum, whatever form the host stores it in.
        let totals = Totals::default().try_map(|key, _| kv::increment(Scope::Session, key, 0))?;
        log::info(format!("session {} ended ({}): {} steps, {totals}", ctx.session, event.reason, totals.steps));
        Ok(())
    }
}

hooks! { session_start: StepLog, step_complete: StepLog, session_stop: StepLog }
