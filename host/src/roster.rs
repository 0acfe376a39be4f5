//! The folders of agent definitions: `agents/*.md` of what ships, of the home and of the workspace; nearer ones win and say so.
//!
//! Looked through at each use, which costs a few small files, so that an edit counts at once. What a file means is decided by
//! `agent`. One bad file hides no other: it is named with its cure.

use crate::agent::{self, Definition};
use crate::commands::{bytes, files};
use crate::skill::folded;
use crate::skills::{Owner, Root};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A definition where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The definition.
    pub definition: Arc<Definition>,
    /// Whose it is.
    pub owner: Owner,
    /// Its file.
    pub file: PathBuf,
}

/// All definitions, and what is to be said of the files, a line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster {
    /// By name, as people take names for one another.
    found: BTreeMap<String, Found>,
    /// Files that were left out, and those that took the place of others, in order.
    pub problems: Vec<String>,
}

impl Roster {
    /// Reads the definitions of all roots, from far to near.
    pub fn read(roots: &[Root]) -> Self {
        let mut roster = Self::default();
        for root in roots {
            for (name, file) in files(&root.path, &mut roster.problems) {
                match one(root, &name, &file) {
                    Ok(definition) => roster.take(Found { definition: definition.into(), owner: root.owner, file }),
                    Err(reason) => roster.problems.push(format!("the agent {} is left out: {reason}", file.display())),
                }
            }
        }
        roster
    }

    fn take(&mut self, found: Found) {
        let key = folded(&found.definition.name);
        if let Some(other) = self.found.get(&key) {
            let (near, far) = (found.file.display(), other.file.display());
            self.problems.push(format!("{near} takes the place of {far}"));
        }
        self.found.insert(key, found);
    }

    /// A definition by name.
    pub fn get(&self, name: &str) -> Option<&Found> {
        self.found.get(&folded(name))
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Found> {
        self.found.values()
    }
}

fn one(root: &Root, name: &str, file: &std::path::Path) -> Result<Definition, String> {
    let real = file.canonicalize().map_err(|error| format!("cannot be read: {error}"))?;
    if root.within.as_ref().is_some_and(|within| !real.starts_with(within)) {
        return Err("it leads out of the workspace; copy it there".into());
    }
    let stem = name.rsplit(':').next().unwrap_or(name);
    agent::read(&bytes(&real)?, stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn put(base: &Path, path: &str, text: &str) {
        let path = base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn definition(name: &str, body: &str) -> String {
        format!("---\nname: {name}\ndescription: d\n---\n{body}\n")
    }

    #[test]
    fn nearer_definitions_win_and_say_so_and_a_bad_file_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        put(&base, "share/reader.md", &definition("reader", "shipped"));
        put(&base, "home/reader.md", &definition("Reader", "mine"));
        put(&base, "home/README.md", "# Put agents here\n");
        put(&base, "work/.claude/agents/deep/critic.md", &definition("critic", "claude"));
        put(&base, "work/.astrarium/agents/x.md", &definition("critic", "nearest"));
        put(&base, "secret.md", &definition("leak", "secret"));
        std::os::unix::fs::symlink(base.join("secret.md"), base.join("work/.claude/agents/leak.md")).unwrap();
        let root = |name: &str, owner, within| Root { path: base.join(name), owner, within };
        let within = Some(base.join("work"));
        let roster = Roster::read(&[
            root("share", Owner::Shipped, None),
            root("home", Owner::User, None),
            root("work/.claude/agents", Owner::Workspace, within.clone()),
            root("work/.astrarium/agents", Owner::Workspace, within),
        ]);
        let shown: Vec<_> = roster.all().map(|found| (found.definition.body.as_str(), found.owner.word())).collect();
        assert_eq!(shown, [("nearest", "workspace"), ("mine", "user")]);
        assert_eq!(roster.get("READER").unwrap().definition.name, "Reader");
        let said = roster.problems.join("\n");
        assert_eq!(said.matches("takes the place of").count(), 2, "{said}");
        assert!(said.contains("README.md is left out") && said.contains("leads out of the workspace"), "{said}");
        assert_eq!(roster.problems.len(), 4, "{said}");
    }
}
