//! Where things lie in this repository and under its target folder.

use std::path::{Path, PathBuf};

use crate::Outcome;

/// The folders that every step works on.
pub struct Tree {
    /// The repository.
    pub root: PathBuf,
    /// Cargo's target folder, also where it was moved by `CARGO_TARGET_DIR` or a configuration file.
    pub target: PathBuf,
}

impl Tree {
    /// The target folder is read off this program's own path, `<target>/<profile>/xtask`, so that no setting of cargo
    /// has to be read twice.
    pub fn find() -> Outcome<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask lies in no folder")?.to_path_buf();
        let program =
            std::env::current_exe().map_err(|error| format!("cannot tell where xtask itself lies: {error}"))?;
        let target = program.ancestors().nth(2).ok_or("xtask must lie in cargo's target folder: run `cargo xtask`")?;
        Ok(Self { target: target.to_path_buf(), root })
    }

    /// The workspace of the plugins that ship.
    pub fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// The workspace of the guests that only tests use.
    pub fn test_guests(&self) -> PathBuf {
        self.root.join("tests/guests")
    }

    /// What ships beside the binary; the binary finds it as `../share/astrarium`.
    pub fn share(&self) -> PathBuf {
        self.target.join("share/astrarium")
    }

    /// Assembled plugins that only tests use.
    pub fn test_plugins(&self) -> PathBuf {
        self.target.join("test-plugins")
    }

    /// Packages of the npm registry, and the scripts that use them.
    pub fn js_tools(&self) -> PathBuf {
        self.target.join("js-tools")
    }

    /// The virtual environment with packages of PyPI.
    pub fn py_tools(&self) -> PathBuf {
        self.target.join("py-tools")
    }
}
