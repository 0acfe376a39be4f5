//! Python for tests: guests built with componentize-py, and the public validator of skills. Both come from PyPI into a
//! virtual environment.

use std::path::PathBuf;
use std::process::Command;

use crate::fingerprint::{self, Fingerprint};
use crate::tree::Tree;
use crate::{Outcome, files, say, share, shell, wit};

const GUESTS: [&str; 2] = ["py-tool", "py-hook"];

const NEEDED: &str = "the tests build guests in Python and run a validator of skills: \
     install Python 3.11 or newer with venv (Debian: apt-get install python3 python3-venv)";

/// Names of the test plugins that are made here.
pub fn names() -> Vec<String> {
    GUESTS.map(str::to_string).into()
}

/// The interpreter that knows the packages.
pub fn interpreter(tree: &Tree) -> PathBuf {
    tree.py_tools().join("venv/bin/python")
}

/// Creates the virtual environment where it is missing or other packages are pinned now.
pub fn install(tree: &Tree) -> Outcome<()> {
    if shell::which("python3").is_none() {
        return Err(format!("`python3` is not installed; {NEEDED}"));
    }
    let version =
        shell::capture(Command::new("python3").args(["-c", "import sys; print(sys.version, sys.prefix)"]), NEEDED)?;
    let requirements = tree.root.join("xtask/py/requirements.txt");
    let fingerprint = Fingerprint::of(&version).and(&requirements)?.hex();
    let tools = tree.py_tools();
    fingerprint::once(&tools.join("installed"), &fingerprint, || {
        say("installing the Python packages that tests need into target/py-tools");
        let environment = tools.join("venv");
        files::remove(&environment)?;
        shell::capture(Command::new("python3").args(["-m", "venv"]).arg(&environment), NEEDED)?;
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
        ]);
        shell::run(pip.arg("--require-hashes").arg("-r").arg(&requirements), "installing Python packages")
    })
}

/// Builds the guests into the folder of test plugins.
pub fn build(tree: &Tree) -> Outcome<()> {
    GUESTS.iter().try_for_each(|guest| build_one(tree, guest))
}

fn build_one(tree: &Tree, guest: &str) -> Outcome<()> {
    let source = tree.plugins().join("examples").join(guest);
    let fingerprint =
        Fingerprint::of(guest).and(&source)?.and(&tree.root.join("wit"))?.and(&tree.py_tools().join("installed"))?;
    let built = tree.py_tools().join("guests").join(guest);
    let component = built.join("component.wasm");
    fingerprint::once(&built.join("built"), &fingerprint.hex(), || {
        say(&format!("building the test guest {guest}"));
        let folder = built.join("wit");
        wit::assemble(tree, &source.join("world.wit"), &folder)?;
        // The guest's own Python writes byte code beside its source: it gets a copy.
        let module = guest.replace('-', "_");
        let code = built.join("code");
        files::remove(&code)?;
        let file = format!("{module}.py");
        files::write(&code.join(&file), &files::read(&source.join(&file))?)?;
        let mut componentize = Command::new(tree.py_tools().join("venv/bin/componentize-py"));
        componentize.arg("--quiet").arg("--wit-path").arg(&folder).args(["--world", guest, "componentize", &module]);
        componentize.arg("--python-path").arg(&code).arg("--output").arg(&component);
        shell::capture(&mut componentize, "building a guest in Python").map(|_| ())
    })?;
    let manifest = files::read_text(&source.join("plugin.yaml"))?;
    share::write_plugin(&tree.test_plugins().join(guest), &manifest, &files::read(&component)?)
}
