//! Finding and reading `SKILL.md` files, within bounds.

use crate::files::{self, Unread};
use crate::skill::{self, Skill};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders inside folders below a root.
const DEPTH: usize = 8;

/// Folders of one root. A home folder with a thousand skills has some thousands of folders, a mistaken root millions.
const FOLDERS: usize = 20_000;

/// The file that makes a folder a skill; in any case, since some file systems know none.
pub const FILE: &str = "SKILL.md";

/// The skill files below a root in the order of their paths, and what was passed over and why. A folder that holds a skill
/// is not searched further: what else is in it belongs to that skill.
pub fn find(root: &Path, within: Option<&Path>) -> (Vec<PathBuf>, Vec<String>) {
    let (files, passed_over, _) = find_from(root, 0, within);
    (files, passed_over)
}

/// The same from a folder that lies so deep below its root, and how many folders were listed.
pub(super) fn find_from(folder: &Path, depth: usize, within: Option<&Path>) -> (Vec<PathBuf>, Vec<String>, u64) {
    let mut search = Search { within, files: Vec::new(), passed_over: Vec::new(), seen: BTreeSet::new() };
    if folder.is_dir() {
        search.folder(folder, depth);
    }
    search.files.sort();
    (search.files, search.passed_over, search.seen.len() as u64)
}

/// Whether folders of this name are not searched.
pub(super) fn is_passed_over(name: &str) -> bool {
    name.starts_with('.') || name == "node_modules"
}

/// The skill file of a folder.
pub fn file_of(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let mut files: Vec<PathBuf> =
        entries.filter(|entry| is_skill_file(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().next()
}

/// Whether a file of this name makes its folder a skill.
pub fn is_skill_file(name: &str) -> bool {
    name.eq_ignore_ascii_case(FILE)
}

/// Reads a skill file. The error is one line that names it.
pub fn read(path: &Path) -> Result<Skill, String> {
    Ok(skill::read(&bytes(path)?, &folder_name(path)))
}

/// The bytes of a skill file.
pub fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, skill::LIMIT).map(|(bytes, _)| bytes).map_err(|error| match error {
        Unread::TooLarge(_) => format!("{} {error}; move parts of it into files beside it", path.display()),
        Unread::NotRegular => format!("{} {error}; put the skill's text there", path.display()),
        _ => format!("{} {error}", path.display()),
    })
}

/// Name of the folder that a skill file lies in.
pub fn folder_name(path: &Path) -> String {
    path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

struct Search<'a> {
    within: Option<&'a Path>,
    files: Vec<PathBuf>,
    passed_over: Vec<String>,
    /// Real paths of folders, so that a link to a folder above ends.
    seen: BTreeSet<PathBuf>,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) {
        let shown = folder.display();
        let Ok(real) = folder.canonicalize() else { return };
        if self.leads_out(&real) {
            return self
                .passed_over
                .push(format!("{shown} leads out of the workspace and was passed over; copy the skill there"));
        }
        if self.seen.len() >= FOLDERS {
            // Said once: by the folder that was one too many.
            if self.seen.insert(PathBuf::new()) {
                self.passed_over
                    .push(format!("there are more than {FOLDERS} folders; {shown} and others were passed over"));
            }
            return;
        }
        if !self.seen.insert(real) {
            return;
        }
        if let Some(file) = file_of(folder) {
            if depth == 0 {
                self.passed_over
                    .push(format!("{} lies in no folder of its own and was passed over; give it one", file.display()));
            } else if file.canonicalize().is_ok_and(|real| self.leads_out(&real)) {
                self.passed_over
                    .push(format!("{} leads out of the workspace and was passed over; copy it there", file.display()));
                return;
            } else {
                return self.files.push(file);
            }
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.filter_map(Result::ok),
            Err(error) => return self.passed_over.push(format!("cannot read {shown}: {error}")),
        };
        let mut folders: Vec<PathBuf> = entries
            .filter(|entry| !is_passed_over(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        if depth >= DEPTH && !folders.is_empty() {
            return self
                .passed_over
                .push(format!("what lies below {shown} is too deep and was passed over; move it up"));
        }
        for inner in folders {
            self.folder(&inner, depth + 1);
        }
    }

    fn leads_out(&self, real: &Path) -> bool {
        self.within.is_some_and(|within| !real.starts_with(within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn put(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "---\nname: x\n---\n").unwrap();
    }

    fn found(root: &Path, within: Option<&Path>) -> (Vec<String>, usize) {
        let (files, passed_over) = find(root, within);
        let inside = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        (files.iter().map(inside).collect(), passed_over.len())
    }

    #[test]
    fn skills_are_found_in_nested_folders_and_not_inside_of_skills() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["b/SKILL.md", "group/deep/a/skill.md", "b/examples/c/SKILL.md", ".git/d/SKILL.md", "e/notes.md"] {
            put(root, path);
        }
        assert_eq!(found(root, None), (vec!["b/SKILL.md".into(), "group/deep/a/skill.md".into()], 0));
        put(root, "SKILL.md");
        assert_eq!(found(root, None).1, 1, "a skill needs a folder of its own");
        assert_eq!(found(&root.join("absent"), None), (vec![], 0));
    }

    #[test]
    fn links_in_a_workspace_do_not_lead_out_of_it_and_circles_end() {
        let folder = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (folder.path().join("w"), folder.path().join("elsewhere"));
        put(&root, "a/SKILL.md");
        put(&elsewhere, "secret/SKILL.md");
        symlink(elsewhere.join("secret"), root.join("b")).unwrap();
        symlink(&root, root.join("circle")).unwrap();
        fs::create_dir(root.join("c")).unwrap();
        symlink(elsewhere.join("secret/SKILL.md"), root.join("c/SKILL.md")).unwrap();
        let real = root.canonicalize().unwrap();
        assert_eq!(found(&root, Some(&real)), (vec!["a/SKILL.md".into()], 2));
        assert_eq!(found(&root, None).0, ["a/SKILL.md", "b/SKILL.md", "c/SKILL.md"]);
    }

    #[test]
    fn only_regular_files_of_some_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/SKILL.md");
        fs::create_dir_all(&path).unwrap();
        assert!(read(&path).unwrap_err().contains("regular file"));
        fs::remove_dir(&path).unwrap();
        fs::write(&path, vec![b'x'; skill::LIMIT as usize + 1]).unwrap();
        assert!(read(&path).unwrap_err().contains("1048576 bytes"));
        fs::write(&path, "x").unwrap();
        assert_eq!(read(&path).unwrap().name, "a");
    }
}
