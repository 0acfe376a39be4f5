//! One walk of a folder for grep_files and glob_files: sorted, without `.git`, by the rules of .gitignore and .ignore.
//!
//! Symlinks are reported and never followed, and special files are not reported at all, so that no walk loops or blocks.

use std::fs;
use std::path::Path;

use astrarium_sdk::Error;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::paths::{Place, Workspace};

/// The most files that one walk reports. A walk over more says so, since it takes longer than a call should.
pub const MAX_FILES: usize = 100_000;

/// A file that was met.
pub struct Found {
    /// Where it is.
    pub place: Place,
    /// Whether it is a symlink, to whatever it may be.
    pub is_symlink: bool,
}

/// How a walk ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Files that were reported.
    pub files: usize,
    /// Folders that could not be read.
    pub unreadable: usize,
    /// Whether [`MAX_FILES`] ended it.
    pub too_many: bool,
}

/// A folder that is still to be read, and how many levels of rules hold for it.
struct Todo {
    place: Place,
    levels: usize,
}

/// The rules of one folder.
#[derive(Default)]
struct Level {
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
}

/// Reports the files in `start`, in the order of their paths within each folder, until `visit` answers false.
///
/// # Errors
///
/// When `start` itself cannot be read; folders below that cannot are counted.
pub fn walk(workspace: &Workspace, start: Place, mut visit: impl FnMut(Found) -> bool) -> Result<Walked, Error> {
    let mut walked = Walked::default();
    let mut rules = rules_above(workspace, &start);
    let mut todo = vec![Todo { levels: rules.len(), place: start }];
    let mut at_start = true;
    while let Some(Todo { place, levels }) = todo.pop() {
        let entries = match read_folder(&place) {
            Ok(entries) => entries,
            Err(error) if at_start => return Err(place.explain("read the folder", &error)),
            Err(_) => {
                walked.unreadable += 1;
                continue;
            }
        };
        at_start = false;
        rules.truncate(levels);
        rules.push(Level::of(&place, |name| entries.iter().any(|entry| entry.name == name)));
        let folders_from = todo.len();
        for entry in entries {
            let shown = place.child(&entry.name);
            if entry.name == ".git" || ignored(&rules, &shown, entry.is_dir) {
                continue;
            }
            let found = Place { guest: place.guest.join(&entry.name), shown };
            if entry.is_dir {
                todo.push(Todo { place: found, levels: rules.len() });
                continue;
            }
            if walked.files == MAX_FILES {
                walked.too_many = true;
                return Ok(walked);
            }
            walked.files += 1;
            if !visit(Found { place: found, is_symlink: entry.is_symlink }) {
                return Ok(walked);
            }
        }
        // The last one pushed is read next, so the first one by name goes last.
        todo[folders_from..].reverse();
    }
    Ok(walked)
}

struct Entry {
    name: String,
    is_dir: bool,
    is_symlink: bool,
}

/// Names that are not UTF-8 cannot be written into an answer, or read from a call, and are passed over.
fn read_folder(place: &Place) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(&place.guest)?.flatten() {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        if kind.is_dir() || kind.is_file() || kind.is_symlink() {
            entries.push(Entry { name, is_dir: kind.is_dir(), is_symlink: kind.is_symlink() });
        }
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The rules of the folders between the workspace and `start`, which hold in `start` as well.
fn rules_above(workspace: &Workspace, start: &Place) -> Vec<Level> {
    let mut levels = Vec::new();
    if start.shown != "." && !start.is_kept() {
        let ends = start.shown.match_indices('/').map(|(end, _)| end);
        for end in std::iter::once(0).chain(ends) {
            let folder = workspace.inside(&start.shown[..end]);
            levels.push(Level::of(&folder, |name| folder.guest.join(name).is_file()));
        }
    }
    levels
}

impl Level {
    fn of(folder: &Place, exists: impl Fn(&str) -> bool) -> Self {
        let root = if folder.shown == "." { "" } else { folder.shown.as_str() };
        let load = |name: &str| {
            if !exists(name) {
                return None;
            }
            // A line that is no rule is passed over, as git does.
            let text = fs::read(folder.guest.join(name)).ok()?;
            let mut builder = GitignoreBuilder::new(root);
            for line in String::from_utf8_lossy(&text).lines() {
                let _ = builder.add_line(None, line);
            }
            builder.build().ok().filter(|rules| !rules.is_empty())
        };
        Self { ignore: load(".ignore"), gitignore: load(".gitignore") }
    }
}

/// The innermost rule that says anything wins, and .ignore wins over .gitignore, as in ripgrep.
fn ignored(rules: &[Level], shown: &str, is_dir: bool) -> bool {
    let path = Path::new(shown);
    let ignore = rules.iter().rev().filter_map(|level| level.ignore.as_ref());
    let gitignore = rules.iter().rev().filter_map(|level| level.gitignore.as_ref());
    ignore
        .chain(gitignore)
        .map(|rules| rules.matched(path, is_dir))
        .find(|found| !found.is_none())
        .is_some_and(|found| found.is_ignore())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A workspace with the given files; a path that ends in `/` is a folder.
    pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let workspace = Workspace::at(folder.path());
        (folder, workspace)
    }

    fn walked(workspace: &Workspace, start: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let visit = |found: Found| {
            seen.push(found.place.shown);
            true
        };
        walk(workspace, workspace.place(start).unwrap(), visit).unwrap();
        seen
    }

    #[test]
    fn the_walk_is_sorted_and_leaves_git_out() {
        let (_folder, workspace) = tree(&[("b/x", ""), ("a/y", ""), (".git/config", ""), (".env", ""), ("c", "")]);
        assert_eq!(walked(&workspace, "."), [".env", "c", "a/y", "b/x"]);
    }

    #[test]
    fn rules_hold_at_every_level() {
        let (_folder, workspace) = tree(&[
            (".gitignore", "*.log\n/target/\n!keep.log\n"),
            ("a.log", ""),
            ("keep.log", ""),
            ("target/x", ""),
            ("sub/target/x", ""),
            ("sub/.gitignore", "secret*\n!b.log\n"),
            ("sub/b.log", ""),
            ("sub/secret.txt", ""),
            ("sub/deep/secret.txt", ""),
            ("sub/deep/.ignore", "!secret.txt\n"),
            ("secret.txt", ""),
        ]);
        let all = walked(&workspace, ".");
        assert_eq!(
            all,
            [
                ".gitignore",
                "keep.log",
                "secret.txt",
                "sub/.gitignore",
                "sub/b.log",
                "sub/deep/.ignore",
                "sub/deep/secret.txt",
                "sub/target/x"
            ]
        );
        let below: Vec<_> = all.iter().filter(|path| path.starts_with("sub/")).cloned().collect();
        assert_eq!(walked(&workspace, "sub"), below, "a walk that starts below obeys the rules above");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_and_special_files_not_reported() {
        let (folder, workspace) = tree(&[("a/x", "")]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        assert_eq!(walked(&workspace, "."), ["a/loop", "a/x"]);
    }

    #[test]
    fn a_walk_ends_when_it_is_told_to() {
        let (_folder, workspace) = tree(&[("a", ""), ("b", ""), ("c", "")]);
        let walked = walk(&workspace, workspace.inside(""), |found| found.place.shown != "b").unwrap();
        assert_eq!(walked, Walked { files: 2, ..Walked::default() });
    }
}
