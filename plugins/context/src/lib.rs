//! compress_context: the model makes room in its own window, at a moment that suits its work.
//!
//! The host compacts when the step is over, since the results of the step belong to the conversation; the answer says so.

use astrarium_sdk::host::context;
use astrarium_sdk::{Context, Error, Output, Tool, tools};

/// Compacts the conversation when this step is over: a summary takes the place of older messages.
///
/// Use it between two parts of a long work, before the window is full, and say in `instructions` what the summary must keep:
/// figures, paths, decisions. Standing instructions of the user, open tasks and the latest question stay in any case.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompressContext {
    /// What the summary must keep, in a few words.
    instructions: Option<String>,
}

impl Tool for CompressContext {
    const NAME: &'static str = "compress_context";
    const SUMMARY: Option<&'static str> = Some("Makes room in the conversation's window");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let usage = context::get_usage()?;
        context::compact(self.instructions.as_deref())?;
        Ok(answer(&usage, ctx.language.starts_with("zh")).into())
    }
}

tools!(CompressContext);

fn answer(usage: &context::Usage, chinese: bool) -> String {
    let (tokens, messages) = (usage.tokens, usage.messages);
    let percent = (tokens.saturating_mul(100)).checked_div(usage.window).unwrap_or(0);
    if chinese {
        return format!(
            "对话现有 {messages} 条消息，约 {tokens} 个 token，占窗口的 {percent} %；本步结束后即行压缩。请继续工作。"
        );
    }
    format!(
        "the conversation has {messages} messages and about {tokens} tokens, {percent} % of the window; it is compacted as \
         soon as this step is over. Go on with your work."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_how_full_the_window_is_and_when_it_is_compacted() {
        let usage = context::Usage { tokens: 50_000, window: 200_000, messages: 12 };
        let said = answer(&usage, false);
        assert!(said.contains("12 messages") && said.contains("25 %") && said.contains("step is over"), "{said}");
        assert!(answer(&usage, true).contains("25 %"));
        assert!(answer(&context::Usage { window: 0, ..usage }, false).contains("0 %"));
    }
}
