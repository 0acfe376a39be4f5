//! A session as a file of JSON Lines: every row, every kept result, and a last line that seals them.
//!
//! It loses nothing: what is imported is the session that was exported, row by row. It takes in all of a file or nothing of
//! it, and names the line that is damaged. Forking copies a session inside one home. Who may ask for it is not decided here.

use crate::digest::hex;
use crate::outputs::{self, Outputs};
use crate::store::{Row, Store, StoreError, new_session_id, schema_version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, BufRead, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The format that is written, and the newest that is read.
const VERSION: u32 = 1;
/// Bytes of a kept result on one line.
const PIECE: usize = 256 << 10;
/// Bytes of a line that is read; a message with pictures has a few million.
const LONGEST: u64 = 512 << 20;

/// Why a session did not travel. Each says where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A newer Astrarium wrote the file.
    #[error(
        "it was written by a newer Astrarium ({what} {found}, and this one knows up to {known}); import it with that one"
    )]
    Newer {
        /// What is newer: the format or the schema.
        what: &'static str,
        /// Its number.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// A line does not read, or is missing.
    #[error("line {line}: {reason}; export the session again")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The session is there already.
    #[error("session {0} is in this home already; import it as another one with --copy, or remove that one first")]
    Exists(String),
    /// A place where a session cannot branch.
    #[error("session {id} cannot branch after message {at}: {reason}")]
    Torn {
        /// The session.
        id: String,
        /// Messages that were to be kept.
        at: u64,
        /// Why not, and where it can.
        reason: String,
    },
    /// A file does not read or cannot be written.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Head(Head),
    Row(Row),
    Piece { file: String, modified_ms: u64, last: bool, base64: String },
    End { end: Seal },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    astrarium_session: u32,
    schema: i64,
    session: String,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Seal {
    /// Lines before this one.
    lines: u64,
    /// Of all their bytes.
    sha256: String,
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Travelled {
    /// The session's id here.
    pub id: String,
    /// Its rows.
    pub rows: u64,
    /// Its kept results.
    pub files: u64,
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ArchiveError {
    |error| ArchiveError::Io { what: what.into(), error }
}

/// Writes the session `id` to `out`.
pub fn export(store: &Store, outputs: &Outputs, id: &str, out: &mut dyn Write) -> Result<Travelled, ArchiveError> {
    let mut out = Sealing { out, lines: 0, hash: Sha256::new() };
    let head = Head { astrarium_session: VERSION, schema: schema_version(), session: id.to_owned() };
    out.line(&Line::Head(head))?;
    let mut done = Travelled { id: id.to_owned(), rows: 0, files: 0 };
    // A session that would not be taken in again is not let out as if it were whole.
    store.messages(id)?;
    for row in store.session_rows(id)? {
        out.line(&Line::Row(row))?;
        done.rows += 1;
    }
    for kept in outputs.list().map_err(failed("the kept results do not read"))? {
        let path = outputs.folder().join(&kept.name);
        let reading = || format!("{} does not read", path.display());
        let file = fs::File::open(&path).map_err(failed(reading()))?;
        let modified = file.metadata().and_then(|metadata| metadata.modified()).map_err(failed(reading()))?;
        let modified_ms = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            (&file).take(PIECE as u64).read_to_end(&mut piece).map_err(failed(reading()))?;
            let last = piece.len() < PIECE;
            out.line(&Line::Piece { file: kept.name.clone(), modified_ms, last, base64: BASE64.encode(&piece) })?;
            if last {
                break;
            }
        }
        done.files += 1;
    }
    let end = Seal { lines: out.lines, sha256: hex(&out.hash.clone().finalize()) };
    out.line(&Line::End { end })?;
    out.out.flush().map_err(failed("the file cannot be written"))?;
    Ok(done)
}

/// Writes lines and counts what they are sealed by.
struct Sealing<'a> {
    out: &'a mut dyn Write,
    lines: u64,
    hash: Sha256,
}

impl Sealing<'_> {
    fn line(&mut self, line: &Line) -> Result<(), ArchiveError> {
        let mut text = serde_json::to_vec(line).map_err(|error| failed("a row cannot be written")(error.into()))?;
        text.push(b'\n');
        self.hash.update(&text);
        self.lines += 1;
        self.out.write_all(&text).map_err(failed("the file cannot be written"))
    }
}

/// Takes in a file: its session under its own id or, as a copy, under a new one. `folder` says where a session's files are.
pub fn import(
    store: &Store,
    folder: &dyn Fn(&str) -> PathBuf,
    input: &mut dyn BufRead,
    copy: bool,
) -> Result<Travelled, ArchiveError> {
    let mut lines = Lines { input, read: 0, hash: Sha256::new(), sealed: String::new() };
    let head = match lines.next()? {
        Some(Line::Head(head)) => head,
        _ => return Err(lines.refuse("this is no exported session")),
    };
    let newer = |what, found, known| ArchiveError::Newer { what, found, known };
    if head.astrarium_session > VERSION {
        return Err(newer("format", head.astrarium_session.into(), VERSION.into()));
    }
    if head.schema > schema_version() {
        return Err(newer("schema", head.schema, schema_version()));
    }
    if !is_id(&head.session) {
        return Err(lines.refuse("the session has no id that could be one"));
    }
    let id = if copy { new_session_id() } else { head.session.clone() };
    if !matches!(store.session(&id), Err(StoreError::NoSession(_))) {
        return Err(ArchiveError::Exists(id));
    }
    let target = folder(&id);
    let staging = Staging::new(target.with_extension("new"))?;
    let mut done = Travelled { id: id.clone(), rows: 0, files: 0 };
    let mut why = None;
    let mut step = || -> Result<Option<(u64, Row)>, ArchiveError> {
        loop {
            match lines.next()? {
                Some(Line::Row(row)) => {
                    let first = done.rows == 0;
                    let own = row.row.get("id").and_then(|id| id.as_str()) == Some(&head.session);
                    if first && !(row.table == "sessions" && own) || !first && row.table == "sessions" {
                        return Err(lines.refuse("the session's own row stands in another place"));
                    }
                    done.rows += 1;
                    return Ok(Some((lines.read, row)));
                }
                Some(Line::Piece { file, modified_ms, last, base64 }) => {
                    let bytes =
                        BASE64.decode(base64).map_err(|_| lines.refuse("a piece of a kept result is damaged"))?;
                    if !is_file_name(&file) {
                        return Err(lines.refuse("a kept result has no name that could be one"));
                    }
                    staging.add(&file, &bytes, last.then_some(modified_ms))?;
                    done.files += u64::from(last);
                }
                Some(Line::End { end }) => {
                    let sealed = Seal { lines: lines.read - 1, sha256: lines.sealed.clone() };
                    if end != sealed {
                        return Err(lines.refuse("a line before this one was changed or left out"));
                    }
                    return match (lines.next()?, done.rows) {
                        (Some(_), _) => Err(lines.refuse("something follows the last line")),
                        (None, 0) => Err(lines.refuse("there is no session in it")),
                        (None, _) => Ok(None),
                    };
                }
                Some(Line::Head(_)) => return Err(lines.refuse("a second session begins")),
                None => return Err(lines.refuse("the file ends before its last line")),
            }
        }
    };
    let kept = |error: ArchiveError, why: &mut Option<ArchiveError>| {
        *why = Some(error);
        StoreError::Invalid(String::new())
    };
    let mut why_last = None;
    let taken = store.insert_session(
        &id,
        || step().map_err(|error| kept(error, &mut why)),
        || staging.take_place(&target).map_err(|error| kept(error, &mut why_last)),
    );
    match (taken, why.or(why_last)) {
        (Ok(()), _) => Ok(done),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(error.into()),
    }
}

/// Lines as they are read, with what seals those before.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    read: u64,
    hash: Sha256,
    /// The hash of all lines before the one that was read last.
    sealed: String,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<Line>, ArchiveError> {
        let mut text = Vec::new();
        (&mut *self.input).take(LONGEST).read_until(b'\n', &mut text).map_err(failed("the file does not read"))?;
        self.read += 1;
        if text.is_empty() {
            return Ok(None);
        }
        self.sealed = hex(&self.hash.clone().finalize());
        self.hash.update(&text);
        if text.pop() != Some(b'\n') {
            return Err(self.refuse("it breaks off in the middle"));
        }
        serde_json::from_slice(&text).map(Some).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => self.refuse("it is no line of an exported session"),
            _ => self.refuse(&format!("it is no JSON ({error})")),
        })
    }

    fn refuse(&self, reason: &str) -> ArchiveError {
        ArchiveError::Line { line: self.read, reason: reason.to_owned() }
    }
}

/// Whether a text can be the id of a session, and the name of its folder.
fn is_id(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

fn is_file_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=120).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(plain)
}

/// Files that wait for their session to be taken in. They go when it is not.
struct Staging(PathBuf);

impl Staging {
    fn new(folder: PathBuf) -> Result<Self, ArchiveError> {
        let _ = fs::remove_dir_all(&folder);
        Ok(Self(folder))
    }

    fn add(&self, name: &str, bytes: &[u8], modified_ms: Option<u64>) -> Result<(), ArchiveError> {
        let path = self.0.join(name);
        let add = || -> io::Result<()> {
            outputs::make_folder(&self.0)?;
            match path.exists() {
                false => outputs::write_new(&path, bytes)?,
                true => fs::File::options().append(true).open(&path)?.write_all(bytes)?,
            }
            match modified_ms {
                Some(ms) => {
                    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
                    fs::File::options().append(true).open(&path)?.set_modified(time)
                }
                None => Ok(()),
            }
        };
        add().map_err(failed(format!("{} cannot be written", path.display())))
    }

    /// Puts them where the session will look for them. What lay there belonged to no session.
    fn take_place(&self, target: &Path) -> Result<(), ArchiveError> {
        let _ = fs::remove_dir_all(target);
        match self.0.exists() {
            true => fs::rename(&self.0, target).map_err(failed(format!("{} cannot be made", target.display()))),
            false => Ok(()),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Begins a session that is `id` with its first `at` messages, or with all of them; answers with its id.
pub fn fork(
    store: &Store,
    folder: &dyn Fn(&str) -> PathBuf,
    id: &str,
    at: Option<u64>,
) -> Result<String, ArchiveError> {
    let count = store.session(id)?.messages;
    let at = at.unwrap_or(count);
    let whole = store.whole_places(id)?;
    if whole.binary_search(&at).is_err() {
        let next = whole.partition_point(|place| *place < at);
        let near = whole[..next].last().into_iter().chain(whole.get(next));
        let near = near.map(u64::to_string).collect::<Vec<_>>().join(" and ");
        let reason = match at {
            at if at > count => format!("it has {count}"),
            _ if near.is_empty() => "it has none".to_owned(),
            _ => format!("a call and its result, or a compaction, would be torn; it can after {near}"),
        };
        return Err(ArchiveError::Torn { id: id.to_owned(), at, reason });
    }
    let new = new_session_id();
    let (old_folder, new_folder) = (folder(id), folder(&new));
    let staging = Staging::new(new_folder.with_extension("new"))?;
    let outputs = Outputs::new(old_folder, u64::MAX);
    for kept in outputs.list().map_err(failed("the kept results do not read"))? {
        let (from, to) = (outputs.folder().join(&kept.name), staging.0.join(&kept.name));
        // A kept result is never written to again, so both sessions may have the one file.
        let copied = outputs::make_folder(&staging.0)
            .and_then(|()| fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)));
        copied.map_err(failed(format!("{} cannot be copied", from.display())))?;
    }
    let mut why = None;
    let forked = store.fork_session(id, &new, at, || {
        staging.take_place(&new_folder).map_err(|error| {
            why = Some(error);
            StoreError::Invalid(String::new())
        })
    });
    match (forked, why) {
        (Ok(()), _) => Ok(new),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(error.into()),
    }
}
