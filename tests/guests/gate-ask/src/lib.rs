//! A gate that asks a person about every call.

use astrarium_sdk::hooks::{PreToolUse, PreToolUseDecision, PreToolUseEvent};
use astrarium_sdk::{Context, Error, hooks};

struct Gate;

impl PreToolUse for Gate {
    fn handle(_: &Context, event: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
        Ok(PreToolUseDecision::Ask(format!("gate-ask asks about {}", event.tool)))
    }
}

hooks! { pre_tool_use: Gate }
