//! The WIT folder that the JavaScript and Python tools read: a guest's own world with the contract as its dependencies.
//!
//! The contract is written in `wit/` only; these copies lie under the target folder and are made anew for each build.

use std::path::Path;

use crate::tree::Tree;
use crate::{Outcome, files};

/// Assembles the folder for one guest.
pub fn assemble(tree: &Tree, world: &Path, folder: &Path) -> Outcome<()> {
    files::remove(folder)?;
    files::write(&folder.join("world.wit"), &files::read(world)?)?;
    let contract = tree.root.join("wit");
    files::mirror(&contract.join("deps"), &folder.join("deps"))?;
    for path in files::entries(&contract)?.iter().filter(|path| path.extension().is_some_and(|end| end == "wit")) {
        let copy = folder.join("deps/plugin").join(path.file_name().unwrap_or_default());
        files::write(&copy, &files::read(path)?)?;
    }
    Ok(())
}
