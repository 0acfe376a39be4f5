//! The one way in which a file is written: whole, and never half.
//!
//! The new content goes into a temporary file in the same folder, which is then renamed over the old one; until that,
//! the old one is not touched. The permission bits are the host's part, since WASI has none: at the rename it copies
//! the old file's onto the new one, and refuses to replace a file that nobody may write. Other hard links to the old
//! file keep the old content.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};

use astrarium_sdk::Error;

use crate::paths::{Place, cause};

/// Whether the file was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// It was not.
    Created,
    /// It was.
    Replaced,
}

/// Writes a file. Folders that are missing are made.
///
/// # Errors
///
/// In plain words; the file is then as it was, and the temporary one is gone.
pub fn replace(place: &Place, content: &[u8]) -> Result<Replaced, Error> {
    replace_with(place, |file| file.write_all(content))
}

/// [`replace`], with the content written by `fill`.
fn replace_with(place: &Place, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Replaced, Error> {
    let replaced = if place.guest.exists() { Replaced::Replaced } else { Replaced::Created };
    let folder = place.guest.parent().unwrap_or(&place.guest);
    fs::create_dir_all(folder).map_err(|error| unwritten(place, replaced, &error))?;
    // Random rather than counted: two calls may write the same file at the same time.
    let temporary = folder.join(format!(".astrarium-{:016x}.tmp", RandomState::new().hash_one(&place.shown)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .map_err(|error| unwritten(place, replaced, &error))?;
    let filled = fill(&mut file).and_then(|()| file.sync_all());
    // Some systems neither rename nor remove a file that is open.
    drop(file);
    let written = filled
        .map_err(|error| unwritten(place, replaced, &error))
        .and_then(|()| fs::rename(&temporary, &place.guest).map_err(|error| unplaced(place, replaced, &error)));
    if written.is_err() {
        // Nothing can be done when this fails too; the first error is the one that tells why.
        let _ = fs::remove_file(&temporary);
    }
    written.map(|()| replaced)
}

/// Why the content did not get onto the disk.
fn unwritten(place: &Place, replaced: Replaced, error: &io::Error) -> Error {
    if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::AlreadyExists | ErrorKind::NotADirectory) {
        return place.explain("write", error);
    }
    let left = match replaced {
        Replaced::Created => "no file was made",
        Replaced::Replaced => "the file is as it was",
    };
    // A failed write is no more than an "i/o error" in a guest, whatever the host knew, so the usual causes are named.
    Error::failed(format!(
        "could not write {}: {}; {left}; see whether the disk is full or read-only, or ask the user",
        place.shown,
        cause(error)
    ))
}

/// Why the temporary file did not take the place of the old one.
fn unplaced(place: &Place, replaced: Replaced, error: &io::Error) -> Error {
    // The folder let the temporary file in, so this is about the file. One that is kept from this plugin altogether
    // cannot be opened either, and is no matter of the user's permission bits.
    if error.kind() == ErrorKind::PermissionDenied && File::open(&place.guest).is_ok() {
        return Error::denied(format!("{} is read-only; ask the user to make it writable", place.shown));
    }
    unwritten(place, replaced, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Workspace;
    use std::path::Path;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// Writes a half, and then the disk is full.
    fn full(file: &mut File) -> io::Result<()> {
        file.write_all(b"ha")?;
        Err(ErrorKind::StorageFull.into())
    }

    #[test]
    fn a_file_is_created_then_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let place = Workspace::at(folder.path()).place("a/b.txt").unwrap();
        assert_eq!(replace(&place, b"one"), Ok(Replaced::Created));
        assert_eq!(replace(&place, b"two"), Ok(Replaced::Replaced));
        assert_eq!(fs::read(&place.guest).unwrap(), b"two");
        assert_eq!(names(&folder.path().join("a")), ["b.txt"]);
    }

    #[test]
    fn a_failed_rename_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/full")).unwrap();
        let place = Workspace::at(folder.path()).place("a").unwrap();
        assert!(replace(&place, b"one").is_err());
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_script_lost_its_content_on_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let place = Workspace::at(folder.path()).place("run.sh").unwrap();
        let new = replace_with(&place, full).unwrap_err().to_string();
        let ends = "; see whether the disk is full or read-only, or ask the user";
        assert_eq!(new, format!("could not write run.sh: no storage space; no file was made{ends}"));
        assert!(names(folder.path()).is_empty());
        replace(&place, b"#!/bin/sh\n").unwrap();
        let old = replace_with(&place, full).unwrap_err().to_string();
        assert_eq!(old, format!("could not write run.sh: no storage space; the file is as it was{ends}"));
        assert_eq!(fs::read(&place.guest).unwrap(), b"#!/bin/sh\n");
        assert_eq!(names(folder.path()), ["run.sh"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_script_is_replaced_by_a_new_file_and_never_opened_for_writing() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let place = Workspace::at(folder.path()).place("run.sh").unwrap();
        replace(&place, b"#!/bin/sh\n").unwrap();
        let old = File::open(&place.guest).unwrap();
        replace(&place, b"#!/bin/sh\necho\n").unwrap();
        assert_ne!(old.metadata().unwrap().ino(), fs::metadata(&place.guest).unwrap().ino());
        assert_eq!(io::read_to_string(old).unwrap(), "#!/bin/sh\n");
    }

    #[test]
    fn a_refused_rename_is_put_into_words() {
        let folder = tempfile::tempdir().unwrap();
        let place = Workspace::at(folder.path()).place("a.txt").unwrap();
        let words = || unplaced(&place, Replaced::Replaced, &ErrorKind::PermissionDenied.into()).to_string();
        assert!(words().starts_with("not allowed to write a.txt: "), "{}", words());
        fs::write(&place.guest, "x").unwrap();
        assert_eq!(words(), "a.txt is read-only; ask the user to make it writable");
    }
}
