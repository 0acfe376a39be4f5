//! JavaScript for tests: guests built twice, on QuickJS and on StarlingMonkey, and a model server.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fingerprint::{self, Fingerprint};
use crate::tree::Tree;
use crate::{Outcome, files, say, share, shell, wit};

const GUESTS: [&str; 2] = ["js-tool", "js-hook"];

/// The two engines, each with its own builder.
const ENGINES: [&str; 2] = ["qjs", "starling"];

const NEEDED: &str = "the tests build guests in JavaScript: \
     install Node.js 20 or newer with npm (Debian 13: apt-get install nodejs npm)";

/// Names of the test plugins that are made here.
pub fn names() -> Vec<String> {
    GUESTS.iter().flat_map(|guest| ENGINES.map(|engine| format!("{guest}-{engine}"))).collect()
}

/// The third-party model server that tests talk to: its command line that takes fixtures from a file.
pub fn aimock(tree: &Tree) -> PathBuf {
    tree.js_tools().join("node_modules/@copilotkit/aimock/dist/cli.js")
}

/// Installs the packages where they are missing or others are pinned now, by `npm ci`.
pub fn install(tree: &Tree) -> Outcome<()> {
    for program in ["node", "npm"] {
        if shell::which(program).is_none() {
            return Err(format!("`{program}` is not installed; {NEEDED}"));
        }
    }
    let node = shell::capture(Command::new("node").arg("--version"), "looking for Node.js")?;
    let major = node.trim_start_matches('v').split('.').next().and_then(|number| number.parse::<u32>().ok());
    if major.is_none_or(|major| major < 20) {
        return Err(format!("Node.js {} is too old; {NEEDED}", node.trim()));
    }
    let (from, to) = (tree.root.join("xtask/js"), tree.js_tools());
    // Packages bring programs for one version of Node.js, so another one asks for them anew.
    let mut fingerprint = Fingerprint::of(&node);
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        fingerprint = fingerprint.and(&from.join(name))?;
    }
    // A module finds its packages from the folder it lies in, so the script lies beside them.
    files::write(&to.join("starling.mjs"), &files::read(&from.join("starling.mjs"))?)?;
    fingerprint::once(&to.join("installed"), &fingerprint.hex(), || {
        say("installing the npm packages that tests need into target/js-tools");
        for name in ["package.json", "package-lock.json", ".npmrc"] {
            files::write(&to.join(name), &files::read(&from.join(name))?)?;
        }
        // Scripts of packages are not needed and not run.
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&to);
        shell::run(&mut npm, "installing npm packages")
    })
}

/// Builds the guests into the folder of test plugins.
pub fn build(tree: &Tree) -> Outcome<()> {
    for guest in GUESTS {
        for engine in ENGINES {
            build_one(tree, guest, engine)?;
        }
    }
    Ok(())
}

fn build_one(tree: &Tree, guest: &str, engine: &str) -> Outcome<()> {
    let name = format!("{guest}-{engine}");
    let source = tree.plugins().join("examples").join(guest);
    let fingerprint = Fingerprint::of(&name)
        .and(&source)?
        .and(&tree.root.join("wit"))?
        .and(&tree.js_tools().join("installed"))?
        .and(&tree.js_tools().join("starling.mjs"))?;
    let built = tree.js_tools().join("guests").join(&name);
    let component = built.join("component.wasm");
    fingerprint::once(&built.join("built"), &fingerprint.hex(), || {
        say(&format!("building the test guest {name}"));
        let folder = built.join("wit");
        wit::assemble(tree, &source.join("world.wit"), &folder)?;
        let script = built.join(guest).with_extension("js");
        files::write(&script, &files::read(&source.join(guest).with_extension("js"))?)?;
        let mut node = builder(tree, engine, guest, &script, &folder, &component);
        shell::capture(node.current_dir(&built), "building a guest in JavaScript").map(|_| ())
    })?;
    let manifest = share::renamed(&files::read_text(&source.join("plugin.yaml"))?, guest, &name);
    share::write_plugin(&tree.test_plugins().join(&name), &manifest, &files::read(&component)?)
}

fn builder(tree: &Tree, engine: &str, guest: &str, script: &Path, wit: &Path, component: &Path) -> Command {
    let mut node = Command::new("node");
    match engine {
        // Without `--sync` the component asks for component-model async, which this host does not offer.
        "qjs" => {
            node.arg(tree.js_tools().join("node_modules/.bin/componentize-qjs")).arg("--sync");
            node.arg("--wit").arg(wit).arg("--world").arg(guest).arg("--js").arg(script).arg("--output").arg(component);
        }
        _ => {
            node.arg(tree.js_tools().join("starling.mjs")).arg(script).arg(wit).arg(guest).arg(component);
        }
    }
    node
}
