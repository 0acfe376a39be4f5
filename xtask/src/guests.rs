//! Building guests in Rust. Cargo decides what is out of date; a build with nothing to do takes less than a second.

use std::path::{Path, PathBuf};

use crate::toolchain::{Toolchain, WASM};
use crate::tree::Tree;
use crate::{Outcome, shell};

/// Builds one workspace of guests and answers with the folder of its components.
pub fn build(tree: &Tree, toolchain: &Toolchain, workspace: &Path) -> Outcome<PathBuf> {
    let (mut cargo, target) = toolchain.cargo(tree)?;
    cargo.args(["build", "--release", "--target", WASM, "--target-dir"]).arg(&target);
    cargo.arg("--manifest-path").arg(workspace.join("Cargo.toml")).args(toolchain.build_options());
    shell::run(&mut cargo, "building the guests")?;
    Ok(target.join(WASM).join("release"))
}
