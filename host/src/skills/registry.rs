//! All skills as they are now: one immutable snapshot, replaced whole when something changed.

use super::index::{File, Index};
use super::{Owner, Root, Work};
use crate::skill::{self, Level, Skill};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A skill that can be used.
#[derive(Debug, Clone)]
pub struct Live {
    /// Its name as it is looked for: [`skill::folded`].
    pub key: String,
    /// What it says.
    pub skill: Arc<Skill>,
    /// Whose it is.
    pub owner: Owner,
    /// Its file.
    pub file: PathBuf,
    /// SHA-256 of the file it was read from, lower-case hex.
    pub hash: String,
    /// Why what its file holds now is not used.
    pub error: Option<String>,
}

impl Live {
    /// The folder of its resources.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }
}

/// The skills of one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    skills: BTreeMap<String, Arc<Live>>,
    /// What was passed over or could not be read, a line each.
    pub problems: BTreeSet<String>,
    /// Which skills took the place of others, a line each.
    pub shadows: BTreeSet<String>,
}

impl Snapshot {
    /// All skills, by key.
    pub fn skills(&self) -> impl Iterator<Item = &Arc<Live>> {
        self.skills.values()
    }

    /// The skill of a name, however it is spelled.
    pub fn get(&self, name: &str) -> Option<&Arc<Live>> {
        self.skills.get(&skill::folded(name))
    }
}

/// Finds and reads skills. Shared by all sessions of a host.
pub struct Registry {
    indices: Mutex<Vec<Index>>,
    snapshot: RwLock<Arc<Snapshot>>,
}

/// What may have changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// Paths that something happened to.
    pub paths: BTreeSet<PathBuf>,
    /// Whether more happened than is known, so that everything must be looked at.
    pub all: bool,
}

impl Registry {
    /// An empty registry over roots, farther ones before nearer ones; [`Registry::refresh`] fills it.
    pub fn new(roots: Vec<Root>) -> Self {
        let indices = roots.into_iter().map(Index::new).collect();
        Self { indices: Mutex::new(indices), snapshot: RwLock::default() }
    }

    /// The skills as they are now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where skills lie.
    pub fn roots(&self) -> Vec<Root> {
        self.lock().iter().map(|index| index.root().clone()).collect()
    }

    /// What was done so far, by all roots together.
    pub fn work(&self) -> Work {
        let indices = self.lock();
        let sum =
            |work: Work, more: Work| Work { folders: work.folders + more.folders, files: work.files + more.files };
        indices.iter().map(Index::work).fold(Work::default(), sum)
    }

    /// Looks at everything. Answers with a line for each thing that changed or is wrong.
    pub fn refresh(&self) -> Vec<String> {
        self.apply(&Changes { all: true, ..Changes::default() })
    }

    /// Looks at what may have changed, and publishes it in one swap.
    pub fn apply(&self, changes: &Changes) -> Vec<String> {
        let mut indices = self.lock();
        for index in indices.iter_mut() {
            let root = &index.root().path;
            // A root, or a folder around it, that came or went is more than one change.
            if changes.all || changes.paths.iter().any(|path| root.starts_with(path)) {
                index.look_at_all();
            } else {
                index.look_at(&changes.paths);
            }
        }
        let new = build(&indices);
        let old = self.snapshot();
        let lines = told(&old, &new);
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        lines
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Index>> {
        // A panic while reading leaves files unread, which the next look reads.
        self.indices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of two skills with one name the one of the later root counts, in one root that of the first path.
fn build(indices: &[Index]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for index in indices {
        snapshot.problems.extend(index.passed_over().cloned());
        let mut of_root: BTreeMap<String, Arc<Live>> = BTreeMap::new();
        for (path, file) in index.files() {
            if let Some(error) = &file.error {
                // A file that could not be read at all is named by its reason.
                let path = path.display().to_string();
                let named = error.starts_with(&path);
                snapshot.problems.insert(if named { error.clone() } else { format!("{path}: {error}") });
            }
            let Some(live) = live(index.root().owner, path, file) else { continue };
            match of_root.get(&live.key) {
                Some(first) => {
                    let (first, second) = (first.file.display(), path.display());
                    snapshot
                        .problems
                        .insert(format!("{second} has the name of {first} and was passed over; rename one"));
                }
                None => drop(of_root.insert(live.key.clone(), Arc::new(live))),
            }
        }
        for (key, near) in of_root {
            if let Some(far) = snapshot.skills.insert(key, near.clone()) {
                let (near, far) = (near.file.display(), far.file.display());
                snapshot.shadows.insert(format!("{near} takes the place of {far}"));
            }
        }
    }
    snapshot
}

fn live(owner: Owner, path: &Path, file: &File) -> Option<Live> {
    let (skill, hash) = file.good.clone()?;
    let key = skill::folded(&skill.name);
    Some(Live { key, skill, owner, file: path.to_owned(), hash, error: file.error.clone() })
}

/// Findings that are told of one file; `skill check` tells all.
const FINDINGS: usize = 3;

/// What changed between two snapshots, a line each.
fn told(old: &Snapshot, new: &Snapshot) -> Vec<String> {
    let problems = new.problems.difference(&old.problems);
    let mut lines: Vec<String> = problems.chain(new.shadows.difference(&old.shadows)).cloned().collect();
    // At the first look everything is new.
    let first = old.skills.is_empty();
    for (key, live) in &new.skills {
        let name = &live.skill.name;
        match old.skills.get(key) {
            None if first => {}
            None => lines.push(format!("skill {name} is new")),
            Some(before) if before.hash != live.hash || before.file != live.file => {
                let version = live.skill.version.as_ref().map(|version| format!(" to version {version}"));
                lines.push(format!("skill {name} has changed{}", version.unwrap_or_default()));
            }
            Some(_) => {}
        }
    }
    for (key, live) in &new.skills {
        if old.skills.get(key).is_none_or(|before| before.hash != live.hash || before.file != live.file) {
            let telling = live.skill.findings.iter().filter(|finding| finding.level >= Level::Warning);
            let told = telling.take(FINDINGS);
            lines.extend(told.map(|finding| format!("{}:{}: {}", live.file.display(), finding.line, finding.text)));
        }
    }
    let gone = old.skills.iter().filter(|(key, _)| !new.skills.contains_key(*key));
    lines.extend(gone.map(|(_, live)| format!("skill {} is gone", live.skill.name)));
    lines
}
