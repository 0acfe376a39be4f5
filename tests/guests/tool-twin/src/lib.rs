//! A guest whose only tool has the name of another guest's.

use astrarium_sdk::{Context, Error, Output, Tool, tools};

/// Answers with the text it was given, as the twin.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text.
    text: String,
}

impl Tool for Echo {
    const NAME: &'static str = "echo";
    const READ_ONLY: bool = true;

    fn call(self, _: &Context) -> Result<Output, Error> {
        Ok(format!("twin: {}", self.text).into())
    }
}

tools!(Echo);
