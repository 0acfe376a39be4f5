//! The plugin of the README, as a reader would write it; a test compares the two.

use astrarium_sdk::{Context, Error, Output, Tool, tools};

/// Says a text louder.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Shout {
    /// What to say.
    text: String,
}

impl Tool for Shout {
    const NAME: &'static str = "shout";
    fn call(self, _: &Context) -> Result<Output, Error> {
        Ok(self.text.to_uppercase().into())
    }
}

tools!(Shout);
