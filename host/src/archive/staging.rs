//! Files that wait for their sessions to be taken in, beside where they will be. They go when they are not.

use super::{ArchiveError, failed};
use crate::outputs;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder with one folder for each session, by the name that the session has where it comes from.
pub(super) struct Staging(PathBuf);

/// Whether a text can be the name of a kept result.
pub(super) fn is_file_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=120).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(plain)
}

impl Staging {
    /// An empty one; what an earlier attempt left there goes.
    pub(super) fn new(folder: PathBuf) -> Result<Self, ArchiveError> {
        let _ = fs::remove_dir_all(&folder);
        Ok(Self(folder))
    }

    fn made(&self, session: &str) -> io::Result<PathBuf> {
        let folder = self.0.join(session);
        outputs::make_folder(&self.0)?;
        outputs::make_folder(&folder)?;
        Ok(folder)
    }

    /// Adds bytes to the file `name` of a session; the last ones come with its time.
    pub(super) fn add(
        &self,
        session: &str,
        name: &str,
        bytes: &[u8],
        modified_ms: Option<u64>,
    ) -> Result<(), ArchiveError> {
        let path = self.0.join(session).join(name);
        let add = || -> io::Result<()> {
            self.made(session)?;
            match path.exists() {
                false => outputs::write_new(&path, bytes)?,
                true => fs::File::options().append(true).open(&path)?.write_all(bytes)?,
            }
            match modified_ms {
                Some(ms) => {
                    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
                    fs::File::options().append(true).open(&path)?.set_modified(time)
                }
                None => Ok(()),
            }
        };
        add().map_err(failed(format!("{} cannot be written", path.display())))
    }

    /// Puts the file `from` there for a session. A kept result is never written to again, so two sessions may have the one
    /// file.
    pub(super) fn share(&self, session: &str, from: &Path, name: &str) -> Result<(), ArchiveError> {
        let share = || {
            let to = self.made(session)?.join(name);
            fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop))
        };
        share().map_err(failed(format!("{} cannot be copied", from.display())))
    }

    /// Puts all of them where their sessions will look for them: `ids` says which is which here. What lay there belonged to
    /// no session.
    pub(super) fn take_place(
        &self,
        ids: &HashMap<String, String>,
        folder: &dyn Fn(&str) -> PathBuf,
    ) -> Result<(), ArchiveError> {
        for (there, here) in ids {
            let (from, to) = (self.0.join(there), folder(here));
            let _ = fs::remove_dir_all(&to);
            if from.exists() {
                fs::rename(&from, &to).map_err(failed(format!("{} cannot be made", to.display())))?;
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
