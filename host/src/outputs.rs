//! Results that are too large to be read at once, kept as files in the folder of their session.
//!
//! One folder a session, under the home and for its user alone; guests that were granted `session` see it read-only as
//! `/session`, and no other session's. It says nothing of when a result is large. The folder is bounded: where a new result
//! does not fit beside the others, the oldest go.

use crate::digest::sha256;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What guests call the folder.
pub const GUEST: &str = "/session";

/// Characters of a call's id that go into a name. Vendors' ids have about thirty.
const NAME: usize = 48;

/// The files of one session.
#[derive(Debug)]
pub struct Outputs {
    folder: PathBuf,
    /// Bytes that all of them together may have.
    most: u64,
    /// Calls run side by side and share the room.
    writing: Mutex<()>,
}

/// A file that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name in the folder.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

impl Kept {
    /// The path that a guest opens.
    pub fn path(&self) -> String {
        format!("{GUEST}/{}", self.name)
    }
}

impl Outputs {
    /// Those in `folder`, which need not exist yet.
    pub fn new(folder: PathBuf, most: u64) -> Self {
        Self { folder, most, writing: Mutex::default() }
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps what the call `id` answered with; `kind` is the ending of the name. An error says why not.
    pub fn keep(&self, id: &str, kind: &str, bytes: &[u8]) -> Result<Kept, String> {
        let size = bytes.len() as u64;
        if size > self.most {
            return Err(format!(
                "it is larger than all that a session may keep ({} bytes; limits: kept_bytes)",
                self.most
            ));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: io::Error| format!("it cannot be kept in {}: {error}", self.folder.display());
        make_folder(&self.folder).map_err(failed)?;
        self.make_room(size).map_err(failed)?;
        let stem = stem(id);
        for count in 1.. {
            let name = if count == 1 { format!("{stem}.{kind}") } else { format!("{stem}-{count}.{kind}") };
            match write_new(&self.folder.join(&name), bytes) {
                Ok(()) => return Ok(Kept { name, bytes: size }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        unreachable!("one of the names is free")
    }

    /// Takes one away again.
    pub fn forget(&self, kept: &Kept) {
        let _ = fs::remove_file(self.folder.join(&kept.name));
    }

    /// All that are kept, oldest first.
    pub fn list(&self) -> io::Result<Vec<Kept>> {
        Ok(self.files()?.into_iter().map(|(_, kept)| kept).collect())
    }

    /// Removes the oldest until `size` more bytes fit.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let files = self.files()?;
        let mut total: u64 = files.iter().map(|(_, kept)| kept.bytes).sum();
        for (_, kept) in files {
            if total + size <= self.most {
                break;
            }
            fs::remove_file(self.folder.join(&kept.name))?;
            total -= kept.bytes;
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<(SystemTime, Kept)>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let (metadata, name) = (entry.metadata()?, entry.file_name());
            if let (true, Some(name)) = (metadata.is_file(), name.to_str()) {
                files.push((metadata.modified()?, Kept { name: name.to_owned(), bytes: metadata.len() }));
            }
        }
        files.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.name.cmp(&y.name)));
        Ok(files)
    }
}

/// A name that every file system takes and that no two ids share.
fn stem(id: &str) -> String {
    let plain: String =
        id.chars().take(NAME).map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    match plain == id && !id.starts_with('-') && !id.is_empty() {
        true => plain,
        false => format!("call-{}", &sha256(id.as_bytes())[..16]),
    }
}

/// Makes a folder for this user alone.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file that was not there before, for this user alone; nothing is left of one that fails.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_kept_under_its_calls_name_for_its_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(home.path().join("sessions/s"), 1_000);
        let kept = outputs.keep("toolu_01", "txt", b"all of it").unwrap();
        assert_eq!((kept.path().as_str(), kept.bytes), ("/session/toolu_01.txt", 9));
        assert_eq!(outputs.keep("toolu_01", "txt", b"again").unwrap().name, "toolu_01-2.txt");
        assert_eq!(fs::read(outputs.folder().join("toolu_01.txt")).unwrap(), b"all of it");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(outputs.folder()), mode(&outputs.folder().join("toolu_01.txt"))), (0o700, 0o600));
        }
        outputs.forget(&kept);
        assert_eq!(outputs.list().unwrap().len(), 1);
    }

    #[test]
    fn no_id_leaves_the_folder_and_no_two_share_a_name() {
        let ids = ["../../x", "a/b", "", "-rf", "a:b", "星", &"x".repeat(500), &format!("{}y", "x".repeat(500))];
        let names: std::collections::BTreeSet<String> = ids.iter().map(|id| stem(id)).collect();
        assert_eq!(names.len(), ids.len());
        assert!(names.iter().all(|name| name.starts_with("call-") && name.len() == 21), "{names:?}");
    }

    #[test]
    fn the_oldest_make_room_and_what_can_never_fit_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(home.path().join("s"), 100);
        for (at, id) in ["a", "b", "c"].iter().enumerate() {
            outputs.keep(id, "txt", &[b'x'; 40]).unwrap();
            let file = fs::File::options().append(true).open(outputs.folder().join(format!("{id}.txt")));
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at as u64 + 1);
            if let Ok(file) = file {
                file.set_modified(time).unwrap();
            }
        }
        let names: Vec<String> = outputs.list().unwrap().into_iter().map(|kept| kept.name).collect();
        assert_eq!(names, ["b.txt", "c.txt"]);
        let reason = outputs.keep("d", "txt", &[b'x'; 101]).unwrap_err();
        assert!(reason.contains("limits: kept_bytes"), "{reason}");
        assert_eq!(outputs.list().unwrap().len(), 2);
    }
}
