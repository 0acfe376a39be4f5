//! Writes go through no symlink: the guard hook judges a path by its words, so the words must name what is written.
//!
//! This is for file_write and file_edit; reads follow links inside the workspace. It does not guard against a link that
//! another program makes between the look and the write; what keeps that inside the workspace is the sandbox.

use std::fs;
use std::io::{self, ErrorKind};

use astrarium_sdk::Error;

use crate::paths::{Place, Workspace};

/// As many links as Linux follows in one path; a loop has to end.
const MAX_LINKS: usize = 40;

/// Where a link leads in the end.
#[derive(Debug, PartialEq, Eq)]
enum Leads {
    /// To this path, relative to the workspace and free of links; empty for the workspace itself.
    To(String),
    /// To an absolute path. The sandbox follows none and hides where they lead, be it inside the workspace or not.
    Absolute,
    /// Out of the workspace.
    Outside,
    /// To what does not exist, or round in a circle.
    Nowhere,
}

impl Workspace {
    /// The place that a model means by `given`, for a write: none of its components is a symlink.
    pub fn place_to_write(&self, given: &str) -> Result<Place, Error> {
        let place = self.place(given)?;
        let parts: Vec<&str> = place.shown.split('/').collect();
        for depth in 1..=parts.len() {
            let (prefix, rest) = parts.split_at(depth);
            let at = self.inside(&prefix.join("/"));
            match fs::symlink_metadata(&at.guest) {
                Ok(found) if found.is_symlink() => return Err(self.refuse(&at, rest)),
                Ok(found) if found.is_dir() => {}
                // In a file there is nothing, and in what does not exist neither; the write itself says what is wrong.
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(at.explain("look at", &error)),
            }
        }
        Ok(place)
    }

    /// Why nothing is written through `link`, whose parent folders are no links; `rest` is what follows it in the path.
    fn refuse(&self, link: &Place, rest: &[&str]) -> Error {
        let shown = &link.shown;
        match self.resolve(shown) {
            Ok(Leads::To(to)) => {
                let target = self.inside(&to);
                let meant = if rest.is_empty() { target.shown.clone() } else { target.child(&rest.join("/")) };
                Error::invalid(format!("{shown} is a link to {}; write to {meant} itself", target.shown))
            }
            Ok(Leads::Absolute) => Error::denied(format!(
                "{shown} is a link to an absolute path, which counts as leaving the workspace; \
                 write to a path inside the workspace that has no link in it"
            )),
            Ok(Leads::Outside) => Error::denied(format!(
                "{shown} is a link that leaves the workspace; \
                 write to a path inside the workspace that has no link in it"
            )),
            Ok(Leads::Nowhere) => Error::invalid(format!(
                "{shown} is a link that leads nowhere; write to a path that has no link in it, or ask the user to \
                 remove the link"
            )),
            Err(error) => link.explain("follow the link", &error),
        }
    }

    /// Follows every link in a relative path, the last component included, as the operating system would.
    fn resolve(&self, path: &str) -> io::Result<Leads> {
        // The components that are still to be walked, the next one last, and those that are behind.
        let mut ahead: Vec<String> = path.rsplit('/').map(Into::into).collect();
        let mut behind: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." if behind.pop().is_none() => return Ok(Leads::Outside),
                ".." => continue,
                _ => behind.push(part),
            }
            let at = self.inside(&behind.join("/"));
            let found = match fs::symlink_metadata(&at.guest) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Leads::Nowhere),
                found => found?,
            };
            if found.is_symlink() {
                links += 1;
                let target = match fs::read_link(&at.guest) {
                    Ok(target) if !target.has_root() => target,
                    Ok(_) => return Ok(Leads::Absolute),
                    // How the sandbox answers when the link is there and its target is absolute.
                    Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Leads::Absolute),
                    Err(error) => return Err(error),
                };
                if links > MAX_LINKS {
                    return Ok(Leads::Nowhere);
                }
                behind.pop();
                ahead.extend(target.to_string_lossy().rsplit('/').map(Into::into));
            } else if !found.is_dir() && !ahead.is_empty() {
                return Ok(Leads::Nowhere);
            }
        }
        Ok(Leads::To(behind.join("/")))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// A workspace in a folder of its own, with links of every kind.
    fn workspace() -> tempfile::TempDir {
        let outer = tempfile::tempdir().unwrap();
        let at = outer.path().join("sky");
        fs::create_dir_all(at.join(".git/hooks")).unwrap();
        fs::create_dir_all(at.join("a/b")).unwrap();
        fs::write(at.join("plan.md"), "x").unwrap();
        let links = [
            (".git", "docs"),
            ("docs", "papers"),
            ("../../plan.md", "a/b/plan.md"),
            // Through a link and up again: .git/hooks/.. is .git, and not a.
            ("../docs/hooks/..", "a/up"),
            (".", "here"),
            ("..", "out"),
            ("a/../../sky/plan.md", "round"),
            ("/etc", "etc"),
            ("gone", "dangling"),
            ("plan.md/x", "below-a-file"),
            ("loop", "loop"),
        ];
        for (target, link) in links {
            symlink(target, at.join(link)).unwrap();
        }
        outer
    }

    fn answer(outer: &Path, given: &str) -> String {
        match Workspace::at(&outer.join("sky")).place_to_write(given) {
            Ok(place) => format!("ok {}", place.shown),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_link_inside_is_named_with_the_path_that_is_meant() {
        let outer = workspace();
        let check = |given: &str, expected: &str| {
            assert_eq!(answer(outer.path(), given), expected, "{given}");
            let absolute = outer.path().join("sky").join(given);
            assert_eq!(answer(outer.path(), absolute.to_str().unwrap()), expected, "{absolute:?}");
        };
        check("docs/hooks/pre-commit", "docs is a link to .git; write to .git/hooks/pre-commit itself");
        check("papers/config", "papers is a link to .git; write to .git/config itself");
        check("docs", "docs is a link to .git; write to .git itself");
        check("a/b/plan.md", "a/b/plan.md is a link to plan.md; write to plan.md itself");
        check("a/up/config", "a/up is a link to .git; write to .git/config itself");
        check("here/docs/x", "here is a link to .; write to docs/x itself");
        check("a/./b//../../docs/new/x", "docs is a link to .git; write to .git/new/x itself");
    }

    #[test]
    fn a_link_out_of_the_workspace_or_to_nothing_is_called_that() {
        let outer = workspace();
        let check = |given: &str, expected: &str| {
            assert_eq!(answer(outer.path(), given).split_once("; ").unwrap().0, expected, "{given}");
        };
        check("out/x", "out is a link that leaves the workspace");
        check("round", "round is a link that leaves the workspace");
        check("etc/passwd", "etc is a link to an absolute path, which counts as leaving the workspace");
        check("dangling", "dangling is a link that leads nowhere");
        check("dangling/x", "dangling is a link that leads nowhere");
        check("below-a-file", "below-a-file is a link that leads nowhere");
        check("loop/x", "loop is a link that leads nowhere");
    }

    #[test]
    fn paths_without_links_stay_as_they_are() {
        let outer = workspace();
        let check = |given: &str, shown: &str| assert_eq!(answer(outer.path(), given), format!("ok {shown}"));
        check("plan.md", "plan.md");
        check("/workspace/a/b/new.md", "a/b/new.md");
        check("new/folder/x", "new/folder/x");
        check("plan.md/x", "plan.md/x");
        check(".", ".");
        check("docs/../a/x", "a/x");
    }
}
