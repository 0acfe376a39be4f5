//! How often and how lately each skill was used, and what a session sees of them.

use super::{Store, StoreError};
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

/// The use of one skill, on this home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillUse {
    /// The skill's key.
    pub key: String,
    /// How often.
    pub uses: u64,
    /// When last.
    pub last: Option<Timestamp>,
}

impl Store {
    /// Counts a use. A clock that goes back never makes the last use older.
    pub fn count_skill_use(&self, key: &str, now: Timestamp) -> Result<(), StoreError> {
        self.write(|db| {
            db.execute(
                "insert into skill_uses (key, uses, last) values (?1, 1, ?2)
                 on conflict (key) do update set uses = uses + 1, last = max(last, excluded.last)",
                params![key, format!("{now:.3}")],
            )?;
            Ok(())
        })
    }

    /// All skills that were ever used.
    pub fn skill_uses(&self) -> Result<Vec<SkillUse>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare("select key, uses, last from skill_uses order by key")?;
            let rows = statement.query_map([], |row| {
                let last: String = row.get(2)?;
                let uses: i64 = row.get(1)?;
                Ok(SkillUse { key: row.get(0)?, uses: uses.max(0) as u64, last: last.parse().ok() })
            })?;
            rows.collect()
        })
    }

    /// What a session sees of the skills, as it was left.
    pub fn skill_view(&self, session: &str) -> Result<Option<String>, StoreError> {
        self.read(|db| {
            db.query_row("select view from skill_views where session = ?1", [session], |row| row.get(0)).optional()
        })
    }

    /// Replaces what a session sees of the skills.
    pub fn set_skill_view(&self, session: &str, view: &str) -> Result<(), StoreError> {
        self.write(|db| {
            db.execute("insert or replace into skill_views (session, view) values (?1, ?2)", [session, view])?;
            Ok(())
        })
    }
}
