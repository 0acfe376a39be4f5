//! The door to SQLite: sessions, their append-only transcript, calls with intent and outcome, tasks, kv and the audit.
//!
//! The only place that speaks SQL. Every write is one transaction that has ended when the function returns, so the next
//! act happens only after the last one is on record. Messages are appended and never changed or removed.

mod agents;
mod audit;
mod calls;
mod compactions;
mod epochs;
mod fault;
mod kv;
mod portable;
mod schema;
mod sessions;
mod skills;
mod tasks;

pub use agents::{AgentRecord, NewAgent};
pub use audit::{Audit, AuditFilter, AuditHead, AuditRow, Verified, recorded};
pub use calls::CallRecord;
pub use compactions::CompactionRecord;
pub use epochs::{EpochRecord, RequestRecord};
pub use kv::{KvScope, Quota};
pub use portable::{Row, schema_version};
pub use sessions::{NewSession, Session, new_session_id};
pub use skills::SkillUse;
pub use tasks::{Task, TaskStatus, check_tasks};

use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The store. Cheap to share behind an `Arc`; one connection, one writer at a time in this process.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
}

/// What can go wrong between us and the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not open.
    #[error("cannot open the database {path}: {reason}")]
    Open {
        /// Where it is.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A newer Astrarium wrote it.
    #[error(
        "the database {path} has schema {found}, and this Astrarium knows up to {known}; use the newer Astrarium that \
         wrote it, or another home with --home"
    )]
    Newer {
        /// Where it is.
        path: String,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// A statement failed: a full disk, a lock held for too long, a damaged file.
    #[error("the database {path} failed: {reason}")]
    Failed {
        /// Where it is.
        path: String,
        /// Why.
        reason: String,
    },
    /// No such session.
    #[error("no session {0}; `astrarium session list` shows those of this home")]
    NoSession(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Over a quota.
    #[error("{0}")]
    Quota(String),
}

impl Store {
    /// Opens or makes the database, and brings an older schema up to date.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let shown = path.display().to_string();
        let failed = |error: rusqlite::Error| StoreError::Open { path: shown.clone(), reason: fault::told(&error) };
        if emptied(path) {
            let reason = "it is empty, though sessions were kept in it: put a copy from before in its place, or remove it to \
                          begin anew";
            return Err(StoreError::Open { path: shown, reason: reason.into() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
        // With WAL, `normal` loses nothing when the process dies; a power cut may cost the last transactions, never
        // the file.
        connection
            .execute_batch("pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on;")
            .map_err(failed)?;
        schema::bring_up(&mut connection, &shown)?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether SQLite finds the file whole; a line for `doctor`.
    pub fn check(&self) -> Result<String, StoreError> {
        self.read(|connection| connection.query_row("pragma quick_check", [], |row| row.get(0)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction rolled it back when its guard was dropped, so the connection is whole.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        body(&self.lock()).map_err(|error| self.failed(error))
    }

    /// Runs `body` in a transaction that begins as a writer, so that two processes wait for each other rather than fail.
    fn write<T>(
        &self,
        body: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, WriteError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.lock();
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).map_err(|error| self.failed(error))?;
        let value = body(&transaction).map_err(|error| match error {
            WriteError::Sql(error) => self.failed(error),
            WriteError::Ours(error) => error,
        })?;
        transaction.commit().map_err(|error| self.failed(error))?;
        Ok(value)
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Failed { path: self.path.display().to_string(), reason: fault::told(&error) }
    }
}

/// Whether a database has lost all it held: SQLite would take the empty file for a new one. The locks beside it are those of
/// sessions that it knew.
fn emptied(path: &Path) -> bool {
    let empty = path.metadata().is_ok_and(|metadata| metadata.len() == 0);
    let locks = || path.parent()?.join("locks").read_dir().ok()?.next();
    empty && locks().is_some()
}

/// Why a transaction was given up.
enum WriteError {
    Sql(rusqlite::Error),
    Ours(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        WriteError::Sql(error)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        WriteError::Ours(error)
    }
}

/// Now, in UTC, as stored: RFC 3339 with milliseconds.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Invalid(format!("cannot be stored as JSON: {error}")))
}
