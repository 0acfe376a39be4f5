//! The door to files that a person attaches: by `--attach`, any file; by `@path` in a prompt, one of the workspace.
//!
//! A prompt may hold a stranger's words, so a mention reaches the workspace only, by its real path, and never what is kept
//! out of it; a mention that is no file is plain text. What was named by itself and cannot be attached is an error.

use crate::attach::{self, Attachment, FILES, PICTURE_BYTES, TEXT_BYTES, mentions};
use crate::files;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that are read of any file.
const LIMIT: u64 = if TEXT_BYTES > PICTURE_BYTES { TEXT_BYTES } else { PICTURE_BYTES } as u64;

/// Files that the command line names. The error says which one, why, and what to do.
pub fn named(paths: &[PathBuf]) -> Result<Vec<Attachment>, String> {
    if paths.len() > FILES {
        return Err(format!("{} files are attached, and a question takes {FILES}; leave some out", paths.len()));
    }
    paths.iter().map(|path| read(path, &path.display().to_string())).collect()
}

/// Files of the workspace that `prompt` mentions, each once, and why others are left out, a line each.
pub fn mentioned(workspace: &Path, kept_out: &[PathBuf], prompt: &str) -> (Vec<Attachment>, Vec<String>) {
    let (mut found, mut left_out, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let Ok(workspace) = fs::canonicalize(workspace) else { return (found, left_out) };
    for readings in mentions(prompt) {
        let real = |reading: &&str| fs::canonicalize(workspace.join(reading)).ok().filter(|path| path.is_file());
        let Some((reading, path)) = readings.iter().find_map(|reading| Some((*reading, real(reading)?))) else {
            continue;
        };
        if seen.contains(&path) {
            continue;
        }
        let outside = !path.starts_with(&workspace) || kept_out.iter().any(|place| path.starts_with(place));
        let read = match outside {
            true => Err(format!("@{reading} is not attached: it is no file of the workspace; name it with --attach")),
            false if found.len() == FILES => Err(format!(
                "@{reading} is not attached: a question takes {FILES} files; ask for the others by another"
            )),
            false => read(&path, reading),
        };
        match read {
            Ok(file) => found.push(file),
            Err(reason) => left_out.push(reason),
        }
        seen.push(path);
    }
    (found, left_out)
}

fn read(path: &Path, name: &str) -> Result<Attachment, String> {
    let failed = |reason: String| format!("{name} is not attached: {reason}");
    let (bytes, _) = files::read(path, LIMIT).map_err(|error| failed(format!("it {error}")))?;
    Ok(Attachment { name: name.to_owned(), what: attach::what(bytes).map_err(failed)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_reaches_the_workspace_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(place.path()).unwrap();
        let workspace = base.join("work");
        fs::create_dir_all(workspace.join("home")).unwrap();
        fs::write(base.join("secret.txt"), "key").unwrap();
        fs::write(workspace.join("home/astrarium.yaml"), "key").unwrap();
        fs::write(workspace.join("a b.md"), "spaces").unwrap();
        fs::write(workspace.join("notes.md"), "notes").unwrap();
        fs::write(workspace.join("data.bin"), b"\0\x01").unwrap();
        std::os::unix::fs::symlink(base.join("secret.txt"), workspace.join("link.txt")).unwrap();
        let absolute = base.join("secret.txt");
        let prompt = format!(
            "@notes.md, @./notes.md @\"a b.md\" @none.md @link.txt @../secret.txt @{} @home/astrarium.yaml @data.bin @home x@y.z",
            absolute.display()
        );
        let (found, left_out) = mentioned(&workspace, &[workspace.join("home")], &prompt);
        let names: Vec<_> = found.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["notes.md", "a b.md"]);
        let all = left_out.join("\n");
        assert_eq!(left_out.len(), 3, "{all}");
        for name in ["@link.txt", "@home/astrarium.yaml", "data.bin"] {
            assert!(all.contains(name), "{name}: {all}");
        }
    }

    #[test]
    fn what_is_named_and_cannot_be_attached_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("paper.pdf");
        fs::write(&path, "%PDF-1.7").unwrap();
        assert!(named(std::slice::from_ref(&path)).unwrap_err().contains("is a PDF"));
        assert!(named(&[place.path().join("none")]).unwrap_err().contains("does not exist"));
        assert!(named(&[place.path().to_owned()]).unwrap_err().contains("no regular file"));
        assert!(named(&vec![path; FILES + 1]).unwrap_err().contains("a question takes"));
    }
}
