//! Installed versions: each in a folder of its own, named by what is in it and never changed, and one of them in force by a
//! link in the home's plugin folder. Putting another in force replaces the link in one step, so a running host sees the one or
//! the other, and never half of each.

use super::folder::{MANIFEST, Package};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The versions of one home.
#[derive(Debug)]
pub struct Versions {
    /// Where they are kept.
    kept: PathBuf,
    /// Where the links are.
    plugins: PathBuf,
}

/// A version that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// SHA-256 over manifest and component, which is its folder's name.
    pub fingerprint: String,
    /// SHA-256 of the component.
    pub digest: String,
    /// The plugin's own version.
    pub version: String,
    /// When it was installed first, in UTC.
    pub installed: String,
}

/// What can go wrong with installed versions.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// A file cannot be read or written.
    #[error("{path}: {reason}; check that the home folder is writable")]
    Files {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The folder is not ours.
    #[error("{0} was put there by hand and not by `plugin install`; remove it yourself if that is meant")]
    NotOurs(String),
    /// A version is not what it was when it was installed.
    #[error("{0} is not what was installed: its files were changed; install it again")]
    Changed(String),
    /// Nothing to go back to, or no such version.
    #[error("{0}")]
    None(String),
}

impl Versions {
    /// Of this home.
    pub fn new(home: &Path) -> Self {
        Self { kept: home.join("versions"), plugins: home.join("plugins") }
    }

    /// Keeps a version and puts it in force. Answers with it and the one before, if there was one.
    pub fn install(&self, package: &Package) -> Result<(Kept, Option<Kept>), VersionError> {
        let _alone = self.alone()?;
        let name = &package.manifest.name;
        let link = self.plugins.join(name);
        if fs::symlink_metadata(&link).is_ok() && !self.is_ours(name) {
            return Err(VersionError::NotOurs(link.display().to_string()));
        }
        let before = self.current(name)?;
        let fingerprint = package.fingerprint();
        let mut history = self.history(name)?;
        let kept = match history.iter().find(|kept| kept.fingerprint == fingerprint) {
            Some(kept) if self.is_whole(name, kept) => kept.clone(),
            _ => {
                self.keep(package, &fingerprint)?;
                Kept {
                    fingerprint,
                    digest: package.digest(),
                    version: package.manifest.version.clone(),
                    installed: format!("{:.0}", jiff::Timestamp::now()),
                }
            }
        };
        // The newest is the last, also when it was there before.
        history.retain(|other| other.fingerprint != kept.fingerprint);
        history.push(kept.clone());
        self.write_history(name, &history)?;
        self.link(name, &kept)?;
        Ok((kept, before))
    }

    /// Puts an installed version in force: the one before that of now, or the one that a version or the beginning of a digest
    /// names.
    pub fn rollback(&self, name: &str, wanted: Option<&str>) -> Result<Kept, VersionError> {
        let _alone = self.alone()?;
        let history = self.history(name)?;
        let current = self.current(name)?;
        let to = match wanted {
            Some(wanted) => {
                let wanted = wanted.strip_prefix("sha256:").unwrap_or(wanted);
                let fits =
                    |kept: &&Kept| kept.version == wanted || (wanted.len() >= 6 && kept.digest.starts_with(wanted));
                history.iter().rev().find(fits)
            }
            None => {
                let now = current.as_ref().and_then(|now| history.iter().position(|kept| kept == now));
                now.and_then(|now| now.checked_sub(1)).and_then(|before| history.get(before))
            }
        };
        let Some(to) = to else {
            let known: Vec<String> = history
                .iter()
                .map(|kept| format!("{} ({})", kept.version, kept.digest.get(..12).unwrap_or_default()))
                .collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let what =
                wanted.map_or_else(|| "no version before this one".to_owned(), |wanted| format!("no version {wanted}"));
            return Err(VersionError::None(format!("{what} of {name} was installed here; installed: {known}")));
        };
        if !self.is_whole(name, to) {
            return Err(VersionError::Changed(self.folder(name, to).display().to_string()));
        }
        self.link(name, to)?;
        Ok(to.clone())
    }

    /// Takes an installed plugin out of force; its versions stay for `rollback`.
    pub fn remove(&self, name: &str) -> Result<(), VersionError> {
        let link = self.plugins.join(name);
        if fs::symlink_metadata(&link).is_err() {
            return Err(VersionError::None(format!("no plugin {name} is installed in this home")));
        }
        if !self.is_ours(name) {
            return Err(VersionError::NotOurs(link.display().to_string()));
        }
        fs::remove_file(&link).map_err(|error| failed(&link, error))
    }

    /// The versions of a plugin in the order in which they were installed.
    pub fn history(&self, name: &str) -> Result<Vec<Kept>, VersionError> {
        let path = self.kept.join(name).join(HISTORY);
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| failed(&path, error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed(&path, error)),
        }
    }

    /// The version in force, if it is an installed one.
    pub fn current(&self, name: &str) -> Result<Option<Kept>, VersionError> {
        let Ok(target) = fs::read_link(self.plugins.join(name)) else { return Ok(None) };
        let fingerprint = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(self.history(name)?.into_iter().find(|kept| kept.fingerprint == fingerprint))
    }

    /// One command at a time; the system lets go of the lock when the process ends.
    fn alone(&self) -> Result<fs::File, VersionError> {
        let path = self.kept.join(".lock");
        let locked = fs::create_dir_all(&self.kept).and_then(|()| fs::File::create(&path)).and_then(|file| {
            file.lock()?;
            Ok(file)
        });
        locked.map_err(|error| failed(&path, error))
    }

    fn is_ours(&self, name: &str) -> bool {
        fs::read_link(self.plugins.join(name))
            .is_ok_and(|target| target.starts_with(Path::new("../versions").join(name)))
    }

    fn folder(&self, name: &str, kept: &Kept) -> PathBuf {
        self.kept.join(name).join(&kept.fingerprint)
    }

    /// Whether a version's files are those that were installed.
    fn is_whole(&self, name: &str, kept: &Kept) -> bool {
        let package = Package::read(&self.folder(name, kept), u64::MAX - 1);
        package.is_ok_and(|package| package.fingerprint() == kept.fingerprint)
    }

    /// Writes a version beside the others, whole or not at all.
    fn keep(&self, package: &Package, fingerprint: &str) -> Result<(), VersionError> {
        let all = self.kept.join(&package.manifest.name);
        let failed = |error: std::io::Error| failed(&all, error);
        fs::create_dir_all(&all).map_err(failed)?;
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&all).map_err(failed)?;
        fs::write(new.path().join(MANIFEST), &package.text).map_err(failed)?;
        fs::write(new.path().join(package.manifest.component()), &package.wasm).map_err(failed)?;
        let folder = all.join(fingerprint);
        // One that was damaged makes way.
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        fs::rename(new.path(), &folder).map_err(failed)?;
        // It has moved: there is nothing to clean up at its old place.
        let _ = new.keep();
        Ok(())
    }

    fn write_history(&self, name: &str, history: &[Kept]) -> Result<(), VersionError> {
        let all = self.kept.join(name);
        let write = || -> std::io::Result<()> {
            let file = tempfile::NamedTempFile::new_in(&all)?;
            serde_json::to_writer_pretty(&file, history)?;
            file.persist(all.join(HISTORY))?;
            Ok(())
        };
        write().map_err(|error| failed(&all.join(HISTORY), error))
    }

    #[cfg(unix)]
    fn link(&self, name: &str, kept: &Kept) -> Result<(), VersionError> {
        let target = Path::new("../versions").join(name).join(&kept.fingerprint);
        let (link, new) = (self.plugins.join(name), self.plugins.join(format!(".{name}.new")));
        // One that a crash left behind.
        let _ = fs::remove_file(&new);
        std::os::unix::fs::symlink(&target, &new).map_err(|error| failed(&new, error))?;
        fs::rename(&new, &link).map_err(|error| failed(&link, error))
    }

    #[cfg(not(unix))]
    fn link(&self, name: &str, _: &Kept) -> Result<(), VersionError> {
        Err(VersionError::None(format!("plugins are not installed on this system; copy the folder of {name} yourself")))
    }
}

const HISTORY: &str = "history.json";

fn failed(path: &Path, error: impl std::fmt::Display) -> VersionError {
    VersionError::Files { path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str, wasm: &str) -> Package {
        Package::new(format!("name: notes\nversion: {version}\n"), wasm.into()).unwrap()
    }

    fn home() -> (tempfile::TempDir, Versions) {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("plugins")).unwrap();
        let versions = Versions::new(home.path());
        (home, versions)
    }

    fn in_force(home: &tempfile::TempDir) -> String {
        let package = Package::read(&home.path().join("plugins/notes"), 1_000).unwrap();
        package.manifest.version
    }

    #[test]
    fn versions_are_kept_and_gone_back_to() {
        let (home, versions) = home();
        for (version, wasm) in [("1", "a"), ("2", "b"), ("3", "c")] {
            versions.install(&package(version, wasm)).unwrap();
            assert_eq!(in_force(&home), version);
        }
        assert_eq!(versions.rollback("notes", None).unwrap().version, "2");
        assert_eq!(versions.rollback("notes", None).unwrap().version, "1");
        assert_eq!(in_force(&home), "1");
        let error = versions.rollback("notes", None).unwrap_err().to_string();
        assert!(error.contains("no version before") && error.contains("3 ("), "{error}");
        assert_eq!(versions.rollback("notes", Some("3")).unwrap().version, "3");
        let digest = package("2", "b").digest();
        assert_eq!(versions.rollback("notes", Some(&digest[..8])).unwrap().version, "2");
        assert!(versions.rollback("notes", Some("9")).is_err());
        // One that is installed again is the newest, and is kept once.
        versions.install(&package("1", "a")).unwrap();
        assert_eq!(versions.rollback("notes", None).unwrap().version, "3");
        assert_eq!(versions.history("notes").unwrap().len(), 3);
        versions.remove("notes").unwrap();
        assert!(!home.path().join("plugins/notes").exists());
        assert_eq!(versions.rollback("notes", Some("2")).unwrap().version, "2");
    }

    #[test]
    fn a_version_that_was_changed_is_not_gone_back_to() {
        let (home, versions) = home();
        let (first, _) = versions.install(&package("1", "a")).unwrap();
        versions.install(&package("2", "b")).unwrap();
        let folder = home.path().join("versions/notes").join(&first.fingerprint);
        fs::write(folder.join("notes.wasm"), "evil").unwrap();
        assert!(matches!(versions.rollback("notes", None), Err(VersionError::Changed(_))));
        assert_eq!(in_force(&home), "2");
        // Installing it again mends it.
        versions.install(&package("1", "a")).unwrap();
        assert_eq!(in_force(&home), "1");
    }

    #[test]
    fn a_folder_that_was_put_there_by_hand_is_left_alone() {
        let (home, versions) = home();
        fs::create_dir(home.path().join("plugins/notes")).unwrap();
        assert!(matches!(versions.install(&package("1", "a")), Err(VersionError::NotOurs(_))));
        assert!(matches!(versions.remove("notes"), Err(VersionError::NotOurs(_))));
        assert!(home.path().join("plugins/notes").is_dir());
    }
}
