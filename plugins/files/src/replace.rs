//! The one way in which a file is written: whole, and never half.
//!
//! The new content goes into a temporary file in the same folder, which then takes the place of the old one. WASI has
//! no file modes, so the file that takes its place has the host's usual ones, and a script would lose its executable
//! bit. A file that begins with `#!` is therefore written in place, once the temporary file holds the whole content.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::path::Path;

use astrarium_sdk::Error;

use crate::paths::Place;

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
/// In plain words; the file is then as it was.
pub fn replace(place: &Place, content: &[u8]) -> Result<Replaced, Error> {
    let explain = |error: io::Error| place.explain("write", &error);
    let folder = place.guest.parent().unwrap_or(&place.guest);
    fs::create_dir_all(folder).map_err(explain)?;
    // Random rather than counted: two calls may write the same file at the same time.
    let temporary = folder.join(format!(".astrarium-{:016x}.tmp", RandomState::new().hash_one(&place.shown)));
    let written = write_new(&temporary, content).and_then(|()| put(&temporary, &place.guest, content));
    if written.is_err() {
        // Nothing can be done when this fails too; the first error is the one that tells why.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(explain)
}

fn write_new(temporary: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    file.write_all(content)?;
    file.sync_all()
}

fn put(temporary: &Path, target: &Path, content: &[u8]) -> io::Result<Replaced> {
    let found = fs::metadata(target).ok();
    if found.is_some() && is_script(target) {
        let mut file = OpenOptions::new().write(true).truncate(true).open(target)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::remove_file(temporary)?;
    } else {
        fs::rename(temporary, target)?;
    }
    Ok(if found.is_some() { Replaced::Replaced } else { Replaced::Created })
}

fn is_script(path: &Path) -> bool {
    let mut head = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"#!"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Workspace;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
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
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/full")).unwrap();
        let place = Workspace::at(folder.path()).place("a").unwrap();
        assert!(replace(&place, b"one").is_err());
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_script_stays_executable() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = Workspace::at(folder.path()).place("run.sh").unwrap();
        replace(&place, b"#!/bin/sh\n").unwrap();
        fs::set_permissions(&place.guest, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(replace(&place, b"#!/bin/sh\necho\n"), Ok(Replaced::Replaced));
        assert_eq!(fs::metadata(&place.guest).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(names(folder.path()), ["run.sh"]);
    }
}
