//! Files as the steps need them: written in one move and only when they change, and folders mirrored.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;

/// Reads a file.
pub fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// Reads a text file.
pub fn read_text(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// Creates a folder with all that it lies in.
pub fn create_folder(path: &Path) -> Outcome<()> {
    fs::create_dir_all(path).map_err(|error| format!("{} cannot be created: {error}", path.display()))
}

/// Writes a file by a rename, and only when its bytes change: a running host watches these folders.
pub fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let folder = path.parent().ok_or_else(|| format!("{} lies in no folder", path.display()))?;
    create_folder(folder)?;
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(name);
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Removes a file or a folder with all that it holds; what is not there counts as removed.
pub fn remove(path: &Path) -> Outcome<()> {
    let removed = match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(|error| format!("{} cannot be removed: {error}", path.display()))
}

/// What a folder holds, in order of name; nothing where there is no such folder.
pub fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<BTreeSet<_>>>();
    let found = read().map_err(|error| format!("{} cannot be listed: {error}", folder.display()))?;
    Ok(found.into_iter().collect())
}

/// Makes `to` hold what `from` holds, and nothing else; where `from` is missing, so is `to` afterwards.
pub fn mirror(from: &Path, to: &Path) -> Outcome<()> {
    if !from.is_dir() {
        return remove(to);
    }
    create_folder(to)?;
    let sources = entries(from)?;
    keep_only(to, sources.iter().filter_map(|path| path.file_name()))?;
    for source in &sources {
        let copy = to.join(source.file_name().unwrap_or_default());
        if source.is_dir() {
            if !copy.is_dir() {
                remove(&copy)?;
            }
            mirror(source, &copy)?;
        } else {
            if copy.is_dir() {
                remove(&copy)?;
            }
            write(&copy, &read(source)?)?;
        }
    }
    Ok(())
}

/// Removes from a folder all that is not named.
pub fn keep_only<'a>(folder: &Path, names: impl Iterator<Item = &'a std::ffi::OsStr>) -> Outcome<()> {
    let names: BTreeSet<_> = names.collect();
    for path in entries(folder)? {
        if !names.contains(path.file_name().unwrap_or_default()) {
            remove(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_holds_what_its_source_holds_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("xtask-mirror-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        write(&from.join("kept/a.txt"), b"a").unwrap();
        write(&from.join("was-folder"), b"file").unwrap();
        write(&to.join("stale.txt"), b"old").unwrap();
        write(&to.join("was-folder/inner"), b"old").unwrap();
        mirror(&from, &to).unwrap();
        let names =
            |path: &Path| entries(path).unwrap().iter().map(|p| p.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&to), ["kept", "was-folder"]);
        assert_eq!(read(&to.join("kept/a.txt")).unwrap(), b"a");
        remove(&from).unwrap();
        mirror(&from, &to).unwrap();
        assert!(!to.exists());
        remove(&folder).unwrap();
    }
}
