//! A guest that answers with what it was given, and counts in its store.

use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, Image, Output, Part, Tool, tools};
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

/// Answers with more than anybody reads at once.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Large {
    /// How much, in bytes.
    bytes: usize,
    /// `lines` of text with their numbers, one `line`, `json` on one line, or a `picture`.
    kind: String,
}

impl Tool for Large {
    const NAME: &'static str = "large";
    const READ_ONLY: bool = true;

    fn call(self, _: &Context) -> Result<Output, Error> {
        let lines = (1..).map(|line| format!("line {line}: 两次测量的结果一致\n"));
        match self.kind.as_str() {
            "lines" => {
                let mut text = String::with_capacity(self.bytes + 64);
                lines
                    .take_while(|line| {
                        text.push_str(line);
                        text.len() < self.bytes
                    })
                    .for_each(drop);
                Ok(text.into())
            }
            "line" => Ok("word ".repeat(self.bytes / 5).into()),
            "json" => {
                let rows: Vec<_> = (0..self.bytes / 20).map(|n| json!({ "n": n, "s": "a, b" })).collect();
                Ok(Output::default().and(Part::Json(json!(rows).to_string())))
            }
            "picture" => {
                let data = [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![7; self.bytes]].concat();
                let image = Image { media_type: "image/png".into(), data };
                Ok(Output::text("a plot").and(Part::Image(image)))
            }
            other => Err(Error::invalid(format!("{other} is no kind"))),
        }
    }
}

tools!(Echo, KvCount, Large);
