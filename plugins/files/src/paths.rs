//! From the path that a model wrote to the path that the sandbox knows, or a refusal that says what is wrong.
//!
//! [`normalise`] is pure and lexical: it never looks at a disk. Symlinks are the sandbox's business, and for
//! writes that of `links`; what the sandbox refuses is put into words by [`Place::explain`].

use std::cell::RefCell;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use astrarium_sdk::{Context, Error, Output, serde_json};

use crate::text::count;

/// Where the host mounts the workspace.
const MOUNT: &str = "/workspace";

/// Where the host puts the results of this session that were too large to be shown; nothing there can be changed.
const SESSION: &str = "/session";

/// The folder that all paths are in.
#[derive(Debug)]
pub struct Workspace {
    /// Where it is for this program: `/workspace`, or a folder of a test.
    mount: PathBuf,
    /// Where it is for the user and the model.
    real: String,
    /// Whether it is another folder that is open to this plugin, such as one of skills.
    elsewhere: bool,
    /// Files that the call had to do with, for the host: they may bring out a skill.
    touched: RefCell<Vec<String>>,
}

/// Files that an answer names as touched.
const TOUCHED: usize = 1_000;

/// A path inside the workspace.
#[derive(Debug, Clone)]
pub struct Place {
    /// For the operating system.
    pub guest: PathBuf,
    /// For people and models: relative to the workspace, `.` for the workspace itself.
    pub shown: String,
}

impl Workspace {
    /// The workspace of a call.
    pub fn of(ctx: &Context) -> Self {
        Self::new(MOUNT.into(), ctx.workspace().unwrap_or_else(|| MOUNT.into()), false)
    }

    /// The folder that `given` lies in, for calls that only read: the workspace, or another one that is open to this plugin.
    pub fn around(ctx: &Context, given: &str) -> Self {
        let folders = ctx.extra("folders").and_then(|folders| serde_json::from_value(folders).ok());
        let folders: Vec<String> = folders.unwrap_or_default();
        match folders.into_iter().find(|folder| strip_folder(given, folder).is_some()) {
            Some(folder) => Self::new(folder.clone().into(), folder, true),
            None => Self::of(ctx),
        }
    }

    fn new(mount: PathBuf, real: String, elsewhere: bool) -> Self {
        Self { mount, real, elsewhere, touched: RefCell::default() }
    }

    /// Notes a file that the call had to do with, by its shown path.
    pub fn touch(&self, shown: &str) {
        let mut touched = self.touched.borrow_mut();
        if !self.elsewhere && touched.len() < TOUCHED {
            touched.push(shown.to_owned());
        }
    }

    /// The answer, with the files that were touched, and what its paths are relative to where that is not the workspace.
    pub fn output(&self, mut text: String) -> Output {
        if self.elsewhere {
            text.push_str(&format!("[paths are relative to {}]\n", self.real));
        }
        let touched = self.touched.take();
        let mut output = Output::text(text);
        if !touched.is_empty() {
            output.extra.insert("files".into(), touched.into());
        }
        output
    }

    /// A folder as its own workspace, for tests.
    pub fn at(folder: &Path) -> Self {
        Self::new(folder.into(), folder.to_string_lossy().into_owned(), false)
    }

    /// The place that a model means by `given`.
    pub fn place(&self, given: &str) -> Result<Place, Error> {
        Ok(self.inside(&self.normalised(given)?))
    }

    /// The same for one who only looks, and may look at kept results of the session too.
    pub fn seen(&self, given: &str) -> Result<Place, Error> {
        match kept(given, &self.real) {
            Some("") => Ok(Place { guest: SESSION.into(), shown: SESSION.into() }),
            Some(name) => {
                let shown = format!("{SESSION}/{name}");
                Ok(Place { guest: PathBuf::from(&shown), shown })
            }
            None => self.place(given),
        }
    }

    /// The path relative to the workspace, as [`normalise`] has it.
    pub fn normalised(&self, given: &str) -> Result<String, Error> {
        normalise(given, &self.real)
    }

    /// The place of a normalised relative path; the empty one is the workspace.
    pub fn inside(&self, relative: &str) -> Place {
        let shown = if relative.is_empty() { "." } else { relative };
        Place { guest: self.mount.join(relative), shown: shown.into() }
    }
}

impl Place {
    /// What is there, or why nobody can tell. Special files are refused here, since opening one may block for ever.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        let metadata = fs::metadata(&self.guest).map_err(|error| self.explain("look at", &error))?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(Error::invalid(format!(
                "{} is a pipe, a socket or a device, which file tools do not open; name a regular file",
                self.shown
            )));
        }
        Ok(metadata)
    }

    /// What is there, when it is a file.
    pub fn file_metadata(&self) -> Result<Metadata, Error> {
        let metadata = self.metadata()?;
        if metadata.is_dir() {
            return Err(Error::invalid(format!(
                "{} is a folder; list what is in it with glob_files, pattern \"{}\"",
                self.shown,
                self.child("*")
            )));
        }
        Ok(metadata)
    }

    /// The shown path of something in this folder.
    pub fn child(&self, name: &str) -> String {
        if self.shown == "." { name.into() } else { format!("{}/{name}", self.shown) }
    }

    /// An error of the operating system in plain words. `verb` completes "could not … PATH".
    pub fn explain(&self, verb: &str, error: &io::Error) -> Error {
        let shown = &self.shown;
        match error.kind() {
            _ if self.is_kept() => Error::failed(format!(
                "there is no {shown} in this session: it was removed for newer ones, or it is another session's; call the \
                 tool again that said it"
            )),
            ErrorKind::NotFound => Error::failed(format!(
                "there is no {shown} in the workspace; find the right path with glob_files, such as \"**/{}\"",
                shown.rsplit('/').next().unwrap_or(shown)
            )),
            ErrorKind::PermissionDenied => match self.symlink() {
                Some(link) => Error::denied(leaves(shown, &link)),
                None => Error::denied(format!(
                    "not allowed to {verb} {shown}: its permissions or the operator's grant forbid it; \
                     use another path or ask the user"
                )),
            },
            // Making a folder where something else is, and looking into what is no folder.
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => match self.symlink() {
                Some(link) => Error::denied(leaves(shown, &link)),
                None => Error::failed(format!(
                    "could not {verb} {shown}: a part of this path is a file and no folder; use another path"
                )),
            },
            _ => Error::failed(format!("could not {verb} {shown}: {}", cause(error))),
        }
    }

    /// Whether it is, or would be, a kept result of the session.
    pub fn is_kept(&self) -> bool {
        Path::new(&self.shown).starts_with(SESSION)
    }

    /// The first component of the path that is a symlink.
    fn symlink(&self) -> Option<String> {
        let depth = self.shown.split('/').count();
        let folders = self.guest.ancestors().take(depth).collect::<Vec<_>>();
        let link =
            folders.iter().rev().position(|at| fs::symlink_metadata(at).is_ok_and(|found| found.is_symlink()))?;
        Some(self.shown.split('/').take(link + 1).collect::<Vec<_>>().join("/"))
    }
}

/// The words of an operating system's error, without its number: that is WASI's, and means another thing elsewhere.
pub fn cause(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).into()
}

fn leaves(shown: &str, link: &str) -> String {
    format!("{shown} leaves the workspace through the symlink {link}; only files inside the workspace can be used")
}

/// The path relative to the workspace, with `/` between components and no `.`, `..` or empty ones.
///
/// # Errors
///
/// For what is empty, holds NUL or `:`, lies elsewhere, or climbs out. The text names the path and the cure.
pub fn normalise(given: &str, real: &str) -> Result<String, Error> {
    let refuse = |what: &str| Err(Error::invalid(format!("the path {:?} {what}", shorten(given))));
    if given.trim().is_empty() {
        return refuse("is empty; give a path relative to the workspace, such as \"notes/plan.md\"");
    }
    if given.contains('\0') {
        return refuse("holds a NUL character; remove it");
    }
    let rest = match strip_folder(given, real).or_else(|| strip_folder(given, MOUNT)) {
        Some(inside) => inside,
        None if strip_folder(given, SESSION).is_some() => {
            return refuse(
                "is a kept result of this session, which can be read and searched only; name a file of the workspace",
            );
        }
        None if given.starts_with('/') => {
            return refuse(&format!("lies outside the workspace; use a path relative to {real}"));
        }
        None if given == "~" || given.starts_with("~/") => {
            return refuse(&format!("lies in the home folder; use a path relative to {real}"));
        }
        None => given,
    };
    if rest.contains(':') {
        return refuse("holds a colon, which names a drive or a stream on some systems; use a name without one");
    }
    let mut parts = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => {
                return refuse(&format!("climbs out of the workspace with \"..\"; use a path relative to {real}"));
            }
            ".." => {}
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

/// The name of a kept result: the folder is flat. A workspace that lies there is meant before it.
fn kept<'a>(given: &'a str, real: &str) -> Option<&'a str> {
    let name = strip_folder(given, SESSION).filter(|_| strip_folder(given, real).is_none())?.trim_matches('/');
    (name != ".." && !name.contains(['/', ':', '\0'])).then_some(name)
}

/// What follows `folder` in `path`, when `path` is that folder or lies in it.
fn strip_folder<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let folder = folder.trim_end_matches('/');
    let rest = path.strip_prefix(folder)?;
    (!folder.is_empty() && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
}

/// Enough of a path to know it again.
fn shorten(path: &str) -> String {
    match path.char_indices().nth(200) {
        Some((end, _)) => format!("{}… ({} bytes)", &path[..end], count(path.len())),
        None => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: &str) {
        assert_eq!(normalise(given, "/home/ada/sky"), Ok(expected.into()), "{given:?}");
    }

    fn refused(given: &str, reason: &str) {
        let error = normalise(given, "/home/ada/sky").unwrap_err().to_string();
        assert!(error.contains(reason), "{given:?}: {error}");
    }

    #[test]
    fn paths_inside_are_normalised() {
        check("a/b.txt", "a/b.txt");
        check("./a//b/./c", "a/b/c");
        check("a/../b", "b");
        check(".", "");
        check("/workspace", "");
        check("/workspace/a", "a");
        check("/home/ada/sky/a/b", "a/b");
        check("/home/ada/sky/", "");
        check("...", "...");
        check("文献/星.md", "文献/星.md");
    }

    #[test]
    fn kept_results_are_there_for_those_who_look() {
        let workspace = Workspace::new("/workspace".into(), "/home/ada/sky".into(), false);
        let seen = |given: &str| workspace.seen(given).map(|place| place.guest.to_string_lossy().into_owned());
        assert_eq!(seen("/session/toolu_1.txt"), Ok("/session/toolu_1.txt".into()));
        assert_eq!((seen("/session"), seen("a.txt")), (Ok("/session".into()), Ok("/workspace/a.txt".into())));
        for given in ["/session/..", "/session/../key", "/session/a/b", "/session/a:b", "/sessions/a"] {
            assert!(seen(given).is_err(), "{given}");
        }
        refused("/session/toolu_1.txt", "read and searched only");
    }

    #[test]
    fn paths_outside_are_refused_with_a_cure() {
        refused("", "is empty");
        refused("  ", "is empty");
        refused("a\0b", "NUL");
        refused("../x", "climbs out");
        refused("a/../../x", "climbs out");
        refused("/home/ada/sky/../key", "climbs out");
        refused("/etc/passwd", "use a path relative to /home/ada/sky");
        refused("/home/ada/skylight/x", "outside");
        refused("/workspaces/x", "outside");
        refused("~/x", "home folder");
        refused("C:/x", "colon");
        refused("a.txt:stream", "colon");
    }

    #[test]
    fn a_workspace_at_the_root_claims_nothing_by_its_empty_prefix() {
        assert!(normalise("/etc/passwd", "/").is_err());
    }

    #[test]
    fn no_input_escapes() {
        let parts = ["..", ".", "", "a", "b:", "workspace", "home", "~"];
        for a in parts {
            for b in parts {
                for c in parts {
                    for given in [format!("{a}/{b}/{c}"), format!("/{a}/{b}/{c}"), format!("/workspace/{a}/{b}/{c}")] {
                        if let Ok(path) = normalise(&given, "/home/ada") {
                            let fine = |part: &str| !matches!(part, ".." | "." | "");
                            assert!(path.is_empty() || path.split('/').all(fine), "{given}");
                            assert!(!path.starts_with('/'), "{given}");
                        }
                    }
                }
            }
        }
    }
}
