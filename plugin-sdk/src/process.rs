//! Native programs, under the operator's rules. Needs `process` with a rule in the manifest, and the grant.

use std::time::Duration;

pub use crate::host::process::Outcome;
use crate::{Error, host};

/// A program to run; no shell is involved.
#[derive(Debug, Clone)]
pub struct Command(host::process::Command);

impl Command {
    /// A program, as the grant names it.
    pub fn new(program: impl Into<String>) -> Self {
        Self(host::process::Command {
            program: program.into(),
            arguments: Vec::new(),
            working_dir: None,
            stdin: None,
            timeout_ms: None,
        })
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.0.arguments.push(argument.into());
        self
    }

    /// Runs it in this folder, inside of a granted one; relative to the first of those.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<String>) -> Self {
        self.0.working_dir = Some(folder.into());
        self
    }

    /// Gives it this to read.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.stdin = Some(bytes.into());
        self
    }

    /// Kills it after this time; the grant's own time is the most.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.0.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Runs it to its end. The clock of this call stands still meanwhile.
    pub fn run(self) -> Result<Outcome, Error> {
        Ok(host::process::run(&self.0)?)
    }
}
