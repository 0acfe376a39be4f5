//! Whether a step must run again: a hash of all that it reads, kept in a stamp file beside what it made.
//!
//! The stamp is written only after the step has succeeded, so a step that was cut short runs again.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::{Outcome, files};

/// A hash under way.
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Starts with the step's own settings, in words.
    pub fn of(settings: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(settings);
        Self(hash)
    }

    /// Adds a file, or a folder with all that it holds, by names and bytes.
    pub fn and(mut self, path: &Path) -> Outcome<Self> {
        self.add(path)?;
        Ok(self)
    }

    fn add(&mut self, path: &Path) -> Outcome<()> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // Lengths stand before names and contents, so that no two trees give one stream of bytes.
        self.0.update((name.len() as u64).to_le_bytes());
        self.0.update(name);
        if path.is_dir() {
            let entries = files::entries(path)?;
            self.0.update((entries.len() as u64).to_le_bytes());
            return entries.iter().try_for_each(|entry| self.add(entry));
        }
        let bytes = files::read(path)?;
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        Ok(())
    }

    /// The hash, in hex.
    pub fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Runs a step unless its stamp says that nothing has changed since it last succeeded.
pub fn once(stamp: &Path, fingerprint: &str, step: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    if is_fresh(stamp, fingerprint) {
        return Ok(());
    }
    files::remove(stamp)?;
    step()?;
    files::write(stamp, fingerprint.as_bytes())
}

/// Whether the stamp holds this fingerprint.
pub fn is_fresh(stamp: &Path, fingerprint: &str) -> bool {
    std::fs::read(stamp).is_ok_and(|old| old == fingerprint.as_bytes())
}

/// SHA-256 of bytes, in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
