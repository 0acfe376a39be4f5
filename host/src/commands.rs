//! The folders of prompt commands: `commands/*.md` of what ships, of the home and of the workspace; nearer ones win.
//!
//! Looked through at each use, which costs a few small files, so that an edit counts at once. What a file means is decided by
//! `command`. One bad file hides no other: it is named with its cure.

use crate::command::{self, Command};
use crate::files;
use crate::skills::{Owner, Root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A command where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The command.
    pub command: Command,
    /// Whose it is.
    pub owner: Owner,
    /// Its file.
    pub file: PathBuf,
}

/// All commands by name, and what is wrong, a line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// By name.
    pub found: BTreeMap<String, Found>,
    /// Files that were left out, in order.
    pub problems: Vec<String>,
}

/// Bytes of a command file: a prompt of many pages.
const LIMIT: u64 = 256 << 10;

/// Folders inside folders: `commands/a/b.md` is `/a:b`.
const DEPTH: usize = 3;

/// Files of one root: past this it is no folder of commands.
const FILES: usize = 2_000;

/// Reads the commands of all roots. A name in `taken` is a built-in's, and a file of that name is left out.
pub fn read(roots: &[Root], taken: &[&str]) -> Commands {
    let mut commands = Commands::default();
    for root in roots {
        for (name, file) in files(&root.path, &mut commands.problems) {
            match one(root, &name, &file, taken) {
                Ok(command) => {
                    commands.found.insert(name, Found { command, owner: root.owner, file });
                }
                Err(reason) => commands.problems.push(format!("the command {} is left out: {reason}", file.display())),
            }
        }
    }
    commands
}

fn one(root: &Root, name: &str, file: &Path, taken: &[&str]) -> Result<Command, String> {
    if !command::is_name(name) {
        return Err("its name is none that can be typed; use letters, digits and -".into());
    }
    if taken.contains(&name) {
        return Err(format!("/{name} is built in; give the file another name"));
    }
    let real = file.canonicalize().map_err(|error| format!("cannot be read: {error}"))?;
    if root.within.as_ref().is_some_and(|within| !real.starts_with(within)) {
        return Err("it leads out of the workspace; copy it there".into());
    }
    command::read(&bytes(&real)?, name)
}

/// The Markdown files below a folder, by name; those in folders inside of it are `folder:name`.
pub(crate) fn files(folder: &Path, problems: &mut Vec<String>) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    find(folder, "", 0, &mut files, problems);
    files
}

/// What a file holds, if it is a regular one of some size.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    let unread = |error| format!("it {error}; give it a prompt of a few pages");
    files::read(file, LIMIT).map(|(bytes, _)| bytes).map_err(unread)
}

/// Names and files below a folder, in the order of their names.
fn find(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, PathBuf)>, problems: &mut Vec<String>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(Result::ok),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return;
        }
        Err(error) => return problems.push(format!("cannot read {}: {error}", folder.display())),
    };
    let mut names: Vec<(String, PathBuf)> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    names.sort();
    for (name, path) in names {
        if files.len() >= FILES {
            return;
        }
        // A folder that is a link may lead round in a circle, so it is not followed.
        if path.is_dir() && !path.is_symlink() {
            if depth + 1 < DEPTH {
                find(&path, &format!("{prefix}{name}:"), depth + 1, files, problems);
            }
        } else if let Some(stem) = name.strip_suffix(".md") {
            files.push((format!("{prefix}{stem}"), path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn put(&self, path: &str, text: &str) -> &Self {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        fn read(&self) -> Commands {
            let base = self.0.path().canonicalize().unwrap();
            let root = |name: &str, owner, within| Root { path: base.join(name), owner, within };
            let workspace = Some(base.join("work"));
            let roots = [
                root("share", Owner::Shipped, None),
                root("home", Owner::User, None),
                root("work/.claude/commands", Owner::Workspace, workspace.clone()),
                root("work/.astrarium/commands", Owner::Workspace, workspace),
            ];
            read(&roots, &["help"])
        }
    }

    #[test]
    fn nearer_commands_win_and_folders_are_part_of_the_name() {
        let place = Place(tempfile::tempdir().unwrap());
        place.put("share/a.md", "shipped").put("home/a.md", "mine").put("home/b.md", "mine");
        place.put("work/.claude/commands/b.md", "claude").put("work/.astrarium/commands/b.md", "nearest");
        place.put("work/.astrarium/commands/lit/review.md", "nested").put("home/notes.txt", "none");
        let commands = place.read();
        let shown: Vec<_> = commands
            .found
            .iter()
            .map(|(name, found)| (name.as_str(), found.command.body.as_str(), found.owner.word()))
            .collect();
        assert_eq!(
            shown,
            [("a", "mine", "user"), ("b", "nearest", "workspace"), ("lit:review", "nested", "workspace")]
        );
        assert!(commands.problems.is_empty(), "{:?}", commands.problems);
    }

    #[test]
    fn a_bad_file_is_named_and_hides_no_other() {
        let place = Place(tempfile::tempdir().unwrap());
        place.put("home/good.md", "x").put("home/empty.md", "---\ndescription: x\n---\n").put("home/help.md", "x");
        place.put("home/two words.md", "x").put("home/large.md", &"x".repeat(LIMIT as usize + 1)).put("secret", "key");
        place.put("work/.claude/commands/ok.md", "---\ndescription: [open\n---\nx");
        let link = place.0.path().join("work/.claude/commands/leak.md");
        std::os::unix::fs::symlink(place.0.path().join("secret"), link).unwrap();
        let commands = place.read();
        assert_eq!(commands.found.keys().collect::<Vec<_>>(), ["good", "ok"]);
        for (file, word) in [
            ("empty.md", "no prompt"),
            ("help.md", "built in"),
            ("two words.md", "name"),
            ("large.md", "larger"),
            ("leak.md", "workspace"),
        ] {
            assert!(
                commands.problems.iter().any(|line| line.contains(file) && line.contains(word)),
                "{file}: {:?}",
                commands.problems
            );
        }
        assert_eq!(commands.problems.len(), 5);
    }
}
