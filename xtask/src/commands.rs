//! The commands, each a short list of steps in order.

mod check;

use std::process::Command;

use crate::toolchain::Toolchain;
use crate::tree::Tree;
use crate::{Outcome, guests, javascript, python, say, share, shell};

pub use check::check;

/// The compiler for guests, the guests, and `share/astrarium`.
pub fn setup(tree: &Tree) -> Outcome<Toolchain> {
    let toolchain = Toolchain::prepare(tree)?;
    let components = guests::build(tree, &toolchain, &tree.plugins())?;
    share::assemble(tree, &components)?;
    Ok(toolchain)
}

/// Builds the binary and becomes it, in the folder that the user stands in.
pub fn run(tree: &Tree, arguments: &[String]) -> Outcome<()> {
    setup(tree)?;
    build_host(tree)?;
    let mut astrarium = Command::new(tree.target.join("debug/astrarium"));
    astrarium.args(arguments);
    become_program(&mut astrarium)
}

/// What [`setup`] makes, and the guests and programs that only tests use.
pub fn setup_tests(tree: &Tree) -> Outcome<()> {
    let toolchain = setup(tree)?;
    javascript::install(tree)?;
    python::install(tree)?;
    test_guests(tree, &toolchain)?;
    javascript::build(tree)?;
    python::build(tree)
}

/// All tests. The closing lines are cargo's own.
pub fn test(tree: &Tree, arguments: &[String]) -> Outcome<()> {
    setup_tests(tree)?;

    say("testing the guests' own code natively");
    let mut native = shell::cargo(tree);
    native
        .args(["test", "--manifest-path", "plugins/Cargo.toml", "--target-dir"])
        .arg(tree.target.join("guests-native"));
    shell::run(&mut native, "testing the guests natively")?;

    build_host(tree)?;
    let mut cargo = shell::cargo(tree);
    // One failing crate must not hide what the others say.
    cargo.args(["test", "--workspace", "--no-fail-fast", "--target-dir"]).arg(&tree.target).args(arguments);
    shell::run(with_places(tree, "debug", &mut cargo), "running the tests")
}

/// The benches of `tests/`.
pub fn bench(tree: &Tree) -> Outcome<()> {
    let toolchain = setup(tree)?;
    test_guests(tree, &toolchain)?;
    let mut cargo = shell::cargo(tree);
    cargo
        .args([
            "bench",
            "-p",
            "astrarium-tests",
            "--bench",
            "calls",
            "--bench",
            "plan",
            "--bench",
            "skills",
            "--target-dir",
        ])
        .arg(&tree.target);
    shell::run(with_places(tree, "release", &mut cargo), "running the benches")
}

/// `cargo xtask run -- ARGS` reaches xtask with the separator.
pub fn without_separator(mut arguments: Vec<String>) -> Vec<String> {
    if arguments.first().is_some_and(|first| first == "--") {
        arguments.remove(0);
    }
    arguments
}

fn test_guests(tree: &Tree, toolchain: &Toolchain) -> Outcome<()> {
    let components = guests::build(tree, toolchain, &tree.test_guests())?;
    share::assemble_test_plugins(tree, &components, &[javascript::names(), python::names()].concat())
}

fn build_host(tree: &Tree) -> Outcome<()> {
    let mut cargo = shell::cargo(tree);
    cargo.args(["build", "-p", "astrarium", "--target-dir"]).arg(&tree.target);
    shell::run(&mut cargo, "building astrarium")
}

/// Where tests and benches find what was built.
fn with_places<'a>(tree: &Tree, profile: &str, command: &'a mut Command) -> &'a mut Command {
    command
        .env("ASTRARIUM_BIN", tree.target.join(profile).join("astrarium"))
        .env("ASTRARIUM_SHARE", tree.share())
        .env("ASTRARIUM_GUESTS", tree.test_plugins())
        .env("ASTRARIUM_AIMOCK", javascript::aimock(tree))
        .env("ASTRARIUM_PYTHON", python::interpreter(tree))
}

/// The program takes this one's place, so that Ctrl-C and its exit status are its own.
#[cfg(unix)]
fn become_program(command: &mut Command) -> Outcome<()> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(format!("{} cannot be started: {error}", command.get_program().display()))
}

#[cfg(not(unix))]
fn become_program(command: &mut Command) -> Outcome<()> {
    let status =
        command.status().map_err(|error| format!("{} cannot be started: {error}", command.get_program().display()))?;
    std::process::exit(status.code().unwrap_or(1))
}
