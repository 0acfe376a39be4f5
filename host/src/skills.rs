//! Skills on disk, watched while the host runs, and what each session sees of them. What a file means is decided by `skill`.
//!
//! A change costs the work of what changed; a bad edit keeps the last good version and says so; one bad file hides no
//! other. Within an epoch the order of the skills is fixed, since a re-sort would change bytes of the prompt.

pub mod folder;
mod fork;
mod index;
mod registry;
mod view;
mod watch;

pub use fork::{Fork, ForkReport, ForkRunner, MOST_STEPS, STEPS};
pub use index::Work;
pub use registry::{Changes, Live, Registry, Snapshot};
pub use view::{Asker, Clock, Loading, Parts, Refusal, Restorable, SkillSession, scores};
pub use watch::{Guard as WatchGuard, watch};

use std::path::PathBuf;

/// A folder of skills. Of two skills with one name, the one in the later root counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Where it is; it may be absent.
    pub path: PathBuf,
    /// Whose it is.
    pub owner: Owner,
    /// A folder that links must not lead out of: a workspace may be a stranger's, and a link in it must not hand the
    /// model a file of the user's as a skill.
    pub within: Option<PathBuf>,
}

/// Whose a skill is, from far to near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// It ships with Astrarium.
    Shipped,
    /// It lies in the home folder.
    User,
    /// It lies in the workspace.
    Workspace,
}

impl Owner {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Owner::Shipped => "shipped",
            Owner::User => "user",
            Owner::Workspace => "workspace",
        }
    }
}

#[cfg(test)]
mod tests;
