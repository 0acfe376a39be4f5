//! A guest that answers with what it was given, and counts in its store.

use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, Output, Part, Tool, tools};
use serde_json::json;

/// Answers with the text it was given, and with the context of the call as JSON.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text.
    text: String,
}

impl Tool for Echo {
    const NAME: &'static str = "echo";
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let extra: serde_json::Value = serde_json::from_str(&ctx.extra)?;
        let context = json!({
            "session": ctx.session,
            "call": ctx.call,
            "step": ctx.step,
            "agent": ctx.agent.name(),
            "language": ctx.language,
            "extra": extra,
        });
        Ok(Output::text(self.text).and(Part::Json(context.to_string())))
    }
}

/// Adds one to a number in the session's store and answers with the sum.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct KvCount {
    /// Name of the number.
    #[serde(default = "count")]
    key: String,
}

fn count() -> String {
    "count".into()
}

impl Tool for KvCount {
    const NAME: &'static str = "kv_count";

    fn call(self, _: &Context) -> Result<Output, Error> {
        Ok(kv::increment(Scope::Session, &self.key, 1)?.to_string().into())
    }
}

tools!(Echo, KvCount);
