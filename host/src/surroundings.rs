//! The door to what lies around the agent: instruction files found upwards from the workspace, and the state of version
//! control.
//!
//! Everything is read, nothing is run: a repository's own configuration may name programs, and a cloned one is not trusted.
//! Instruction files are bounded together, and none is read that leads out of the folder it was found in.

use crate::files;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of all instruction files together (SPEC 1.10).
pub const INSTRUCTIONS: usize = 32 << 10;

/// Names of instruction files, in the order in which those of one folder are read.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Bytes of one of git's own small files.
const GIT_FILE: u64 = 1 << 20;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Path and text, the nearest last.
    pub files: Vec<(PathBuf, String)>,
    /// What was cut or left out, a line each.
    pub left_out: Vec<String>,
}

/// The instruction files from `workspace` upwards, the nearest last. When they do not all fit, the nearest are kept.
pub fn instructions(workspace: &Path) -> Instructions {
    let mut found = Instructions::default();
    let mut seen = BTreeSet::new();
    let mut left = INSTRUCTIONS;
    for folder in workspace.ancestors() {
        // Of one folder the later name is nearer to the end, so it is read first here and turned around below.
        for name in NAMES.iter().rev() {
            let path = folder.join(name);
            let shown = path.display();
            let Ok(real) = fs::canonicalize(&path) else { continue };
            if !fs::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder)) {
                found.left_out.push(format!("{shown} is left out: it is a link that leads out of its folder"));
                continue;
            }
            if !seen.insert(real.clone()) {
                continue;
            }
            match read_start(&real, left) {
                Ok((text, size)) => {
                    if size > text.len() as u64 {
                        found.left_out.push(format!(
                            "{shown} is cut: the first {} of its {size} bytes are shown, since all such files together may \
                             have {INSTRUCTIONS}",
                            text.len()
                        ));
                    }
                    left -= text.len();
                    if !text.trim().is_empty() {
                        found.files.push((path, text));
                    }
                }
                Err(reason) => found.left_out.push(format!("{shown} is left out: {reason}")),
            }
        }
    }
    found.files.reverse();
    found
}

/// The first `most` bytes of a file as text, cut on a character, and its size.
fn read_start(path: &Path, most: usize) -> Result<(String, u64), String> {
    // Looked at before it is opened: a pipe would never answer.
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    // Replacements are longer than what they replace, and a cut character is one.
    text.truncate(text.floor_char_boundary(most));
    Ok((text.trim_start_matches('\u{feff}').trim_end_matches('\u{fffd}').to_owned(), metadata.len()))
}

/// Where version control stands, as git's own files say: `git, branch main, commit 0123456789ab`; none outside a repository.
pub fn version_control(workspace: &Path) -> Option<String> {
    let git = workspace.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let folder = match git.is_dir() {
        true => git,
        // A worktree: the file names the folder.
        false => {
            let text = small(&git)?;
            let named = PathBuf::from(text.strip_prefix("gitdir:")?.trim());
            if named.is_absolute() { named } else { git.parent()?.join(named) }
        }
    };
    let head = small(&folder.join("HEAD"))?;
    let head = head.trim();
    let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
        return is_hash(head).then(|| format!("git, no branch, commit {}", &head[..12]));
    };
    let sane = |c: char| !c.is_control() && !c.is_whitespace();
    if !reference.starts_with("refs/") || reference.contains("..") || !reference.chars().all(sane) {
        return None;
    }
    // A worktree keeps its branches with the repository that it belongs to.
    let common = small(&folder.join("commondir")).map(|text| folder.join(text.trim()));
    let common = common.unwrap_or_else(|| folder.clone());
    let commit = small(&common.join(reference)).or_else(|| {
        let packed = small(&common.join("packed-refs"))?;
        let line = packed.lines().find(|line| line.split_once(' ').is_some_and(|(_, name)| name == reference))?;
        line.split_once(' ').map(|(hash, _)| hash.to_owned())
    });
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
    Some(match commit.as_deref().map(str::trim).filter(|hash| is_hash(hash)) {
        Some(hash) => format!("git, branch {branch}, commit {}", &hash[..12]),
        None => format!("git, branch {branch}, no commit yet"),
    })
}

fn is_hash(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn small(path: &Path) -> Option<String> {
    files::text(path, GIT_FILE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(root.path()).unwrap();
        fs::create_dir_all(path.join("outer/inner")).unwrap();
        (root, path)
    }

    fn texts(found: &Instructions, below: &Path) -> Vec<String> {
        let files = found.files.iter().filter(|(path, _)| path.starts_with(below));
        files.map(|(_, text)| text.trim().to_owned()).collect()
    }

    #[test]
    fn instruction_files_are_found_upwards_and_the_nearest_is_last() {
        let (_guard, root) = tree();
        fs::write(root.join("AGENTS.md"), "far").unwrap();
        fs::write(root.join("outer/CLAUDE.md"), "claude").unwrap();
        fs::write(root.join("outer/AGENTS.md"), "middle").unwrap();
        fs::write(root.join("outer/inner/AGENTS.md"), "\u{feff}near").unwrap();
        let found = instructions(&root.join("outer/inner"));
        assert_eq!(texts(&found, &root), ["far", "middle", "claude", "near"]);
    }

    #[test]
    fn one_file_under_two_names_is_read_once() {
        let (_guard, root) = tree();
        fs::write(root.join("AGENTS.md"), "once").unwrap();
        std::os::unix::fs::symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
        assert_eq!(texts(&instructions(&root), &root), ["once"]);
    }

    #[test]
    fn a_megabyte_is_cut_and_named_and_what_is_nearer_is_kept() {
        let (_guard, root) = tree();
        fs::write(root.join("AGENTS.md"), "星".repeat(350_000)).unwrap();
        fs::write(root.join("outer/AGENTS.md"), "near").unwrap();
        let found = instructions(&root.join("outer"));
        let kept = texts(&found, &root);
        assert_eq!(kept[1], "near");
        assert!(kept[0].len() <= INSTRUCTIONS - 4 && kept[0].chars().all(|c| c == '星'));
        assert!(found.left_out[0].contains("of its 1050000 bytes are shown"), "{:?}", found.left_out);
    }

    #[test]
    fn a_link_out_of_its_folder_and_what_is_no_file_are_left_out_by_name() {
        let (_guard, root) = tree();
        fs::write(root.join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(root.join("secret"), root.join("outer/AGENTS.md")).unwrap();
        fs::create_dir(root.join("outer/CLAUDE.md")).unwrap();
        let found = instructions(&root.join("outer"));
        assert!(texts(&found, &root).is_empty());
        assert!(found.left_out.iter().any(|line| line.contains("leads out of its folder")), "{:?}", found.left_out);
        assert!(found.left_out.iter().any(|line| line.contains("it is no file")), "{:?}", found.left_out);
    }

    #[test]
    fn version_control_is_read_from_gits_own_files() {
        let (_guard, root) = tree();
        let git = root.join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(version_control(&root.join("outer")).unwrap(), "git, branch main, no commit yet");
        let hash = "0123456789abcdef0123456789abcdef01234567";
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{hash} refs/heads/main\n")).unwrap();
        assert_eq!(version_control(&root).unwrap(), "git, branch main, commit 0123456789ab");
        fs::write(git.join("HEAD"), hash).unwrap();
        assert_eq!(version_control(&root).unwrap(), "git, no branch, commit 0123456789ab");
        for hostile in ["ref: ../../etc/passwd", "ref: refs/../../x", "", "garbage"] {
            fs::write(git.join("HEAD"), hostile).unwrap();
            assert_eq!(version_control(&root), None, "{hostile}");
        }
    }
}
