//! A gate that adds an exclamation mark to what `echo` is given, and says so.

use astrarium_sdk::hooks::{Mutation, PreToolUse, PreToolUseDecision, PreToolUseEvent};
use astrarium_sdk::{Context, Error, hooks};
use serde_json::Value;

struct Gate;

impl PreToolUse for Gate {
    fn handle(_: &Context, event: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
        let mut input: Value = serde_json::from_str(&event.input)?;
        let Some(Value::String(text)) = input.get_mut("text").filter(|_| event.tool == "echo") else {
            return Ok(PreToolUseDecision::Proceed);
        };
        text.push('!');
        Ok(PreToolUseDecision::MutateInput(Mutation {
            input: input.to_string(),
            additional_context: Some("gate-rewrite added an exclamation mark".into()),
        }))
    }
}

hooks! { pre_tool_use: Gate }
