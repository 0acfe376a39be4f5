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
        Ok(self.run(&Workspace::of(ctx))?.into())
    }
}

impl FileWrite {
    /// The answer, for a workspace.
    pub fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        let place = workspace.follow(workspace.place(&self.path)?)?;
        // A folder or a special file in its place is refused; nothing there is what a new file needs.
        if fs::symlink_metadata(&place.guest).is_ok() && place.metadata()?.is_dir() {
            return Err(Error::invalid(format!("{} is a folder; give the path of a file in it", place.shown)));
        }
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
    fn a_link_is_written_through_and_not_over() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        fs::create_dir(folder.path().join("in")).unwrap();
        std::os::unix::fs::symlink("../target.md", folder.path().join("in/link.md")).unwrap();
        std::os::unix::fs::symlink("../../out.md", folder.path().join("in/escape.md")).unwrap();
        std::os::unix::fs::symlink("loop.md", folder.path().join("loop.md")).unwrap();
        let write = |path: &str| FileWrite { path: path.into(), content: "x".into() }.run(&workspace);
        assert_eq!(write("in/link.md"), Ok("created target.md: 1 byte, 1 line".into()));
        assert!(fs::symlink_metadata(folder.path().join("in/link.md")).unwrap().is_symlink());
        assert!(write("in/escape.md").unwrap_err().to_string().contains("through the symlink in/escape.md"));
        assert!(write("loop.md").unwrap_err().to_string().contains("leads to itself"));
    }
}
