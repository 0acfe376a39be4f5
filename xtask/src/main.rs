//! `cargo xtask`: the commands that set up, run, test and check this repository on a machine that has only cargo.
//!
//! Everything it makes lies under cargo's target folder. It downloads from package registries by their own clients
//! only, and says on standard error what it does.

mod commands;
mod debian;
mod files;
mod fingerprint;
mod guests;
mod javascript;
mod python;
mod share;
mod shell;
mod sources;
mod toolchain;
mod tree;
mod wit;

use std::process::ExitCode;

/// What a step answers with; the error is one line for a person: what was wrong, where, and the cure.
type Outcome<T> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  run [-- ARGS]    set up, build and run astrarium with ARGS; without ARGS it plays the demo
  test [-- ARGS]   set up, build the test guests and run all tests; ARGS go to `cargo test`
  setup [--tests]  the WASM target, the guests and target/share, and nothing else; with --tests also what tests need
  check            formatting, clippy, docs, licences
  bench            the benches, in release mode
  ci               check, then test";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest = commands::without_separator(arguments.collect());
    let outcome = tree::Tree::find().and_then(|tree| match command.as_str() {
        "setup" if rest.is_empty() => commands::setup(&tree).map(|_| ()),
        "setup" if rest == ["--tests"] => commands::setup_tests(&tree),
        "run" => commands::run(&tree, &rest),
        "test" => commands::test(&tree, &rest),
        "check" if rest.is_empty() => commands::check(&tree),
        "bench" if rest.is_empty() => commands::bench(&tree),
        "ci" if rest.is_empty() => commands::check(&tree).and_then(|()| commands::test(&tree, &[])),
        "" | "help" | "--help" | "-h" => {
            eprintln!("{USAGE}");
            Ok(())
        }
        "setup" => Err(format!("`setup` takes nothing but --tests\n{USAGE}")),
        "check" | "bench" | "ci" => Err(format!("`{command}` takes no arguments\n{USAGE}")),
        other => Err(format!("there is no command `{other}`\n{USAGE}")),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: error: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Tells what is being done.
fn say(line: &str) {
    eprintln!("xtask: {line}");
}
