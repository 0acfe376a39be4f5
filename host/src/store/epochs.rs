//! Epochs and requests of a session: what stood in front, kept by its hash, and what each request cost and shared.

use super::{Store, StoreError, now, to_json};
use crate::digest::sha256;
use crate::transcript::Usage;
use rusqlite::{OptionalExtension as _, Row, params};
use serde::Serialize;

/// An epoch, as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRecord {
    /// Its number in the session, from 1.
    pub number: u64,
    /// When it began, RFC 3339.
    pub created: String,
    /// Why it began.
    pub reason: String,
    /// Stands for what it was rendered from.
    pub inputs: String,
    /// What stands in front of its requests, as JSON.
    pub prefix: String,
    /// What the model was told of since, as JSON.
    pub told: String,
}

/// One request to a model, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Its epoch.
    pub epoch: u64,
    /// Step of the turn.
    pub step: u32,
    /// When it was answered, RFC 3339.
    pub created: String,
    /// The model that answered.
    pub model: String,
    /// First message of the transcript that it held.
    pub first: u64,
    /// Messages from there on.
    pub messages: u64,
    /// Bytes in render order that it shares with the request before.
    pub shared_bytes: u64,
    /// All its bytes in render order.
    pub bytes: u64,
    /// Tokens, as the provider counted them.
    pub usage: Usage,
}

const REQUESTS: &str = "select number, epoch, step, created, model, first, messages, shared_bytes, bytes, usage
    from requests where session = ?1";

impl Store {
    /// Begins an epoch and answers with its number.
    pub fn begin_epoch(&self, session: &str, reason: &str, inputs: &str, prefix: &str) -> Result<u64, StoreError> {
        let hash = sha256(prefix.as_bytes());
        self.write(|db| {
            db.execute("insert or ignore into prefixes (hash, content) values (?1, ?2)", params![hash, prefix])?;
            let number: i64 =
                db.query_row("select coalesce(max(number), 0) + 1 from epochs where session = ?1", [session], |row| {
                    row.get(0)
                })?;
            db.execute(
                "insert into epochs (session, number, created, reason, inputs, prefix, told)
                 values (?1, ?2, ?3, ?4, ?5, ?6, '{}')",
                params![session, number, now(), reason, inputs, hash],
            )?;
            Ok(number as u64)
        })
    }

    /// The epoch that began last, or the one of this number.
    pub fn epoch(&self, session: &str, number: Option<u64>) -> Result<Option<EpochRecord>, StoreError> {
        self.read(|db| {
            db.query_row(
                "select number, created, reason, inputs, content, told from epochs join prefixes on hash = prefix
                 where session = ?1 and (?2 is null or number = ?2) order by number desc limit 1",
                params![session, number.map(|number| number as i64)],
                |row| {
                    Ok(EpochRecord {
                        number: row.get::<_, i64>(0)? as u64,
                        created: row.get(1)?,
                        reason: row.get(2)?,
                        inputs: row.get(3)?,
                        prefix: row.get(4)?,
                        told: row.get(5)?,
                    })
                },
            )
            .optional()
        })
    }

    /// Keeps what the model was told of in an epoch.
    pub fn set_told(&self, session: &str, epoch: u64, told: &str) -> Result<(), StoreError> {
        self.write(|db| {
            db.execute(
                "update epochs set told = ?3 where session = ?1 and number = ?2",
                params![session, epoch as i64, told],
            )?;
            Ok(())
        })
    }

    /// Appends to the ledger and answers with the number; the record's own number and time are filled in.
    pub fn record_request(&self, session: &str, request: &RequestRecord) -> Result<u64, StoreError> {
        let usage = to_json(&request.usage)?;
        self.write(|db| {
            let number: i64 = db.query_row(
                "select coalesce(max(number), 0) + 1 from requests where session = ?1",
                [session],
                |row| row.get(0),
            )?;
            db.execute(
                "insert into requests
                 (session, number, epoch, step, created, model, first, messages, shared_bytes, bytes, usage)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    session,
                    number,
                    request.epoch as i64,
                    request.step,
                    now(),
                    request.model,
                    request.first as i64,
                    request.messages as i64,
                    request.shared_bytes as i64,
                    request.bytes as i64,
                    usage
                ],
            )?;
            Ok(number as u64)
        })
    }

    /// The ledger of a session, in order.
    pub fn requests(&self, session: &str) -> Result<Vec<RequestRecord>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare(&format!("{REQUESTS} order by number"))?;
            statement.query_map([session], read_request)?.collect()
        })
    }

    /// The last request of a session.
    pub fn last_request(&self, session: &str) -> Result<Option<RequestRecord>, StoreError> {
        self.read(|db| {
            db.query_row(&format!("{REQUESTS} order by number desc limit 1"), [session], read_request).optional()
        })
    }

    /// How often each tool was called on this home.
    pub fn tool_uses(&self) -> Result<std::collections::BTreeMap<String, u64>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare("select tool, count(*) from calls group by tool")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?.collect()
        })
    }
}

fn read_request(row: &Row<'_>) -> rusqlite::Result<RequestRecord> {
    let usage: String = row.get(9)?;
    Ok(RequestRecord {
        number: row.get::<_, i64>(0)? as u64,
        epoch: row.get::<_, i64>(1)? as u64,
        step: row.get(2)?,
        created: row.get(3)?,
        model: row.get(4)?,
        first: row.get::<_, i64>(5)? as u64,
        messages: row.get::<_, i64>(6)? as u64,
        shared_bytes: row.get::<_, i64>(7)? as u64,
        bytes: row.get::<_, i64>(8)? as u64,
        // Figures that do not read are no reason to refuse the rest.
        usage: serde_json::from_str(&usage).unwrap_or_default(),
    })
}
