//! A plugin's folder, captured once: every later step works on these bytes, whatever happens to the files meanwhile.

use crate::digest::sha256;
use crate::files::{self, Unread};
use crate::manifest::{self, Manifest};
use std::fs;
use std::path::{Path, PathBuf};

/// What was read.
pub(super) struct Captured {
    pub folder: PathBuf,
    /// Place of its root among the roots.
    pub root: usize,
    pub manifest: Manifest,
    pub wasm: Vec<u8>,
    /// SHA-256 of the component, lower-case hex.
    pub digest: String,
    /// Over manifest and component: two equal ones are the same version.
    pub fingerprint: String,
}

impl Captured {
    pub(super) fn new(folder: &Path, root: usize, package: Package) -> Self {
        let Package { manifest, wasm, .. } = package;
        let digest = sha256(&wasm);
        let fingerprint = fingerprint(&manifest.digest, &digest);
        Self { folder: folder.to_owned(), root, manifest, wasm, digest, fingerprint }
    }
}

/// Over the digests of manifest and component.
fn fingerprint(manifest: &str, component: &str) -> String {
    sha256(format!("{manifest}{component}").as_bytes())
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

/// Reads manifest and component, within bounds. An installed version is a link to a folder that never changes, so the link
/// is followed once: manifest and component are of the same version, whatever is installed meanwhile.
pub(super) fn capture(folder: &Path, root: usize, component_limit: u64) -> Result<Captured, Unreadable> {
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fail = |name: String, reason: String| Unreadable { folder: folder.to_owned(), root, name, reason };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let differs = |name: &str| {
        let path = folder.join(MANIFEST);
        format!("{}: name: {name:?} differs from its folder's name; make them equal", path.display())
    };
    let package = Package::read(&real, component_limit).map_err(|reason| {
        // Where nothing else fits, that is the mistake to mend first.
        let named = read_manifest(&real).and_then(|text| Manifest::parse(&text)).map(|manifest| manifest.name);
        match named {
            Ok(name) if name != folder_name => fail(folder_name.clone(), differs(&name)),
            _ => fail(folder_name.clone(), reason),
        }
    })?;
    if package.manifest.name != folder_name {
        let reason = differs(&package.manifest.name);
        return Err(fail(folder_name, reason));
    }
    Ok(Captured::new(folder, root, package))
}

/// How often a folder is read that changes under the reader: a copy of two files is over by then.
const TRIES: u32 = 3;

/// File name of a manifest.
pub(super) const MANIFEST: &str = "plugin.yaml";

/// A plugin as it is handed over: the text of its manifest, and its component.
#[derive(Debug, Clone)]
pub struct Package {
    /// The manifest as it is written.
    pub text: String,
    /// What it says.
    pub manifest: Manifest,
    /// The component.
    pub wasm: Vec<u8>,
}

impl Package {
    /// Of these bytes.
    pub fn new(text: String, wasm: Vec<u8>) -> Result<Self, String> {
        let manifest = Manifest::parse(&text)?;
        Ok(Self { text, manifest, wasm })
    }

    /// From a folder. Where its manifest changes meanwhile it is read again, so that no manifest is taken for the component
    /// of another version.
    pub fn read(folder: &Path, component_limit: u64) -> Result<Self, String> {
        for _ in 0..TRIES {
            let package = Self::read_once(folder, component_limit)?;
            if read_manifest(folder)? == package.text {
                tracing::debug!(plugin = package.manifest.name, step = "read");
                return Ok(package);
            }
        }
        Err(format!("{} changes while it is read; it is read again when that is over", folder.display()))
    }

    fn read_once(folder: &Path, component_limit: u64) -> Result<Self, String> {
        let text = read_manifest(folder)?;
        let manifest =
            Manifest::parse(&text).map_err(|reason| format!("{}: {reason}", folder.join(MANIFEST).display()))?;
        tracing::debug!(plugin = manifest.name, step = "manifest");
        let path = folder.join(manifest.component());
        let wasm = read_bounded(&path, component_limit).map_err(|reason| match path.exists() {
            false => {
                format!("the component {} is missing; build it, or mend component: in plugin.yaml", path.display())
            }
            true => reason,
        })?;
        Ok(Self { text, manifest, wasm })
    }

    /// SHA-256 of the component, lower-case hex.
    pub fn digest(&self) -> String {
        sha256(&self.wasm)
    }

    /// Over manifest and component: two equal ones are the same version.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(&self.manifest.digest, &self.digest())
    }
}

fn read_manifest(folder: &Path) -> Result<String, String> {
    let path = folder.join(MANIFEST);
    let text = read_bounded(&path, manifest::LIMIT).map_err(|reason| match path.exists() {
        false => format!("there is no plugin.yaml in {}; write one, or remove the folder", folder.display()),
        true => reason,
    })?;
    String::from_utf8(text).map_err(|_| format!("{} is not UTF-8; save it as UTF-8", path.display()))
}

/// Bytes of a file, up to a limit that a component has.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    files::read(path, limit).map(|(bytes, _)| bytes).map_err(|error| match error {
        Unread::TooLarge(_) => format!("{} {error} (limits: component_bytes)", path.display()),
        _ => format!("{} {error}", path.display()),
    })
}
