//! A gate for writes: every path in a call that may change something must lie inside the workspace and be allowed.
//!
//! It sees words and no disk: symlinks are the sandbox's business. It fails closed: a configuration that cannot be
//! read is an error, and the host refuses the call.

mod arguments;
mod rules;

use astrarium_sdk::hooks::{PreToolUse, PreToolUseDecision, PreToolUseEvent};
use astrarium_sdk::{Context, Error, config, hooks};

use rules::{Config, Rules};

struct Guard;

impl PreToolUse for Guard {
    fn handle(ctx: &Context, event: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
        if event.read_only {
            return Ok(PreToolUseDecision::Proceed);
        }
        // Read before it is needed: with rules that nobody can follow, no call may change anything, and `doctor` says so.
        let rules = Rules::new(&config::<Config>()?).map_err(Error::failed)?;
        let input: serde_json::Value = serde_json::from_str(&event.input)?;
        let paths = arguments::paths(&input);
        let workspace = ctx.workspace().unwrap_or_default();
        Ok(match paths.iter().find_map(|path| rules.refusal(path, &workspace)) {
            Some(reason) => PreToolUseDecision::Block(reason),
            None => PreToolUseDecision::Proceed,
        })
    }
}

hooks! { pre_tool_use: Guard }
