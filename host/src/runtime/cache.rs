//! Compiled artefacts on disk, so that a component is compiled once for an engine and never again.
//!
//! An artefact is native code: it is read only from a folder that this user alone can write to, and only when its own
//! hash, written beside it when it was made, still holds. Anything else is a miss, never a failure. Artefacts are never
//! overwritten in place, since a running process has them mapped.

use crate::digest::sha256;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use wasmtime::Engine;
use wasmtime::component::Component;

pub(super) struct Cache {
    /// None when the folder is not ours alone, or cannot be made: then everything is compiled.
    folder: Option<PathBuf>,
}

impl Cache {
    pub(super) fn open(folder: &Path, engine: &Engine) -> Self {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let folder = folder.join(format!("{:016x}", hasher.finish()));
        match private_folder(&folder) {
            Ok(()) => Self { folder: Some(folder) },
            Err(reason) => {
                tracing::warn!("no cache of compiled plugins in {}: {reason}", folder.display());
                Self { folder: None }
            }
        }
    }

    /// The compiled component of this digest, if it is there and whole.
    pub(super) fn get(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let (artefact, seal) = self.paths(digest)?;
        let sealed = fs::read_to_string(seal).ok()?;
        let bytes = fs::read(&artefact).ok()?;
        if sealed.trim() != sha256(&bytes) {
            tracing::warn!("the cached artefact {} is damaged and will be made anew", artefact.display());
            return None;
        }
        drop(bytes);
        // Mapped from the file rather than copied, so that idle plugins cost page cache and not private memory.
        // SAFETY: the artefact was written by `put` below from this host's own compiler, into a folder that only this
        // user can write to; its seal has just been checked, and artefacts are never changed in place.
        unsafe { Component::deserialize_file(engine, &artefact) }
            .inspect_err(|error| tracing::warn!("the cached artefact {} does not load: {error}", artefact.display()))
            .ok()
    }

    /// Keeps a compiled component; a failure is logged and costs the next start a compilation.
    pub(super) fn put(&self, component: &Component, digest: &str) {
        let Some((artefact, seal)) = self.paths(digest) else { return };
        let kept = component
            .serialize()
            .map_err(|error| error.to_string())
            .and_then(|bytes| write_new(&artefact, &bytes).and_then(|()| write_new(&seal, sha256(&bytes).as_bytes())));
        if let Err(reason) = kept {
            tracing::warn!("could not keep the compiled plugin {}: {reason}", artefact.display());
        }
    }

    fn paths(&self, digest: &str) -> Option<(PathBuf, PathBuf)> {
        let folder = self.folder.as_ref()?;
        Some((folder.join(format!("{digest}.cwasm")), folder.join(format!("{digest}.seal"))))
    }
}

/// Writes beside the target and renames over it: readers see the old file or the new one, never a part.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().ok_or("no parent folder")?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| error.to_string())?;
    file.write_all(bytes).map_err(|error| error.to_string())?;
    file.persist(path).map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(unix)]
fn private_folder(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| error.to_string())?;
    let meta = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    let me = fs::metadata("/proc/self").map(|me| me.uid()).unwrap_or(meta.uid());
    if !meta.is_dir() || meta.uid() != me || meta.mode() & 0o022 != 0 {
        return Err("others can write to it; remove it or run chmod 700".into());
    }
    Ok(())
}

#[cfg(not(unix))]
fn private_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())
}
