//! What the command line says of the prompt.

use super::usage;
use crate::files;
use crate::prompt::effective::{Mode, Wishes};
use crate::yaml;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct PromptArgs {
    /// Takes the place of the whole system prompt
    #[arg(long, value_name = "TEXT")]
    override_system_prompt: Option<String>,
    /// Takes the place of the default prompt; in `run` also of the system context
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Goes last in the system prompt
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,
    /// An agent definition: a Markdown file whose body is the prompt
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// How the agent works
    #[arg(long, value_enum, default_value = "default")]
    mode: ModeArg,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ModeArg {
    /// It answers a person
    Default,
    /// It divides the work and checks what comes back
    Coordinator,
    /// It goes on by itself, under a shorter prompt
    Proactive,
}

/// Bytes that an agent definition may have.
const LIMIT: u64 = 64 << 10;

impl PromptArgs {
    /// The wishes; `headless` when nobody follows the run.
    pub(super) fn wishes(&self, headless: bool) -> Result<Wishes> {
        let agent = self.agent.as_ref().map(|path| {
            let shown = path.display();
            let wrong =
                |reason: String| usage(format!("the agent {shown} does not read: {reason}; name a Markdown file"));
            let text = files::text(path, LIMIT).map_err(|error| wrong(format!("it {error}")))?;
            let (_, body) = yaml::frontmatter(&text).map_err(wrong)?;
            if body.trim().is_empty() {
                return Err(wrong("it has no body".into()));
            }
            Ok((body.trim().to_owned(), shown.to_string()))
        });
        Ok(Wishes {
            override_prompt: self.override_system_prompt.clone(),
            mode: match self.mode {
                ModeArg::Default => Mode::Default,
                ModeArg::Coordinator => Mode::Coordinator,
                ModeArg::Proactive => Mode::Proactive,
            },
            agent: agent.transpose()?,
            custom: self.system_prompt.clone(),
            append: self.append_system_prompt.clone(),
            headless,
        })
    }
}
