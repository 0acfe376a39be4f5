//! The lock between processes: shared for readers, exclusive for writers. The system lets go of it when a process ends.

use super::{ShelfError, failed};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for others: a write takes milliseconds, so this is a process that hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Held until it is dropped.
pub(super) struct Held(#[expect(dead_code, reason = "its lock ends with it")] File);

/// For readers. Where the folder is not ours to write to, nobody of ours writes there, and reading needs no lock.
pub(super) fn shared(folder: &Path) -> Result<Option<Held>, ShelfError> {
    match open(folder) {
        Ok(file) => wait(folder, file, File::try_lock_shared).map(Some),
        Err(error) => {
            tracing::debug!("{}: read without a lock: {error}", folder.display());
            Ok(None)
        }
    }
}

/// For writers.
pub(super) fn exclusive(folder: &Path) -> Result<Held, ShelfError> {
    let file = open(folder).map_err(failed(&folder.join(".lock")))?;
    wait(folder, file, File::try_lock)
}

fn open(folder: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(folder.join(".lock"))
}

fn wait(folder: &Path, file: File, try_lock: fn(&File) -> Result<(), TryLockError>) -> Result<Held, ShelfError> {
    let begun = Instant::now();
    loop {
        match try_lock(&file) {
            Ok(()) => return Ok(Held(file)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(ShelfError::Busy(folder.display().to_string())),
            Err(TryLockError::Error(error)) => return Err(failed(&folder.join(".lock"))(error)),
        }
    }
}
