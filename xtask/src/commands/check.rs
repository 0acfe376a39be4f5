//! What is checked without running anything: formatting, lints, docs, licences.

use std::path::PathBuf;

use crate::toolchain::{Toolchain, WASM};
use crate::tree::Tree;
use crate::{Outcome, say, shell};

/// All checks, the quickest first.
pub fn check(tree: &Tree) -> Outcome<()> {
    let guests = [tree.plugins(), tree.test_guests()];
    formatting(tree, &guests)?;
    deny(tree)?;
    clippy(tree, &guests)?;
    docs(tree)
}

fn formatting(tree: &Tree, guests: &[PathBuf]) -> Outcome<()> {
    say("checking the formatting");
    // `--all` follows path dependencies, so the guest SDK is checked with the guests that use it.
    for workspace in std::iter::once(&tree.root).chain(guests) {
        let mut cargo = shell::cargo(tree);
        cargo.args(["fmt", "--all", "--check", "--manifest-path"]).arg(workspace.join("Cargo.toml"));
        shell::run(&mut cargo, "checking the formatting (`cargo fmt --all` mends it)")?;
    }
    Ok(())
}

fn clippy(tree: &Tree, guests: &[PathBuf]) -> Outcome<()> {
    say("running clippy on the host");
    let mut cargo = shell::cargo(tree);
    cargo
        .args(["clippy", "--workspace", "--all-targets", "--target-dir"])
        .arg(&tree.target)
        .args(["--", "-D", "warnings"]);
    shell::run(&mut cargo, "running clippy on the host")?;
    let toolchain = Toolchain::prepare(tree)?;
    if let Toolchain::Debian(_) = toolchain {
        say("skipped: clippy on the guests, since it has no standard library for them where Debian's compiler is used");
        return Ok(());
    }
    say("running clippy on the guests");
    for workspace in guests {
        let (mut cargo, target) = toolchain.cargo(tree)?;
        cargo.args(["clippy", "--workspace", "--target", WASM, "--manifest-path"]).arg(workspace.join("Cargo.toml"));
        cargo.arg("--target-dir").arg(target).args(["--", "-D", "warnings"]);
        shell::run(&mut cargo, "running clippy on the guests")?;
    }
    Ok(())
}

fn docs(tree: &Tree) -> Outcome<()> {
    say("building the docs");
    let mut cargo = shell::cargo(tree);
    cargo
        .args(["doc", "--workspace", "--no-deps", "--target-dir"])
        .arg(&tree.target)
        .env("RUSTDOCFLAGS", "-D warnings");
    shell::run(&mut cargo, "building the docs")
}

/// Licences, bans and sources need no network. Advisories come from a database that cannot be reached everywhere; what
/// was not checked is said, and what was checked must hold.
fn deny(tree: &Tree) -> Outcome<()> {
    if shell::which("cargo-deny").is_none() {
        say("skipped: licences, bans and advisories (`cargo install --locked cargo-deny` brings the checker)");
        return Ok(());
    }
    say("checking licences, bans and sources");
    let mut cargo = shell::cargo(tree);
    shell::run(cargo.args(["deny", "check", "licenses", "bans", "sources"]), "checking dependencies")?;
    let fetched = shell::output(shell::cargo(tree).args(["deny", "fetch", "db"]), "fetching the advisories")?;
    if !fetched.status.success() {
        say("skipped: advisories, since their database could not be fetched");
        return Ok(());
    }
    let mut cargo = shell::cargo(tree);
    shell::run(cargo.args(["deny", "check", "--disable-fetch", "advisories"]), "checking advisories")
}
