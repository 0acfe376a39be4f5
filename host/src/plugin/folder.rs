//! A plugin's folder, captured once: every later step works on these bytes, whatever happens to the files meanwhile.

use crate::manifest::{self, Manifest};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What was read.
pub(super) struct Captured {
    pub folder: PathBuf,
    /// Place of its root among the roots.
    pub root: usize,
    pub manifest: Manifest,
    pub wasm: Vec<u8>,
    /// Over manifest and component: two equal ones are the same version.
    pub fingerprint: [u8; 32],
}

/// A folder that could not be read as a plugin. The name is the manifest's, or else the folder's.
pub(super) struct Unreadable {
    pub folder: PathBuf,
    pub root: usize,
    pub name: String,
    pub reason: String,
}

/// Folders of `root` that hold, or should hold, a plugin; in name order. A root that is absent holds none.
pub(super) fn list(root: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read the plugin folder {}: {error}", root.display())),
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok())
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Reads manifest and component, within bounds.
pub(super) fn capture(folder: &Path, root: usize, component_limit: u64) -> Result<Captured, Unreadable> {
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fail =
        |name: &str, reason: String| Unreadable { folder: folder.to_owned(), root, name: name.to_owned(), reason };
    let path = folder.join("plugin.yaml");
    let text = read_bounded(&path, manifest::LIMIT).map_err(|reason| match path.exists() {
        false => fail(
            &folder_name,
            format!("there is no plugin.yaml in {}; write one, or remove the folder", folder.display()),
        ),
        true => fail(&folder_name, reason),
    })?;
    let text = String::from_utf8(text)
        .map_err(|_| fail(&folder_name, format!("{} is not UTF-8; save it as UTF-8", path.display())))?;
    let manifest =
        Manifest::parse(&text).map_err(|reason| fail(&folder_name, format!("{}: {reason}", path.display())))?;
    if manifest.name != folder_name {
        let reason =
            format!("{}: name: {:?} differs from its folder's name; make them equal", path.display(), manifest.name);
        return Err(fail(&folder_name, reason));
    }
    let path = folder.join(manifest.component());
    let wasm = read_bounded(&path, component_limit).map_err(|reason| match path.exists() {
        false => fail(
            &manifest.name,
            format!("the component {} is missing; build it, or mend component: in plugin.yaml", path.display()),
        ),
        true => fail(&manifest.name, reason),
    })?;
    let mut hasher = Sha256::new();
    hasher.update(Sha256::digest(text.as_bytes()));
    hasher.update(&wasm);
    Ok(Captured { folder: folder.to_owned(), root, manifest, wasm, fingerprint: hasher.finalize().into() })
}

fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    // A FIFO in a plugin folder would block the open.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(format!("{} is larger than {limit} bytes (limits: component_bytes)", path.display()));
    }
    Ok(bytes)
}
