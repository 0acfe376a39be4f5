//! glob_files: the files whose path fits a pattern, newest first.

use std::fs;
use std::time::SystemTime;

use astrarium_sdk::{Context, Error, Output, Tool};
use globset::{GlobBuilder, GlobMatcher};

use crate::paths::Workspace;
use crate::text::{BUDGET, count, plural};
use crate::walk::{MAX_FILES, walk};

/// Room for the closing line, in bytes.
const NOTE: usize = 1024;

/// Finds files by a glob pattern, by the rules of .gitignore, and answers with their paths, newest first.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobFiles {
    /// `*` within a folder, `**` across folders, `?` one character, `{a,b}` either: `**/*.rs`, `notes/2024-*.md`.
    pub pattern: String,
    /// Folder that the pattern starts from, relative to the workspace; the workspace by default.
    pub path: Option<String>,
    /// The most paths to answer with, 200 by default.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
}

impl Tool for GlobFiles {
    const NAME: &'static str = "glob_files";
    const SUMMARY: Option<&'static str> = Some("Finds files by a glob pattern, newest first");
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let workspace = Workspace::around(ctx, self.path.as_deref().unwrap_or(&self.pattern));
        Ok(workspace.output(self.run(&workspace)?))
    }
}

impl GlobFiles {
    /// The answer, for a workspace.
    pub fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        let folder = workspace.place(self.path.as_deref().unwrap_or("."))?;
        if !folder.metadata()?.is_dir() {
            return Err(Error::invalid(format!("{} is a file; give a folder as the path", folder.shown)));
        }
        let pattern = workspace.pattern(&self.pattern, &folder.shown)?;
        let glob = matcher(&pattern)?;
        // The walk starts where the pattern first says something that is not a plain name.
        let start = workspace.inside(plain_folder(&pattern));
        let mut found: Vec<(SystemTime, String)> = Vec::new();
        let walked = match start.metadata() {
            Ok(metadata) if metadata.is_dir() => walk(workspace, start, |file| {
                if glob.is_match(&file.place.shown) {
                    // A symlink counts when it leads to a file inside; where it does not, the sandbox says so here.
                    match fs::metadata(&file.place.guest) {
                        Ok(metadata) if metadata.is_file() => {
                            found.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), file.place.shown));
                        }
                        _ => {}
                    }
                }
                true
            })?,
            _ => Default::default(),
        };
        found.sort_unstable_by(|(time_a, a), (time_b, b)| time_b.cmp(time_a).then_with(|| a.cmp(b)));
        let limit = self.limit.map_or(200, |limit| limit.max(1) as usize);
        let (mut text, mut shown) = (String::new(), 0);
        for (_, path) in found.iter().take(limit) {
            if text.len() + path.len() + NOTE > BUDGET {
                break;
            }
            workspace.touch(path);
            text.push_str(path);
            text.push('\n');
            shown += 1;
        }
        let mut notes = if shown < found.len() {
            vec![format!(
                "the newest {} of {} files; narrow the pattern or raise the limit",
                count(shown),
                count(found.len())
            )]
        } else {
            vec![plural(shown, "file", "files")]
        };
        if found.is_empty() && !self.pattern.contains("**") {
            notes.push("to look in all folders below, begin the pattern with **/".into());
        }
        if walked.unreadable > 0 {
            notes.push(format!("{} not readable", plural(walked.unreadable, "folder", "folders")));
        }
        if walked.too_many {
            notes.push(format!("stopped after {} files: name a folder", count(MAX_FILES)));
        }
        Ok(format!("{text}[{}]\n", notes.join("; ")))
    }
}

impl Workspace {
    /// The pattern relative to the workspace. A model may write it with the workspace's own path in front.
    fn pattern(&self, given: &str, folder: &str) -> Result<String, Error> {
        let from_root = given.starts_with('/') || folder == ".";
        let joined = if from_root { given.to_owned() } else { format!("{folder}/{given}") };
        let pattern = self.normalised(&joined)?;
        if pattern.is_empty() { Ok("**".into()) } else { Ok(pattern) }
    }
}

/// A matcher whose `*` and `?` stay within a folder.
///
/// # Errors
///
/// Says why the pattern is none.
pub fn matcher(pattern: &str) -> Result<GlobMatcher, Error> {
    match GlobBuilder::new(pattern).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => {
            Err(Error::invalid(format!("{error}; correct the glob, or escape [ ] {{ }} * ? with a backslash")))
        }
    }
}

/// The folders at the front of a pattern that hold no special character.
fn plain_folder(pattern: &str) -> &str {
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    pattern[..special].rfind('/').map_or("", |end| &pattern[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::tests::tree;
    use std::time::Duration;

    fn glob(workspace: &Workspace, arguments: &str) -> String {
        let tool: GlobFiles = astrarium_sdk::serde_json::from_str(arguments).unwrap();
        tool.run(workspace).unwrap_or_else(|error| format!("error: {error}"))
    }

    #[test]
    fn stars_stay_in_a_folder_and_the_newest_comes_first() {
        let (folder, workspace) = tree(&[
            ("a.rs", ""),
            ("src/b.rs", ""),
            ("src/in/c.rs", ""),
            ("x.txt", ""),
            (".gitignore", "out\n"),
            ("out/d.rs", ""),
        ]);
        for (age, path) in ["src/in/c.rs", "a.rs", "src/b.rs"].iter().enumerate() {
            let file = fs::File::options().write(true).open(folder.path().join(path)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64)).unwrap();
        }
        assert_eq!(glob(&workspace, r#"{"pattern":"*.rs"}"#), "a.rs\n[1 file]\n");
        let all = "src/in/c.rs\na.rs\nsrc/b.rs\n[3 files]\n";
        assert_eq!(glob(&workspace, r#"{"pattern":"**/*.rs"}"#), all);
        assert_eq!(glob(&workspace, r#"{"pattern":"./**/*.{rs,py}"}"#), all);
        let real = folder.path().to_str().unwrap();
        assert_eq!(glob(&workspace, &format!(r#"{{"pattern":"{real}/**/*.rs"}}"#)), all);
        assert_eq!(glob(&workspace, r#"{"pattern":"*.rs","path":"src"}"#), "src/b.rs\n[1 file]\n");
        assert_eq!(
            glob(&workspace, r#"{"pattern":"**/*.rs","limit":1}"#),
            "src/in/c.rs\n[the newest 1 of 3 files; narrow the pattern or raise the limit]\n"
        );
        assert_eq!(glob(&workspace, r#"{"pattern":"out/*"}"#), "out/d.rs\n[1 file]\n");
    }

    #[test]
    fn nothing_found_says_what_to_try() {
        let (_folder, workspace) = tree(&[("src/b.rs", "")]);
        let hint = "[0 files; to look in all folders below, begin the pattern with **/]\n";
        assert_eq!(glob(&workspace, r#"{"pattern":"*.rs"}"#), hint);
        assert_eq!(glob(&workspace, r#"{"pattern":"none/*.rs"}"#), hint);
    }

    #[test]
    fn bad_arguments_are_refused_with_the_reason() {
        let (_folder, workspace) = tree(&[("a", "")]);
        assert!(glob(&workspace, r#"{"pattern":"[a"}"#).contains("unclosed character class"));
        assert!(glob(&workspace, r#"{"pattern":"../*"}"#).contains("climbs out"));
        assert!(glob(&workspace, r#"{"pattern":"/etc/*"}"#).contains("lies outside"));
        assert!(glob(&workspace, r#"{"pattern":"*","path":"a"}"#).contains("give a folder"));
    }

    #[test]
    fn the_walk_starts_at_the_plain_folders() {
        assert_eq!(plain_folder("src/in/*.rs"), "src/in");
        assert_eq!(plain_folder("src/a.rs"), "src");
        assert_eq!(plain_folder("**/a"), "");
        assert_eq!(plain_folder("s*/a"), "");
    }
}
