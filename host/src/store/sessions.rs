//! Sessions and their messages.

use super::{Store, StoreError, now, to_json};
use crate::transcript::{Message, Usage};
use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use serde::Serialize;

/// A session, as listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Its id, ordered by time.
    pub id: String,
    /// When it began, RFC 3339.
    pub created: String,
    /// When it was last written to, RFC 3339.
    pub updated: String,
    /// The model that answered last.
    pub model: String,
    /// Where it works.
    pub workspace: String,
    /// The first question, cut.
    pub title: String,
    /// How many messages it has.
    pub messages: u64,
}

/// What a session begins with.
pub struct NewSession<'a> {
    /// The model, as `wire:name`.
    pub model: &'a str,
    /// Where it works.
    pub workspace: &'a str,
    /// The first question; cut to a line.
    pub title: &'a str,
}

/// Characters of a title: what fits beside the id on a terminal line.
const TITLE: usize = 60;

const COLUMNS: &str = "select id, created, updated, model, workspace, title,
    (select count(*) from messages where session = id) from sessions";

/// What is a person's own session.
const OWN: &str = "not exists (select 1 from agents where agents.session = sessions.id)";

impl Store {
    /// Begins a session and answers with its id.
    pub fn create_session(&self, new: &NewSession<'_>) -> Result<String, StoreError> {
        self.write(|db| Ok(insert(db, new)?))
    }

    /// The session of this id, or of the only one that begins so.
    pub fn session(&self, id: &str) -> Result<Session, StoreError> {
        let found = self.read(|db| {
            let mut statement = db.prepare(&format!("{COLUMNS} where substr(id, 1, length(?1)) = ?1 limit 2"))?;
            statement.query_map([id], read_session)?.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        match <[Session; 1]>::try_from(found) {
            Ok([session]) if !id.is_empty() => Ok(session),
            Err(found) if found.len() > 1 && !id.is_empty() => {
                Err(StoreError::Invalid(format!("more than one session begins with {id}; give more of its id")))
            }
            _ => Err(StoreError::NoSession(id.to_owned())),
        }
    }

    /// The session of this workspace that was written to last; those of agents that worked for another one are passed over.
    pub fn latest_session(&self, workspace: &str) -> Result<Option<Session>, StoreError> {
        self.read(|db| {
            db.query_row(
                &format!("{COLUMNS} where workspace = ?1 and {OWN} order by updated desc, id desc limit 1"),
                [workspace],
                read_session,
            )
            .optional()
        })
    }

    /// All sessions, last written first, without those of agents that worked for another one.
    pub fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare(&format!("{COLUMNS} where {OWN} order by updated desc, id desc"))?;
            statement.query_map([], read_session)?.collect()
        })
    }

    /// Notes which model answers from now on.
    pub fn set_model(&self, session: &str, model: &str) -> Result<(), StoreError> {
        self.write(|db| {
            db.execute("update sessions set model = ?2 where id = ?1", params![session, model])?;
            Ok(())
        })
    }

    /// Appends a message and answers with its place, from 0.
    pub fn append(&self, session: &str, message: &Message, usage: Option<Usage>) -> Result<u64, StoreError> {
        let text = to_json(message)?;
        let usage = usage.map(|usage| to_json(&usage)).transpose()?;
        let now = now();
        self.write(|db| {
            let seq: i64 =
                db.query_row("select coalesce(max(seq) + 1, 0) from messages where session = ?1", [session], |row| {
                    row.get(0)
                })?;
            db.execute(
                "insert into messages (session, seq, created, message, usage) values (?1, ?2, ?3, ?4, ?5)",
                params![session, seq, now, text, usage],
            )?;
            db.execute("update sessions set updated = ?2 where id = ?1", params![session, now])?;
            Ok(seq as u64)
        })
    }

    /// The transcript, in order.
    pub fn messages(&self, session: &str) -> Result<Vec<Message>, StoreError> {
        let texts: Vec<String> = self.read(|db| {
            let mut statement = db.prepare("select message from messages where session = ?1 order by seq")?;
            statement.query_map([session], |row| row.get(0))?.collect()
        })?;
        let parsed = texts.iter().enumerate().map(|(seq, text)| {
            serde_json::from_str(text).map_err(|error| StoreError::Failed {
                path: self.path.display().to_string(),
                reason: format!(
                    "message {seq} of session {session} does not read ({error}), so something else has written there; put a \
                     copy of the database in its place, or begin another session"
                ),
            })
        });
        parsed.collect()
    }

    /// What all answers of a session cost.
    pub fn usage(&self, session: &str) -> Result<Usage, StoreError> {
        let texts: Vec<String> = self.read(|db| {
            let mut statement = db.prepare("select usage from messages where session = ?1 and usage is not null")?;
            statement.query_map([session], |row| row.get(0))?.collect()
        })?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).fold(Usage::default(), Usage::plus))
    }
}

/// Puts a session there.
pub(super) fn insert(db: &Transaction<'_>, new: &NewSession<'_>) -> rusqlite::Result<String> {
    let id = new_session_id();
    let title: String = new.title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE).collect();
    db.execute(
        "insert into sessions (id, created, updated, model, workspace, title) values (?1, ?2, ?2, ?3, ?4, ?5)",
        params![id, now(), new.model, new.workspace, title],
    )?;
    Ok(id)
}

/// An id that no session has had, ordered by time.
pub fn new_session_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

fn read_session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        created: row.get(1)?,
        updated: row.get(2)?,
        model: row.get(3)?,
        workspace: row.get(4)?,
        title: row.get(5)?,
        messages: row.get::<_, i64>(6)? as u64,
    })
}
