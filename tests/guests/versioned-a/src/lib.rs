//! Version "a" of a tool, for the tests of hot swaps.

use std::thread;
use std::time::Duration;

use astrarium_sdk::{Context, Error, Output, Tool, tools};

/// Answers with the version of this plugin.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Version {
    /// Milliseconds to wait first.
    #[serde(default)]
    wait_ms: u64,
}

impl Tool for Version {
    const NAME: &'static str = "version";
    const READ_ONLY: bool = true;

    fn call(self, _: &Context) -> Result<Output, Error> {
        thread::sleep(Duration::from_millis(self.wait_ms));
        Ok("a".into())
    }
}

tools!(Version);
