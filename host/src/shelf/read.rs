//! Reading the folder: what is there, and each file for itself, so that a broken one hides no other.

use super::{FILE_BYTES, INDEX, ShelfError, failed};
use crate::digest::sha256;
use crate::files::{self, Unread};
use crate::memory::{Broken, Entry, Listing, placed};
use jiff::Timestamp;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::SystemTime;

/// What the folder looks like: equal as long as no file was written, added or removed.
pub(super) type Stamp = Vec<(String, Look)>;

/// What a file looks like without being opened. A file that was renamed into place has another number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Look {
    fn of(meta: &Metadata) -> Self {
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(meta);
        #[cfg(not(unix))]
        let number = 0;
        Self { modified: meta.modified().ok(), length: meta.len(), number }
    }
}

/// Names and looks of the folder's Markdown files, in order. Hidden files, the index and others are not ours.
pub(super) fn stamp(folder: &Path) -> Result<Stamp, ShelfError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == INDEX || !name.to_lowercase().ends_with(".md") {
            continue;
        }
        // Gone again, or a link to nothing: the reader says which.
        let look = fs::metadata(entry.path()).map(|meta| Look::of(&meta));
        found.push((name, look.unwrap_or(Look { modified: None, length: 0, number: 0 })));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// Reads every file of the folder.
pub(super) fn listing(folder: &Path, stamp: &Stamp) -> Listing {
    let (mut entries, mut broken) = (Vec::new(), Vec::new());
    for (file, _) in stamp {
        match entry(folder, file) {
            Ok(entry) => entries.push(entry),
            // An archived version that does not read hides nothing that holds, and there is nothing to mend it for.
            Err(_) if matches!(placed(file), Some((_, Some(_)))) => {}
            Err(reason) => broken.push(Broken { file: file.clone(), reason }),
        }
    }
    Listing::new(entries, broken)
}

/// Reads one file.
pub(super) fn entry(folder: &Path, file: &str) -> Result<Entry, String> {
    let Some((slug, version)) = placed(file) else {
        return Err("the name is none of a memory; rename it to words of a-z and 0-9 joined by -, and .md".into());
    };
    let path = folder.join(file);
    // The folder may be a stranger's, and what is read here stands before a model.
    let leads_out = |real: &Path| folder.canonicalize().is_ok_and(|folder| !real.starts_with(folder));
    if path.canonicalize().is_ok_and(|real| leads_out(&real)) {
        return Err("is a link that leads out of the folder of memories; copy the file there".into());
    }
    let (bytes, modified) = bytes(&path)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| format!("byte {} is no UTF-8; save the file as UTF-8", error.valid_up_to() + 1))?;
    Ok(Entry {
        archived: version,
        file: file.to_owned(),
        updated: Timestamp::try_from(modified).unwrap_or_default(),
        version: fingerprint(&bytes),
        ..Entry::parse(slug, text)?
    })
}

fn bytes(path: &Path) -> Result<(Vec<u8>, SystemTime), String> {
    let (bytes, metadata) = files::read(path, FILE_BYTES).map_err(|error| match error {
        Unread::TooLarge(_) => format!("{error}; make it shorter, or keep it elsewhere and point to it"),
        Unread::NotRegular => format!("{error}; remove it"),
        _ => error.to_string(),
    })?;
    Ok((bytes, metadata.modified().map_err(|error| format!("cannot be read: {error}"))?))
}

/// The first 16 hex digits of the SHA-256.
pub(super) fn fingerprint(bytes: &[u8]) -> String {
    sha256(bytes)[..16].to_owned()
}
