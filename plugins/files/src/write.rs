//! file_write: a whole file at once.

use std::fs;

use astrarium_sdk::{Context, Error, Output, Tool};

use crate::paths::Workspace;
use crate::replace::{Replaced, replace};
use crate::text::{lines, plural};

/// Writes a file, whole; a file that is there is replaced, and missing folders are made.
///
/// To change a part of a file, use file_edit.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    /// Path of the file, relative to the workspace.
    pub path: String,
    /// All of its content.
    pub content: String,
}

impl Tool for FileWrite {
    const NAME: &'static str = "file_write";
    const SUMMARY: Option<&'static str> = Some("Writes a whole file");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let workspace = Workspace::of(ctx);
        Ok(workspace.output(self.run(&workspace)?))
    }
}

impl FileWrite {
    /// The answer, for a workspace.
    pub fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        let place = workspace.place_to_write(&self.path)?;
        // A folder or a special file in its place is refused; nothing there is what a new file needs.
        if fs::symlink_metadata(&place.guest).is_ok() && place.metadata()?.is_dir() {
            return Err(Error::invalid(format!("{} is a folder; give the path of a file in it", place.shown)));
        }
        workspace.touch(&place.shown);
        let done = match replace(&place, self.content.as_bytes())? {
            Replaced::Created => "created",
            Replaced::Replaced => "replaced",
        };
        let content = self.content.as_bytes();
        Ok(format!(
            "{done} {}: {}, {}",
            place.shown,
            plural(content.len(), "byte", "bytes"),
            plural(lines(content), "line", "lines")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        let write =
            |path: &str, content: &str| FileWrite { path: path.into(), content: content.into() }.run(&workspace);
        assert_eq!(write("a/b.md", "星\n"), Ok("created a/b.md: 4 bytes, 1 line".into()));
        assert_eq!(write("a/b.md", ""), Ok("replaced a/b.md: 0 bytes, 0 lines".into()));
        assert_eq!(write("a", "").unwrap_err().to_string(), "a is a folder; give the path of a file in it");
        assert!(write("a/b.md/c", "").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_did_not_hide_a_protected_folder_from_the_guard() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        fs::create_dir_all(folder.path().join(".git/hooks")).unwrap();
        fs::write(folder.path().join("target.md"), "old").unwrap();
        std::os::unix::fs::symlink(".git", folder.path().join("docs")).unwrap();
        std::os::unix::fs::symlink("target.md", folder.path().join("link.md")).unwrap();
        let write =
            |path: &str| FileWrite { path: path.into(), content: "x".into() }.run(&workspace).unwrap_err().to_string();
        let docs = "docs is a link to .git; write to .git/hooks/pre-commit itself";
        assert_eq!(write("docs/hooks/pre-commit"), docs);
        assert_eq!(write("/workspace/docs/hooks/pre-commit"), docs);
        assert_eq!(write("link.md"), "link.md is a link to target.md; write to target.md itself");
        assert!(!folder.path().join(".git/hooks/pre-commit").exists());
        assert_eq!(fs::read(folder.path().join("target.md")).unwrap(), b"old");
    }
}
