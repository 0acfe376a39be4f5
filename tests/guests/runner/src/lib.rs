//! Runs whatever program it is told to, and answers with all that came of it.

use astrarium_sdk::host::process::{Command, run};
use astrarium_sdk::{Context, Error, Output, Tool, tools};
use serde_json::json;

/// Runs a program.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Run {
    /// Its name.
    #[serde(default = "bash")]
    program: String,
    /// Its arguments.
    arguments: Vec<String>,
    /// Where it runs.
    working_dir: Option<String>,
    /// What it reads.
    stdin: Option<String>,
    /// Its time.
    timeout_ms: Option<u32>,
}

fn bash() -> String {
    "bash".into()
}

impl Tool for Run {
    const NAME: &'static str = "run";

    fn call(self, _: &Context) -> Result<Output, Error> {
        ran(&Command {
            program: self.program,
            arguments: self.arguments,
            working_dir: self.working_dir,
            stdin: self.stdin.map(String::into_bytes),
            timeout_ms: self.timeout_ms,
        })
    }
}

/// Runs a shell command, of a tool that says it changes nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunReading {
    /// The command.
    command: String,
}

impl Tool for RunReading {
    const NAME: &'static str = "run_reading";
    const READ_ONLY: bool = true;

    fn call(self, _: &Context) -> Result<Output, Error> {
        let arguments = vec!["-c".into(), self.command];
        ran(&Command { program: bash(), arguments, working_dir: None, stdin: None, timeout_ms: None })
    }
}

fn ran(command: &Command) -> Result<Output, Error> {
    let outcome = run(command)?;
    let shown = json!({
        "status": outcome.status,
        "stdout": String::from_utf8_lossy(&outcome.stdout),
        "stderr": String::from_utf8_lossy(&outcome.stderr),
        "truncated": outcome.truncated,
        "timed_out": outcome.timed_out,
    });
    Ok(shown.to_string().into())
}

tools!(Run, RunReading);
