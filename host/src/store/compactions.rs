//! Compactions of a session: what each one put at the end of the transcript, or why it changed nothing.
//!
//! One that helped is on record in the same transaction as its messages, so that a process that is killed leaves all of it
//! or nothing. The conversation that the model sees begins at the last one's first message.

use super::{Store, StoreError, now, to_json};
use crate::compact::{Layer, Trigger};
use crate::transcript::{Message, Usage};
use rusqlite::params;
use serde::Serialize;

/// A compaction that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompactionRecord {
    /// Its number in the session, from 1.
    pub number: u64,
    /// When it ended, RFC 3339.
    pub created: String,
    /// What started it.
    pub trigger: Trigger,
    /// What it did; none when it failed and changed nothing.
    pub layer: Option<Layer>,
    /// First message of the conversation after it.
    pub first: u64,
    /// Messages of the conversation after it.
    pub messages: u64,
    /// Messages of the conversation before it.
    pub messages_before: u64,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: Option<u64>,
    /// The window that it was made for, in tokens.
    pub window: u64,
    /// The model of that window.
    pub model: String,
    /// Why it failed.
    pub reason: Option<String>,
}

impl Store {
    /// Puts a compaction on record, and at the end of the transcript the `messages` that it made, the first of them with the
    /// `usage` of its summary; number, time, `first` and `messages` are filled in.
    pub fn record_compaction(
        &self,
        session: &str,
        record: CompactionRecord,
        messages: &[Message],
        usage: Option<Usage>,
    ) -> Result<CompactionRecord, StoreError> {
        let texts = messages.iter().map(to_json).collect::<Result<Vec<_>, _>>()?;
        let usage = usage.map(|usage| to_json(&usage)).transpose()?;
        let now = now();
        self.write(|db| {
            let one = |sql: &str| db.query_row(sql, [session], |row| row.get::<_, i64>(0));
            let number = one("select coalesce(max(number), 0) + 1 from compactions where session = ?1")?;
            let first = one("select coalesce(max(seq) + 1, 0) from messages where session = ?1")?;
            for (at, text) in texts.iter().enumerate() {
                db.execute(
                    "insert into messages (session, seq, created, message, usage) values (?1, ?2, ?3, ?4, ?5)",
                    params![session, first + at as i64, now, text, usage.as_ref().filter(|_| at == 0)],
                )?;
            }
            let record = CompactionRecord {
                number: number as u64,
                created: now.clone(),
                first: first as u64,
                messages: texts.len() as u64,
                ..record
            };
            db.execute(
                "insert into compactions (session, number, created, cause, layer, first, messages, messages_before,
                 tokens_before, tokens_after, window_tokens, model, reason)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                params![
                    session,
                    number,
                    record.created,
                    record.trigger.as_str(),
                    record.layer.map(Layer::as_str),
                    record.first as i64,
                    record.messages as i64,
                    record.messages_before as i64,
                    record.tokens_before as i64,
                    record.tokens_after.map(|tokens| tokens as i64),
                    record.window as i64,
                    record.model,
                    record.reason,
                ],
            )?;
            db.execute("update sessions set updated = ?2 where id = ?1", params![session, now])?;
            Ok(record)
        })
    }

    /// The compactions of a session, in order.
    pub fn compactions(&self, session: &str) -> Result<Vec<CompactionRecord>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare(
                "select number, created, cause, layer, first, messages, messages_before, tokens_before, tokens_after,
                 window_tokens, model, reason from compactions where session = ?1 order by number",
            )?;
            let rows = statement.query_map([session], |row| {
                let (cause, layer): (String, Option<String>) = (row.get(2)?, row.get(3)?);
                Ok(CompactionRecord {
                    number: row.get::<_, i64>(0)? as u64,
                    created: row.get(1)?,
                    // A word of a later version is shown as the nearest that there is.
                    trigger: word(&cause).unwrap_or(Trigger::Auto),
                    layer: layer.map(|layer| word(&layer).unwrap_or(Layer::Summary)),
                    first: row.get::<_, i64>(4)? as u64,
                    messages: row.get::<_, i64>(5)? as u64,
                    messages_before: row.get::<_, i64>(6)? as u64,
                    tokens_before: row.get::<_, i64>(7)? as u64,
                    tokens_after: row.get::<_, Option<i64>>(8)?.map(|tokens| tokens as u64),
                    window: row.get::<_, i64>(9)? as u64,
                    model: row.get(10)?,
                    reason: row.get(11)?,
                })
            })?;
            rows.collect()
        })
    }
}

fn word<T: serde::de::DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}
