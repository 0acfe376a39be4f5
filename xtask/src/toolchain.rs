//! The compiler for guests: the pinned toolchain with its wasm32-wasip2 target, or Debian's where rustup has none.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian::{self, Debian};
use crate::tree::Tree;
use crate::{Outcome, say, shell};

/// What guests are built for.
pub const WASM: &str = "wasm32-wasip2";

/// Where the target's standard library comes from.
pub enum Toolchain {
    /// From rustup, inside the pinned toolchain.
    Rustup,
    /// From Debian packages under the target folder.
    Debian(Debian),
}

impl Toolchain {
    /// Adds the target where it is missing. Asks a server only then.
    pub fn prepare(tree: &Tree) -> Outcome<Self> {
        let sysroot = sysroot(tree)?;
        if has_target(&sysroot) {
            return Ok(Self::Rustup);
        }
        if let Some(ready) = debian::ready(tree, &sysroot) {
            say("the guests are built with Debian's Rust under target/debian-rust, set up by an earlier run");
            return Ok(Self::Debian(ready));
        }
        say(&format!("adding the target {WASM} to the Rust toolchain"));
        let Err(reason) = add_target(tree, &sysroot) else { return Ok(Self::Rustup) };
        say(&format!("rustup could not add it ({reason}); trying Debian's packages instead"));
        debian::prepare(tree, &sysroot).map(Self::Debian).map_err(|cause| {
            format!(
                "the Rust target {WASM} is missing, and neither rustup nor Debian's packages can bring it\n  \
                 rustup: {reason}\n  Debian: {cause}\n  \
                 with a connection to rustup's server, run `rustup target add {WASM}` here and try again"
            )
        })
    }

    /// Cargo with this compiler, and the folder it builds guests in: another compiler, another folder.
    pub fn cargo(&self, tree: &Tree) -> Outcome<(Command, PathBuf)> {
        match self {
            Self::Rustup => Ok((shell::cargo(tree), tree.target.join("guests"))),
            Self::Debian(debian) => Ok((debian.cargo(tree)?, tree.target.join("guests-debian"))),
        }
    }

    /// Options of `cargo build` that this compiler needs.
    pub fn build_options(&self) -> &'static [&'static str] {
        match self {
            Self::Rustup => &[],
            Self::Debian(_) => &["-Zbuild-std=std,panic_abort"],
        }
    }
}

fn sysroot(tree: &Tree) -> Outcome<PathBuf> {
    let mut rustc = Command::new("rustc");
    let printed =
        shell::capture(rustc.args(["--print", "sysroot"]).current_dir(&tree.root), "looking for the Rust toolchain")?;
    Ok(PathBuf::from(printed.trim_end()))
}

/// The folder alone can be left over from a removed target; its standard library is what counts.
fn has_target(sysroot: &Path) -> bool {
    let folder = sysroot.join("lib/rustlib").join(WASM).join("lib");
    std::fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("libstd-")))
    })
}

/// Every failure counts alike: no rustup, a linked toolchain, no network. The error is rustup's reason in one line.
fn add_target(tree: &Tree, sysroot: &Path) -> Outcome<()> {
    let mut rustup = Command::new("rustup");
    let output = shell::output(rustup.args(["target", "add", WASM]).current_dir(&tree.root), "adding the target")?;
    if output.status.success() && has_target(sysroot) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find_map(|line| line.strip_prefix("error: ")).or(said.lines().last());
    Err(line.unwrap_or("rustup added it to another toolchain than the one that `rustc` belongs to").to_string())
}
