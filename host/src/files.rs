//! Reading one regular file, whole and bounded. What is a folder, a pipe or a device is refused before it is opened, since
//! opening a pipe waits for its other end; what is too large is never read to its end.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

/// Why a file was not read. The path is the caller's to name.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// There is none.
    #[error("does not exist")]
    Missing,
    /// The system says no.
    #[error("cannot be read: {0}")]
    Failed(io::Error),
    /// A folder, a pipe, a device.
    #[error("is no regular file")]
    NotRegular,
    /// More bytes than whoever reads can use.
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
    /// Not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Unread::Missing,
            _ => Unread::Failed(error),
        }
    }
}

/// The bytes of a file that has at most `limit`, and what the system knows of it.
pub fn read(path: &Path, limit: u64) -> Result<(Vec<u8>, Metadata), Unread> {
    if !fs::metadata(path)?.is_file() {
        return Err(Unread::NotRegular);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Unread::TooLarge(limit));
    }
    Ok((bytes, metadata))
}

/// The text of a file that has at most `limit` bytes, without a byte order mark.
pub fn text(path: &Path, limit: u64) -> Result<String, Unread> {
    let text = String::from_utf8(read(path, limit)?.0).map_err(|_| Unread::NotText)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "\u{feff}four").unwrap();
        fs::write(at("latin"), b"caf\xe9").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let said = |name: &str, limit| text(&at(name), limit).unwrap_or_else(|error| error.to_string());
        assert_eq!(said("a", 7), "four");
        assert_eq!(said("a", 6), "is larger than 6 bytes");
        assert_eq!(said("latin", 9), "is not UTF-8 text");
        assert_eq!(said("fifo", 9), "is no regular file");
        assert_eq!(said("", 9), "is no regular file");
        assert_eq!(said("none", 9), "does not exist");
    }
}
