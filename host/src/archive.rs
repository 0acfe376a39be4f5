//! A session as a file of JSON Lines: every row, every kept result, and a last line that seals them.
//!
//! It loses nothing: what is imported is the session that was exported, row by row, with those of the agents that worked for
//! it. It takes in all of a file or nothing of it, and names the line that is damaged. Forking copies a session inside one
//! home. Who may ask for it is not decided here.

use crate::digest::hex;
use crate::outputs::Outputs;
use crate::store::{Row, Store, StoreError, new_session_id, schema_version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use staging::Staging;
use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;
use std::time::SystemTime;

mod staging;

/// The format that is written, and the newest that is read. From 2 on agents go with the session that they worked for.
const VERSION: u32 = 2;
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
    Piece(Piece),
    End { end: Seal },
}

/// A piece of a kept result.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    /// Whose it is, where that is an agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    file: String,
    modified_ms: u64,
    last: bool,
    base64: String,
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
    /// Agents that worked for it, and for them.
    pub agents: u64,
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ArchiveError {
    |error| ArchiveError::Io { what: what.into(), error }
}

/// Writes the session `id` to `out`, with the agents that worked for it. `folder` says where a session's files are.
pub fn export(
    store: &Store,
    folder: &dyn Fn(&str) -> PathBuf,
    id: &str,
    out: &mut dyn Write,
) -> Result<Travelled, ArchiveError> {
    let mut out = Sealing { out, lines: 0, hash: Sha256::new() };
    let head = Head { astrarium_session: VERSION, schema: schema_version(), session: id.to_owned() };
    out.line(&Line::Head(head))?;
    let mut done = Travelled { id: id.to_owned(), rows: 0, files: 0, agents: 0 };
    let rows = store.session_rows(id)?;
    let names = |row: &Row| (row.table == "sessions").then(|| row.row.get("id")?.as_str().map(str::to_owned)).flatten();
    let sessions: Vec<String> = rows.iter().filter_map(names).collect();
    for session in &sessions {
        // A session that would not be taken in again is not let out as if it were whole.
        store.messages(session)?;
    }
    for row in rows {
        out.line(&Line::Row(row))?;
        done.rows += 1;
    }
    for session in &sessions {
        done.agents += u64::from(session != id);
        done.files +=
            export_files(&Outputs::new(folder(session), u64::MAX), (session != id).then_some(session), &mut out)?;
    }
    let end = Seal { lines: out.lines, sha256: hex(&out.hash.clone().finalize()) };
    out.line(&Line::End { end })?;
    out.out.flush().map_err(failed("the file cannot be written"))?;
    Ok(done)
}

/// Writes the kept results of a session in pieces; answers with how many there are.
fn export_files(outputs: &Outputs, session: Option<&String>, out: &mut Sealing<'_>) -> Result<u64, ArchiveError> {
    let mut files = 0;
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
            let (session, file, base64) = (session.cloned(), kept.name.clone(), BASE64.encode(&piece));
            out.line(&Line::Piece(Piece { session, file, modified_ms, last, base64 }))?;
            if last {
                break;
            }
        }
        files += 1;
    }
    Ok(files)
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
    let staging = Staging::new(folder(&id).with_extension("new"))?;
    let mut done = Travelled { id: id.clone(), rows: 0, files: 0, agents: 0 };
    let mut why = None;
    let mut step = || -> Result<Option<(u64, Row)>, ArchiveError> {
        loop {
            match lines.next()? {
                Some(Line::Row(row)) => {
                    if row.table == "sessions" || done.rows == 0 {
                        let whose = row.row.get("id").and_then(|id| id.as_str()).unwrap_or_default();
                        let own = whose == head.session;
                        if row.table != "sessions" || own != (done.rows == 0) || !is_id(whose) {
                            return Err(lines.refuse("the session's own row stands in another place"));
                        }
                        done.agents += u64::from(!own);
                    }
                    done.rows += 1;
                    return Ok(Some((lines.read, row)));
                }
                Some(Line::Piece(Piece { session, file, modified_ms, last, base64 })) => {
                    let bytes =
                        BASE64.decode(base64).map_err(|_| lines.refuse("a piece of a kept result is damaged"))?;
                    let session = session.as_deref().unwrap_or(&head.session);
                    if !staging::is_file_name(&file) || !is_id(session) {
                        return Err(lines.refuse("a kept result has no name that could be one"));
                    }
                    staging.add(session, &file, &bytes, last.then_some(modified_ms))?;
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
        copy,
        || step().map_err(|error| kept(error, &mut why)),
        |ids| staging.take_place(ids, folder).map_err(|error| kept(error, &mut why_last)),
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
    let staging = Staging::new(folder(&new).with_extension("new"))?;
    let outputs = Outputs::new(folder(id), u64::MAX);
    for kept in outputs.list().map_err(failed("the kept results do not read"))? {
        staging.share(id, &outputs.folder().join(&kept.name), &kept.name)?;
    }
    let ids = HashMap::from([(id.to_owned(), new.clone())]);
    let mut why = None;
    let forked = store.fork_session(id, &new, at, || {
        staging.take_place(&ids, folder).map_err(|error| {
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
