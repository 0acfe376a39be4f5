//! Running other programs, with errors that name the program and what it was for.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Outcome;
use crate::tree::Tree;

/// The cargo that runs xtask, in the repository's folder.
pub fn cargo(tree: &Tree) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&tree.root);
    command
}

/// Runs a program to its end, its output shown.
pub fn run(command: &mut Command, purpose: &str) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, purpose, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{purpose}: `{}` ended with {status}", shown(command))) }
}

/// Runs a program to its end and answers with its output, whatever its exit status.
pub fn output(command: &mut Command, purpose: &str) -> Outcome<Output> {
    command.stdin(Stdio::null()).output().map_err(|error| cannot_start(command, purpose, &error))
}

/// Runs a program to its end and answers with its standard output; its standard error is shown only when it fails.
pub fn capture(command: &mut Command, purpose: &str) -> Outcome<String> {
    let output = output(command, purpose)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{purpose}: `{}` ended with {}\n{}", shown(command), output.status, said.trim_end()))
}

/// The first folder of `PATH` that holds the program.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// `PATH` with one folder before all others.
pub fn path_with(first: &Path) -> Outcome<std::ffi::OsString> {
    let old = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(first.to_path_buf()).chain(std::env::split_paths(&old)))
        .map_err(|error| format!("{} cannot be put into PATH: {error}", first.display()))
}

fn cannot_start(command: &Command, purpose: &str, error: &std::io::Error) -> String {
    let program = command.get_program().display();
    match error.kind() {
        ErrorKind::NotFound => format!("{purpose}: `{program}` is not installed, or not in PATH"),
        _ => format!("{purpose}: `{program}` cannot be started: {error}"),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
