//! run_bash: a shell command in the workspace, confined by the host to it, and what came of it on one page.
//!
//! Nothing here judges a command: what a shell can reach is the grant's and the host's business.

use astrarium_sdk::process::{Command, Outcome};
use astrarium_sdk::{Context, Error, Output, Tool};
use std::time::Duration;

/// How long a command may take where nothing is said, in seconds.
const DEFAULT_S: u32 = 120;
/// The longest that can be asked for; the operator's limit may be shorter.
const MOST_S: u32 = 600;

/// Runs a command with bash in the workspace and answers with its output and exit status.
///
/// The command sees the workspace and the system's programs. It has no network, no terminal and no input, can write
/// nowhere else, and what it leaves running ends with it. Standard output and error come together, in order.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBash {
    /// The command, as one would type it; several lines are fine.
    pub command: String,
    /// Seconds until it is killed; 120 unless given, 600 at most.
    #[schemars(range(min = 1))]
    pub timeout_s: Option<u32>,
    /// Folder to run it in, relative to the workspace.
    pub cwd: Option<String>,
}

impl Tool for RunBash {
    const NAME: &'static str = "run_bash";
    const SUMMARY: Option<&'static str> = Some("Runs a shell command in the workspace, without network");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        if self.command.trim().is_empty() {
            return Err(Error::invalid("the command is empty; give one to run"));
        }
        let seconds = self.timeout_s.unwrap_or(DEFAULT_S).clamp(1, MOST_S);
        // Both streams in one, so that a message stands beside what it is about.
        let mut command = Command::new("bash").arg("-c").arg(format!("exec 2>&1\n{}", self.command));
        if let Some(cwd) = self.cwd.as_deref() {
            command = command
                .current_dir(inside(cwd, ctx.extra("workspace").and_then(|path| Some(path.as_str()?.to_owned()))));
        }
        let outcome = command.timeout(Duration::from_secs(seconds.into())).run()?;
        let text = shown(&outcome, seconds);
        Ok(if outcome.status == Some(0) { text.into() } else { Output::text(text).as_error() })
    }
}

/// The folder as the host takes it. Models also name it as the user knows it.
fn inside(cwd: &str, workspace: Option<String>) -> String {
    let rest = workspace.and_then(|workspace| {
        let rest = cwd.strip_prefix(workspace.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
    });
    rest.unwrap_or_else(|| cwd.to_owned())
}

/// The output, and a last line with how it ended.
fn shown(outcome: &Outcome, seconds: u32) -> String {
    let mut text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let more = String::from_utf8_lossy(&outcome.stderr);
    for part in [more.trim()].into_iter().filter(|part| !part.is_empty()) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(part);
    }
    let text = text.trim_end();
    let cut = if outcome.truncated { "; the output was too long, its middle is cut" } else { "" };
    let end = match (outcome.status, outcome.timed_out) {
        (Some(status), _) => format!("exit status {status}"),
        (None, true) => format!("killed after {seconds} s; ask with a larger timeout_s, or for less"),
        (None, false) => "killed".to_owned(),
    };
    let newline = if text.is_empty() { "" } else { "\n" };
    format!("{text}{newline}[{end}{cut}]")
}

astrarium_sdk::tools!(RunBash);

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: Option<i32>, stdout: &str, stderr: &str) -> Outcome {
        Outcome { status, stdout: stdout.into(), stderr: stderr.into(), truncated: false, timed_out: false }
    }

    #[test]
    fn the_last_line_says_how_it_ended() {
        assert_eq!(shown(&outcome(Some(0), "a\nb\n\n", ""), 9), "a\nb\n[exit status 0]");
        assert_eq!(shown(&outcome(Some(2), "", ""), 9), "[exit status 2]");
        assert_eq!(shown(&outcome(None, "a", "\n[killed: it had more]\n"), 9), "a\n[killed: it had more]\n[killed]");
        let late = Outcome { timed_out: true, truncated: true, ..outcome(None, "a\n", "") };
        assert_eq!(
            shown(&late, 9),
            "a\n[killed after 9 s; ask with a larger timeout_s, or for less; the output was too long, its middle is cut]"
        );
    }

    #[test]
    fn the_workspace_goes_by_its_own_name_too() {
        let workspace = Some("/home/ada/sky/".to_owned());
        assert_eq!(inside("src", workspace.clone()), "src");
        assert_eq!(inside("/home/ada/sky/src", workspace.clone()), "src");
        assert_eq!(inside("/home/ada/sky", workspace.clone()), "");
        assert_eq!(inside("/home/ada/skyshop", workspace), "/home/ada/skyshop");
        assert_eq!(inside("/workspace/src", None), "/workspace/src");
    }
}
