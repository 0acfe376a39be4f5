//! A gate that traps. The host must refuse the calls that it would have judged.

use astrarium_sdk::hooks::{PreToolUse, PreToolUseDecision, PreToolUseEvent};
use astrarium_sdk::{Context, Error, hooks};

struct Gate;

impl PreToolUse for Gate {
    fn handle(_: &Context, event: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
        panic!("gate-broken cannot judge {}", event.tool);
    }
}

hooks! { pre_tool_use: Gate }
