//! A plugin's folder read without a host: what the operator's commands look at before any code is compiled.

use super::folder;
use super::registry::PluginRoot;
use crate::manifest::Manifest;
use std::path::PathBuf;

/// A plugin that reads; whether it loads is not known.
#[derive(Debug)]
pub struct Found {
    /// Where it lies.
    pub folder: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
    /// SHA-256 of its component, lower-case hex.
    pub digest: String,
}

/// The plugin of this name as a host would take it: the one in the last root. None when there is none.
pub fn find(roots: &[PluginRoot], name: &str, component_limit: u64) -> Result<Option<Found>, String> {
    let mut unread = None;
    for root in roots.iter().rev() {
        let path = root.path.join(name);
        if !path.is_dir() {
            continue;
        }
        match folder::capture(&path, 0, component_limit) {
            Ok(captured) => {
                let folder::Captured { folder, manifest, digest, .. } = captured;
                return Ok(Some(Found { folder, manifest, digest }));
            }
            // One that does not read takes the place of none that does.
            Err(unreadable) => unread = Some(unreadable.reason),
        }
    }
    unread.map_or(Ok(None), Err)
}
