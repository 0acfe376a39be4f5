//! Writes to the log what each compaction did, keeps count of them, and hands an operator's instructions to the summary.

use astrarium_sdk::hooks::{PostCompact, PostCompactEvent, PreCompact, PreCompactEvent};
use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, config, hooks, log};

struct CompactionLog;

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    instructions: String,
}

impl PreCompact for CompactionLog {
    fn handle(ctx: &Context, event: PreCompactEvent) -> Result<Option<String>, Error> {
        let PreCompactEvent { messages, tokens, trigger, .. } = event;
        log::info(format!(
            "session {} is compacted ({trigger}): {messages} messages, about {tokens} tokens",
            ctx.session
        ));
        let instructions = config::<Config>()?.instructions;
        Ok((!instructions.trim().is_empty()).then_some(instructions))
    }
}

impl PostCompact for CompactionLog {
    fn handle(ctx: &Context, event: PostCompactEvent) -> Result<(), Error> {
        let times = kv::increment(Scope::Session, "compactions", 1)?;
        log::info(format!("session {}, compaction {times}: {}", ctx.session, figures(&event)));
        Ok(())
    }
}

hooks! { pre_compact: CompactionLog, post_compact: CompactionLog }

fn figures(event: &PostCompactEvent) -> String {
    let PostCompactEvent { messages_before, messages_after, tokens_before, tokens_after, method, .. } = event;
    // Of nothing, nothing is left.
    let left = (tokens_after * 100).checked_div(*tokens_before).unwrap_or(0);
    format!(
        "by {method}, {messages_before} to {messages_after} messages, {tokens_before} to {tokens_after} tokens ({left} %)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_say_what_is_left() {
        let event = PostCompactEvent {
            messages_before: 60,
            messages_after: 8,
            tokens_before: 100_000,
            tokens_after: 12_500,
            method: "summary".into(),
            extra: "{}".into(),
        };
        assert_eq!(figures(&event), "by summary, 60 to 8 messages, 100000 to 12500 tokens (12 %)");
        assert!(figures(&PostCompactEvent { tokens_before: 0, ..event }).ends_with("(0 %)"));
    }
}
