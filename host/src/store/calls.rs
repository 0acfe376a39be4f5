//! Tool calls: the intent before a call runs, the outcome after, so that a resumed session knows what may have happened.

use super::{Store, StoreError, now, to_json};
use crate::transcript::{CallStatus, Part};
use rusqlite::params;
use std::collections::BTreeMap;
use std::time::Duration;

/// A call and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Its place in the assistant message, from 0.
    pub place: usize,
    /// How it ended; none while it runs, or when the host died meanwhile.
    pub outcome: Option<(CallStatus, Vec<Part>)>,
}

impl Store {
    /// Records that a call is about to run. `seq` is the assistant message that asked for it, `place` its block.
    #[expect(clippy::too_many_arguments, reason = "the columns of one row, written in one place")]
    pub fn begin_call(
        &self,
        session: &str,
        seq: u64,
        place: usize,
        id: &str,
        tool: &str,
        input: &str,
        plugin: &str,
        digest: &str,
    ) -> Result<(), StoreError> {
        self.write(|db| {
            db.execute(
                "insert into calls (session, seq, place, id, tool, input, plugin, digest, begun)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![session, seq as i64, place as i64, id, tool, input, plugin, digest, now()],
            )?;
            Ok(())
        })
    }

    /// Records what came of it.
    pub fn end_call(
        &self,
        session: &str,
        seq: u64,
        place: usize,
        status: CallStatus,
        parts: &[Part],
        duration: Duration,
    ) -> Result<(), StoreError> {
        let (status, outcome) = (to_json(&status)?, to_json(&parts)?);
        self.write(|db| {
            db.execute(
                "update calls set ended = ?4, duration_us = ?5, status = ?6, outcome = ?7
                 where session = ?1 and seq = ?2 and place = ?3",
                params![session, seq as i64, place as i64, now(), duration.as_micros() as i64, status, outcome],
            )?;
            Ok(())
        })
    }

    /// The calls of one assistant message that had been begun.
    pub fn calls(&self, session: &str, seq: u64) -> Result<Vec<CallRecord>, StoreError> {
        let rows: Vec<(i64, Option<String>, Option<String>)> = self.read(|db| {
            let mut statement =
                db.prepare("select place, status, outcome from calls where session = ?1 and seq = ?2")?;
            let rows =
                statement.query_map(params![session, seq as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect()
        })?;
        let records = rows.into_iter().map(|(place, status, outcome)| CallRecord {
            place: place as usize,
            outcome: status.zip(outcome).and_then(|(status, outcome)| {
                Some((serde_json::from_str(&status).ok()?, serde_json::from_str(&outcome).ok()?))
            }),
        });
        Ok(records.collect())
    }

    /// Remembers which hooks of a plugin are gates, so that it still fails closed when it cannot load later, or has lost one;
    /// none make it no gate.
    pub fn remember_gate(&self, plugin: &str, hooks: &[&str]) -> Result<(), StoreError> {
        self.write(|db| {
            match hooks {
                [] => db.execute("delete from gates where plugin = ?1", [plugin])?,
                hooks => db.execute(
                    "insert or replace into gates (plugin, hooks) values (?1, ?2)",
                    [plugin, &hooks.join(" ")],
                )?,
            };
            Ok(())
        })
    }

    /// Plugins that were gates when they last loaded, and which hooks were; none where an older Astrarium did not say.
    pub fn gates(&self) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare("select plugin, hooks from gates")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
            let words = |hooks: String| hooks.split_whitespace().map(str::to_owned).collect();
            rows.map(|row| row.map(|(plugin, hooks)| (plugin, words(hooks)))).collect()
        })
    }
}
