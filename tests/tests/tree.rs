//! The tree itself: floors, sizes, documents that must stay true, and what must not be in it.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files below `folder` with one of these endings, build folders left out.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != ".git" && name != "node_modules" {
                found.extend(files(&path, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Modules of the host by floor, read from `lib.rs`, where the floors stand in order under their names.
fn floors() -> BTreeMap<String, usize> {
    let mut floors = BTreeMap::new();
    let mut floor = 0;
    for line in read("host/src/lib.rs").lines() {
        if line.starts_with("// ") {
            floor += 1;
        } else if let Some(module) = line.strip_prefix("pub mod ") {
            floors.insert(module.trim_end_matches(';').to_owned(), floor);
        }
    }
    assert_eq!(floor, 5, "lib.rs names five floors");
    floors
}

#[test]
fn a_file_names_only_its_own_floor_and_those_above_it() {
    let floors = floors();
    let source = root().join("host/src");
    for path in files(&source, &[".rs"]) {
        let inside = path.strip_prefix(&source).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_string_lossy().replace(".rs", "");
        let Some(own) = floors.get(&module) else { continue };
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            for (at, _) in line.match_indices("crate::") {
                let named: String = line[at + 7..]
                    .chars()
                    .take_while(|c| c.is_ascii_lowercase() || *c == '_' || c.is_ascii_digit())
                    .collect();
                if let Some(other) = floors.get(&named) {
                    assert!(
                        other <= own,
                        "{}:{}: {module} (floor {own}) names {named} (floor {other})",
                        inside.display(),
                        number + 1
                    );
                }
            }
        }
    }
}

#[test]
fn wasmtime_and_sql_are_named_in_their_own_rooms_only() {
    let source = root().join("host/src");
    for path in files(&source, &[".rs"]) {
        let inside = path.strip_prefix(&source).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        if !inside.starts_with("runtime") && !inside.starts_with("capability") {
            assert!(!text.contains("wasmtime::") && !text.contains("wasmtime_wasi"), "{inside} names wasmtime");
        }
        if !inside.starts_with("store") {
            assert!(!text.contains("rusqlite"), "{inside} names SQLite");
        }
        let room = inside.split(['/', '.']).next().unwrap_or_default();
        if !["cli", "config", "host", "main"].contains(&room) {
            assert!(!text.contains("anyhow"), "{inside} names anyhow, which belongs to the street");
        }
    }
}

#[test]
fn every_source_file_says_what_it_owns() {
    for path in files(&root(), &[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not begin with //!", path.display());
    }
}

#[test]
fn no_tool_has_a_native_twin() {
    let tools = ["read_file", "grep_files", "glob_files", "file_write", "file_edit", "todo_write"];
    for path in files(&root().join("host/src"), &[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        // Tests inside the sources may name a tool as an example.
        let text = text.split("#[cfg(test)]").next().unwrap();
        for tool in tools {
            for line in text.lines().filter(|line| line.contains(tool)) {
                let line = line.trim_start();
                assert!(
                    path.ends_with("tests.rs") || line.starts_with("//") || !line.contains(&format!("fn {tool}")),
                    "{} implements {tool}: {line}",
                    path.display()
                );
                assert!(
                    path.ends_with("tests.rs") || line.starts_with("//") || path.ends_with("prompt.rs"),
                    "{} names {tool}: {line}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn the_architecture_page_knows_the_contract_as_it_is() {
    let mut hasher = Sha256::new();
    for path in files(&root().join("wit"), &[".wit"]) {
        hasher.update(fs::read(path).unwrap());
    }
    let hash: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let page = read("ARCHITECTURE.md");
    assert!(
        page.contains(&hash),
        "wit/ has changed: read ARCHITECTURE.md once more, mend what is no longer true, and put this hash there: {hash}"
    );
    assert!(page.lines().count() <= 200, "ARCHITECTURE.md is longer than a page should be");
    for module in floors().keys() {
        assert!(page.contains(&format!("`{module}`")), "ARCHITECTURE.md does not name the room {module}");
    }
}

#[test]
fn the_readme_names_the_two_commands_and_its_first_plugin_is_real() {
    let readme = read("README.md");
    for command in ["cargo xtask run", "cargo xtask test"] {
        assert!(readme.contains(command), "{command}");
    }
    assert!(read(".ci/run").contains("cargo xtask test"));
    // The plugin in the README is the one that is built and called by the tests.
    let source = read("tests/guests/shout/src/lib.rs");
    let shown =
        readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("README shows a plugin");
    assert!(source.contains(shown.trim()), "the README's plugin differs from tests/guests/shout");
    for dependency in ["astrarium-sdk", "schemars", "serde"] {
        assert!(readme.contains(&format!("{dependency} = ")), "the README's Cargo.toml lacks {dependency}");
    }
}

#[test]
fn every_item_of_the_contract_has_a_doc() {
    for path in files(&root().join("wit"), &[".wit"]) {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (number, line) in lines.iter().enumerate() {
            let item = ["interface ", "record ", "variant ", "enum ", "world ", "type "]
                .iter()
                .any(|word| line.starts_with(word))
                || line.contains(": func(")
                || (line.ends_with(',') && !line.starts_with("//") && !line.starts_with("use "));
            if item {
                assert!(lines[number - 1].starts_with("///"), "{}:{}: no doc on: {line}", path.display(), number + 1);
            }
        }
    }
}
