//! The audit: append-only entries, each chained to the one before by its hash, with the head of the chain beside them.
//!
//! The hash of a row is SHA-256 over the hash before it, its number (eight bytes, big endian) and the bytes of its entry.
//! Triggers refuse changes and removals, and whoever takes the triggers away is found out by [`Store::verify_audit`]; who
//! rewrites the whole chain is found out by a head that was noted elsewhere. Texts are escaped and cut before they are
//! written. It decides nothing, and knows what an entry says only where a filter asks.

use super::{Store, StoreError, WriteError, now};
use crate::audit::{Entry, Life};
use crate::digest::hex;
use crate::plain::escaped;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the rooms that decide put their entries.
#[derive(Debug, Clone)]
pub enum Audit {
    /// On record; what cannot be recorded must not happen.
    Kept(Arc<Store>),
    /// Nowhere. For benches that measure a call alone, never for a host.
    Off,
}

impl Audit {
    /// Puts entries on record, all or none.
    pub fn put(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        match self {
            Audit::Kept(store) => store.audit(entries),
            Audit::Off => Ok(()),
        }
    }

    /// Puts on record what `news` makes of the plugins' last known standing.
    pub fn put_lives(
        &self,
        news: impl FnOnce(&BTreeMap<String, (Entry, Life)>) -> Vec<Entry>,
    ) -> Result<(), StoreError> {
        match self {
            Audit::Kept(store) => store.audit_lives(news),
            Audit::Off => Ok(()),
        }
    }

    /// Whether anything is recorded: what only an entry needs is not worked out otherwise.
    pub fn is_kept(&self) -> bool {
        matches!(self, Audit::Kept(_))
    }
}

/// A row as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// Its number, from 1 without a gap.
    pub seq: u64,
    /// What it tells of.
    pub entry: Entry,
    /// Its hash, lower-case hex.
    pub hash: String,
}

/// Which rows to read.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Rows after this number.
    pub after: u64,
    /// Of this plugin.
    pub plugin: Option<String>,
    /// Of the session whose id begins so, and of the agents that worked for it.
    pub session: Option<String>,
    /// The last so many of them; all when none.
    pub last: Option<u32>,
}

/// The end of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditHead {
    /// How many rows there are.
    pub seq: u64,
    /// Hash of the last one, lower-case hex.
    pub hash: String,
}

/// What a look at the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// Every row is as it was written.
    Whole(AuditHead),
    /// The first thing that is not, in plain words.
    Broken {
        /// The row; 0 when it is none in particular.
        row: u64,
        /// What is wrong.
        what: String,
    },
}

/// Bytes of a name or an id in an entry.
const NAME: usize = 128;

/// Bytes of a path, an address, a rule or a reason in an entry.
const TEXT: usize = 600;

const TRIGGERS: [&str; 7] = [
    "audit_head_forward",
    "audit_head_one",
    "audit_head_undeleted",
    "audit_moves_head",
    "audit_next",
    "audit_unchanged",
    "audit_undeleted",
];

impl Store {
    /// Appends entries in one transaction: all are on record when this returns, or none.
    pub fn audit(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.write(|db| append(db, entries))
    }

    /// Appends what `news` makes of the plugins' last known standing, by name. Read and written in one transaction, so
    /// that two hosts do not tell the same news twice.
    pub fn audit_lives(
        &self,
        news: impl FnOnce(&BTreeMap<String, (Entry, Life)>) -> Vec<Entry>,
    ) -> Result<(), StoreError> {
        self.write(|db| {
            let known = lives(db)?;
            append(db, news(&known))
        })
    }

    /// The last thing that was recorded of each plugin's life, by its name.
    pub fn lives(&self) -> Result<BTreeMap<String, (Entry, Life)>, StoreError> {
        self.read(lives)
    }

    /// Rows in order of their numbers.
    pub fn audit_rows(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let last = filter.last.map_or(-1, i64::from);
        self.read(|db| {
            let mut statement = db.prepare(
                "with recursive below (id) as (
                     select session from agents where substr(parent, 1, length(?3)) = ?3
                     union select agents.session from agents join below on agents.parent = below.id
                 )
                 select seq, entry, hash from (
                     select seq, entry, hash from audit
                     where seq > ?1 and (?2 is null or entry ->> 'plugin' = ?2)
                       and (?3 is null or substr(entry ->> 'session', 1, length(?3)) = ?3
                            or entry ->> 'session' in below)
                     order by seq desc limit ?4
                 ) order by seq",
            )?;
            let rows = statement
                .query_map(params![filter.after as i64, filter.plugin, filter.session, last], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Vec<u8>>(2)?))
                })?;
            rows.map(|row| {
                let (seq, entry, hash) = row?;
                // A row that was tampered with is shown as far as it reads; `verify` names it.
                let entry = serde_json::from_str(&entry)
                    .unwrap_or_else(|_| Entry { what: "unreadable".into(), ..Entry::default() });
                Ok(AuditRow { seq: seq as u64, entry, hash: hex(&hash) })
            })
            .collect()
        })
    }

    /// The end of the chain as it is recorded.
    pub fn audit_head(&self) -> Result<AuditHead, StoreError> {
        self.read(head).map(|(seq, hash)| AuditHead { seq: seq as u64, hash: hex(&hash) })
    }

    /// Reads the whole chain anew. `anchor` is a head that was noted earlier, which must still be part of it.
    pub fn verify_audit(&self, anchor: Option<&AuditHead>) -> Result<Verified, StoreError> {
        let mut connection = self.lock();
        let verified = (|| {
            // One moment of the database, whoever writes meanwhile.
            let moment = connection.transaction()?;
            verify(&moment, anchor)
        })();
        verified.map_err(|error| self.failed(error))
    }

    /// A quick look for `doctor`: the triggers are there and the last row is the head.
    pub fn check_audit(&self) -> Result<Verified, StoreError> {
        self.read(|db| {
            let (seq, hash) = head(db)?;
            if let Some(broken) = missing_trigger(db)?.or(past_head(db, seq, &hash)?) {
                return Ok(broken);
            }
            Ok(Verified::Whole(AuditHead { seq: seq as u64, hash: hex(&hash) }))
        })
    }
}

fn append(db: &Transaction<'_>, entries: Vec<Entry>) -> Result<(), WriteError> {
    let (mut seq, mut before) = head(db)?;
    let at = now();
    let mut insert = db.prepare_cached("insert into audit (seq, entry, hash) values (?1, ?2, ?3)")?;
    for entry in entries {
        seq += 1;
        let entry = super::to_json(&Entry { at: at.clone(), ..recorded(entry) })?;
        before = hash(&before, seq, &entry);
        insert.execute(params![seq, entry, before])?;
    }
    Ok(())
}

/// The entry as it is kept: every text that may be a stranger's escaped and cut.
pub fn recorded(entry: Entry) -> Entry {
    let name = |text: &str| escaped(text, NAME);
    let text = |text: &str| escaped(text, TEXT);
    Entry {
        what: name(&entry.what),
        outcome: name(&entry.outcome),
        session: name(&entry.session),
        call: name(&entry.call),
        plugin: name(&entry.plugin),
        target: text(&entry.target),
        rule: text(&entry.rule),
        reason: text(&entry.reason),
        life: entry.life.map(|life| Life {
            version: name(&life.version),
            state: life.state,
            folder: text(&life.folder),
            granted: text(&life.granted),
            missing: text(&life.missing),
        }),
        ..entry
    }
}

fn hash(before: &[u8], seq: i64, entry: &str) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(seq.to_be_bytes());
    hash.update(entry.as_bytes());
    hash.finalize().to_vec()
}

fn head(db: &Connection) -> rusqlite::Result<(i64, Vec<u8>)> {
    db.prepare_cached("select seq, hash from audit_head")?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// The last entry of each plugin's life.
/// From name to name through the index, and of each the last row: a look costs what there are plugins, not what there are rows.
fn lives(db: &Connection) -> rusqlite::Result<BTreeMap<String, (Entry, Life)>> {
    let mut statement = db.prepare_cached(
        "with recursive names (name) as (
             select * from (select entry ->> 'plugin' from audit where entry ->> 'kind' = 'plugin'
                            order by entry ->> 'plugin' limit 1)
             union all
             select (select entry ->> 'plugin' from audit
                     where entry ->> 'kind' = 'plugin' and entry ->> 'plugin' > names.name
                     order by entry ->> 'plugin' limit 1)
             from names where names.name is not null
         )
         select (select entry from audit where entry ->> 'kind' = 'plugin' and entry ->> 'plugin' = names.name
                 order by seq desc limit 1)
         from names where names.name is not null",
    )?;
    let entries = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut lives = BTreeMap::new();
    for entry in entries {
        if let Ok(mut entry) = serde_json::from_str::<Entry>(&entry?)
            && let Some(life) = entry.life.take()
        {
            lives.insert(entry.plugin.clone(), (entry, life));
        }
    }
    Ok(lives)
}

fn verify(db: &Connection, anchor: Option<&AuditHead>) -> rusqlite::Result<Verified> {
    let broken = |row: i64, what: String| Ok(Verified::Broken { row: row as u64, what });
    let mut statement = db.prepare("select seq, entry, hash from audit order by seq")?;
    let mut rows = statement.query([])?;
    let (mut seq, mut before) = (0, vec![0; 32]);
    let mut anchored = anchor.is_none_or(|anchor| anchor.seq == 0);
    while let Some(row) = rows.next()? {
        let (found, kept): (i64, Vec<u8>) = (row.get(0)?, row.get(2)?);
        if found != seq + 1 {
            return broken(seq + 1, format!("row {} is missing", seq + 1));
        }
        seq = found;
        let computed = hash(&before, seq, row.get_ref(1)?.as_str().unwrap_or_default());
        if computed != kept {
            return broken(seq, format!("row {seq} is not as it was written"));
        }
        if let Some(anchor) = anchor.filter(|anchor| anchor.seq == seq as u64) {
            if anchor.hash != hex(&kept) {
                return broken(
                    seq,
                    format!("row {seq} is another than the one that was noted: the audit was rewritten"),
                );
            }
            anchored = true;
        }
        before = kept;
    }
    let Some((head_seq, head_hash)) = head(db).optional()? else {
        return broken(0, "the record of the last row is gone".into());
    };
    if head_seq > seq {
        return broken(seq + 1, format!("rows {} to {head_seq} were cut off", seq + 1));
    }
    if head_seq < seq || head_hash != before {
        return broken(seq, format!("row {seq} was not appended by this program: the record of the last row differs"));
    }
    if !anchored {
        let noted = anchor.map_or(0, |anchor| anchor.seq);
        return broken(seq + 1, format!("row {noted}, which was noted, is not there: rows were cut off"));
    }
    if let Some(broken) = missing_trigger(db)? {
        return Ok(broken);
    }
    Ok(Verified::Whole(AuditHead { seq: seq as u64, hash: hex(&before) }))
}

fn missing_trigger(db: &Connection) -> rusqlite::Result<Option<Verified>> {
    let mut statement = db.prepare("select name from sqlite_schema where type = 'trigger'")?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let gone = TRIGGERS.iter().find(|name| !found.iter().any(|found| found == *name));
    Ok(gone.map(|name| Verified::Broken {
        row: 0,
        what: format!("the trigger {name}, which keeps rows from being changed, was taken away"),
    }))
}

/// What is wrong with the last row, seen from the head alone.
fn past_head(db: &Connection, seq: i64, hash: &[u8]) -> rusqlite::Result<Option<Verified>> {
    let last = db
        .query_row("select seq, hash from audit order by seq desc limit 1", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .optional()?
        .unwrap_or((0, vec![0; 32]));
    let differs = last.0 != seq || last.1 != hash;
    Ok(differs.then(|| Verified::Broken {
        row: last.0 as u64,
        what: format!("the last row is {} and the record of it says {seq}", last.0),
    }))
}

#[cfg(test)]
mod tests;
