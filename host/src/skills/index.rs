//! What is known of one root: every skill file with its stamp and its last good reading. A change costs the work of what
//! changed and no more; the work is counted.

use super::{Root, folder};
use crate::digest::sha256;
use crate::skill::{self, Skill};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders listed and files read so far, by all that was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Folders that were listed.
    pub folders: u64,
    /// Files that were read.
    pub files: u64,
}

/// A skill file.
#[derive(Debug, Clone)]
pub(super) struct File {
    /// What the system says of it, to know whether it changed.
    stamp: Option<Stamp>,
    /// What it held when it could last be read.
    pub good: Option<(Arc<Skill>, String)>,
    /// Why what it holds now is not used.
    pub error: Option<String>,
}

/// Enough to see that a file was written to: the change time is set by every write and cannot be set back.
type Stamp = (u64, u64, i64, i64, i64, i64);

/// The files of one root, by path.
#[derive(Debug)]
pub(super) struct Index {
    root: Root,
    files: BTreeMap<PathBuf, File>,
    /// What was passed over, by the folder that was searched.
    passed_over: BTreeMap<PathBuf, Vec<String>>,
    work: Work,
}

impl Index {
    pub fn new(root: Root) -> Self {
        Self { root, files: BTreeMap::new(), passed_over: BTreeMap::new(), work: Work::default() }
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &File)> {
        self.files.iter()
    }

    pub fn passed_over(&self) -> impl Iterator<Item = &String> {
        self.passed_over.values().flatten()
    }

    pub fn work(&self) -> Work {
        self.work
    }

    /// Looks at everything; files whose stamp is the same are not read again.
    pub fn look_at_all(&mut self) {
        let root = self.root.path.clone();
        self.search(&root);
    }

    /// Looks at what changes of these paths may have changed.
    pub fn look_at<'a>(&mut self, paths: impl IntoIterator<Item = &'a PathBuf>) {
        // A save touches several files of one folder, which is looked at once.
        let folders: BTreeSet<&Path> = paths.into_iter().filter_map(|path| self.concerned(path)).collect();
        for folder in &folders {
            if !folder.ancestors().skip(1).any(|above| folders.contains(above)) {
                self.search(folder);
            }
        }
    }

    /// The folder that must be searched when something happened to `path`.
    fn concerned<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let inside = path.strip_prefix(&self.root.path).ok()?;
        if inside.components().any(|part| folder::is_passed_over(&part.as_os_str().to_string_lossy())) {
            return None;
        }
        let is_skill_file = path.file_name().is_some_and(|name| folder::is_skill_file(&name.to_string_lossy()));
        let folder = if is_skill_file { path.parent().unwrap_or(path) } else { path };
        // What lies inside of a skill's folder belongs to it: a resource, whose change is nobody's news.
        let owner = folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.root.path));
        let mut owners = owner.filter_map(|above| self.first_below(above).filter(|file| file.parent() == Some(above)));
        if owners.next().is_some() {
            return None;
        }
        (is_skill_file || folder.is_dir() || self.first_below(folder).is_some()).then_some(folder)
    }

    /// The first known file below a folder: its own skill, where it has one, since nothing else is known below that.
    fn first_below(&self, folder: &Path) -> Option<&Path> {
        let file = self.below(folder).next()?;
        file.starts_with(folder).then_some(file)
    }

    /// Known files from a folder's place on, those below it first.
    fn below(&self, folder: &Path) -> impl Iterator<Item = &PathBuf> {
        self.files.range::<Path, _>((Bound::Included(folder), Bound::Unbounded)).map(|(file, _)| file)
    }

    /// Searches a folder anew: what is gone goes, what has the same stamp stays, the rest is read.
    fn search(&mut self, folder: &Path) {
        let depth = folder.strip_prefix(&self.root.path).map_or(0, |inside| inside.components().count());
        let (found, passed_over, folders) = folder::find_from(folder, depth, self.root.within.as_deref());
        self.work.folders += folders;
        self.passed_over.retain(|at, _| !at.starts_with(folder));
        if !passed_over.is_empty() {
            self.passed_over.insert(folder.to_owned(), passed_over);
        }
        let old: Vec<PathBuf> = self.below(folder).take_while(|file| file.starts_with(folder)).cloned().collect();
        for gone in old.iter().filter(|file| found.binary_search(file).is_err()) {
            self.files.remove(gone);
        }
        for file in found {
            self.reread(file);
        }
    }

    /// Reads a file, unless its stamp says that nothing changed. What reads worse than before does not take its place.
    fn reread(&mut self, path: PathBuf) {
        let stamp = std::fs::metadata(&path).ok().map(|meta| stamp(&meta));
        let before = self.files.get(&path);
        if before.is_some_and(|before| before.stamp.is_some() && before.stamp == stamp) {
            return;
        }
        self.work.files += 1;
        let good = before.and_then(|before| before.good.clone());
        let (good, error) = match (self.read(&path), good) {
            (Ok(new), None) => (Some(new), None),
            (Ok(new), Some(old)) => match lost(&old.0, &new.0) {
                None => (Some(new), None),
                Some(what) => (Some(old), Some(format!("it lost {what}; the version before goes on"))),
            },
            (Err(reason), Some(old)) => (Some(old), Some(format!("{reason}; the version before goes on"))),
            (Err(reason), None) => (None, Some(reason)),
        };
        self.files.insert(path, File { stamp, good, error });
    }

    fn read(&self, path: &Path) -> Result<(Arc<Skill>, String), String> {
        let bytes = folder::bytes(path)?;
        let hash = sha256(&bytes);
        Ok((Arc::new(skill::read(&bytes, &folder::folder_name(path))), hash))
    }
}

fn stamp(meta: &Metadata) -> Stamp {
    (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
}

/// What an edit took away that a skill is nothing without: a file that was emptied, or saved halfway.
fn lost(old: &Skill, new: &Skill) -> Option<&'static str> {
    if !old.body.is_empty() && new.body.is_empty() {
        return Some("its instructions");
    }
    // With it would go what the author decided: who may load it, where it runs, with which tools.
    if !old.frontmatter.is_empty() && new.frontmatter.is_empty() {
        return Some("its frontmatter");
    }
    (old.description.is_some() && new.description.is_none()).then_some("its description")
}
