//! The door to the memory files: `<library>/memory`, one Markdown file an entry, read leniently and written whole.
//!
//! What the files mean is judged by `memory`. Writers of all processes take turns by a lock on `.lock` in the folder;
//! readers share it, so that nobody lists a folder halfway through a replacement. Each file is written beside its place,
//! put on the disk and renamed over it. Invariant: no entry is ever lost. A version is in the archive, as
//! `{slug}_v{n}.md`, before its own file is written over or removed. The index `MEMORY.md` is made anew from the files.

mod lock;
mod read;
mod write;

pub use write::{Draft, Written};

use crate::memory::{Entry, Listing};
use read::Stamp;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one file: some twenty pages, more than a memory should have.
pub const FILE_BYTES: u64 = 64 << 10;

/// Entries that hold: past this a shelf needs a person to look through it.
pub const ENTRIES: usize = 5_000;

/// The index beside the entries.
pub const INDEX: &str = "MEMORY.md";

/// The memory folder of one library. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    /// The last listing, good as long as the folder looks the same.
    listed: Mutex<Option<(Stamp, Arc<Listing>)>>,
}

/// What can go wrong between us and the files.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No such entry.
    #[error("{0}")]
    NotFound(String),
    /// Over a limit.
    #[error("{0}")]
    Limit(String),
    /// Somebody else changed the entry since it was read.
    #[error("the memory {0} was changed by somebody else meanwhile; read it again, and write what should stand then")]
    Changed(String),
    /// Another process has held the lock for too long.
    #[error("the memory folder {0} is locked by another process; try again, and end the one that hangs")]
    Busy(String),
    /// The system refused.
    #[error("{path}: {reason}")]
    Failed {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
}

impl Shelf {
    /// The shelf of a library. Nothing is made before the first entry.
    pub fn new(library: &Path) -> Self {
        Self { folder: library.join("memory"), listed: Mutex::new(None) }
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All that lies on the shelf. A file that does not read is in the listing's `broken`, and in the log.
    pub fn list(&self) -> Result<Arc<Listing>, ShelfError> {
        if self.is_absent().map_err(failed(&self.folder))? {
            return Ok(Arc::default());
        }
        let _shared = lock::shared(&self.folder)?;
        self.list_locked()
    }

    /// The entry of this name that holds; else the newest version of one that was replaced.
    pub fn read(&self, name: &str) -> Result<(Entry, Arc<Listing>), ShelfError> {
        let slug = write::slug_of(name)?;
        let listing = self.list()?;
        match listing.get(&slug).or_else(|| listing.replaced(&slug)) {
            Some(entry) => match write::another(entry, name) {
                Some(other) => Err(write::stranger(name, entry, other)),
                None => Ok((entry.clone(), listing)),
            },
            None => Err(write::unknown(&listing, &slug, name)),
        }
    }

    /// Whether nothing was ever put there. A folder that cannot be reached, and a link that leads nowhere, is an error: what
    /// is behind it is not forgotten.
    fn is_absent(&self) -> std::io::Result<bool> {
        use std::io::{Error, ErrorKind};
        match self.folder.metadata() {
            Ok(found) if found.is_dir() => Ok(false),
            Ok(_) => Err(Error::other("it is no folder; move it away")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let dangling = |path: &Path| path.is_symlink() && !path.exists();
                match [Some(self.folder.as_path()), self.folder.parent()].into_iter().flatten().any(dangling) {
                    true => Err(Error::other("a link on the way leads nowhere; is what it leads to mounted?")),
                    false => Ok(true),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn list_locked(&self) -> Result<Arc<Listing>, ShelfError> {
        let stamp = read::stamp(&self.folder)?;
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, listing)) = &*listed
            && *before == stamp
        {
            return Ok(listing.clone());
        }
        let listing = Arc::new(read::listing(&self.folder, &stamp));
        for broken in &listing.broken {
            tracing::warn!("memory {}/{}: {}", self.folder.display(), broken.file, broken.reason);
        }
        *listed = Some((stamp, listing.clone()));
        Ok(listing)
    }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> ShelfError {
    let path = path.display().to_string();
    move |error| ShelfError::Failed { path: path.clone(), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
