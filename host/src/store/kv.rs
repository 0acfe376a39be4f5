//! The key-value store behind the `kv` import: a plugin sees its own keys only, and stays within a quota.

use super::{Store, StoreError};
use rusqlite::{OptionalExtension as _, Transaction, params};

/// How long a value lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvScope {
    /// As long as this session.
    Session(String),
    /// As long as the plugin.
    Plugin,
}

/// Bytes of keys and values that one plugin may keep in all scopes together.
#[derive(Debug, Clone, Copy)]
pub struct Quota(pub u64);

/// Keys that one listing answers with at most, as the contract says.
const LISTED: usize = 1_000;

/// Bytes of a key: a key is a name, not a place for data.
const KEY: usize = 512;

impl KvScope {
    fn column(&self) -> &str {
        match self {
            KvScope::Session(id) => id,
            KvScope::Plugin => "",
        }
    }
}

impl Store {
    /// The value of a key.
    pub fn kv_get(&self, plugin: &str, scope: &KvScope, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|db| {
            db.query_row(
                "select value from kv where plugin = ?1 and scope = ?2 and key = ?3",
                params![plugin, scope.column(), key],
                |row| row.get(0),
            )
            .optional()
        })
    }

    /// Sets a key, or refuses and changes nothing when the plugin would go over its quota.
    pub fn kv_set(
        &self,
        plugin: &str,
        scope: &KvScope,
        key: &str,
        value: &[u8],
        quota: Quota,
    ) -> Result<(), StoreError> {
        self.write(|db| put(db, plugin, scope, key, value, quota))
    }

    /// Removes a key; true when it was there.
    pub fn kv_delete(&self, plugin: &str, scope: &KvScope, key: &str) -> Result<bool, StoreError> {
        self.write(|db| {
            let removed = db.execute(
                "delete from kv where plugin = ?1 and scope = ?2 and key = ?3",
                params![plugin, scope.column(), key],
            )?;
            Ok(removed > 0)
        })
    }

    /// Keys that begin with `prefix`, in byte order.
    pub fn kv_keys(&self, plugin: &str, scope: &KvScope, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare(
                "select key from kv where plugin = ?1 and scope = ?2 and substr(key, 1, length(?3)) = ?3
                 order by key limit ?4",
            )?;
            let rows = statement.query_map(params![plugin, scope.column(), prefix, LISTED as i64], |row| row.get(0))?;
            rows.collect()
        })
    }

    /// Adds to a decimal number and answers with the sum.
    pub fn kv_increment(
        &self,
        plugin: &str,
        scope: &KvScope,
        key: &str,
        by: i64,
        quota: Quota,
    ) -> Result<i64, StoreError> {
        self.write(|db| {
            let old: Option<Vec<u8>> = db
                .query_row(
                    "select value from kv where plugin = ?1 and scope = ?2 and key = ?3",
                    params![plugin, scope.column(), key],
                    |row| row.get(0),
                )
                .optional()?;
            let old = old.map_or(Ok(0), |bytes| {
                let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse::<i64>().ok());
                number.ok_or_else(|| StoreError::Invalid(format!("the value of {key} is no decimal number")))
            })?;
            let sum = old
                .checked_add(by)
                .ok_or_else(|| StoreError::Invalid(format!("{key} would leave the range of 64-bit numbers")))?;
            put(db, plugin, scope, key, sum.to_string().as_bytes(), quota)?;
            Ok(sum)
        })
    }
}

fn put(
    db: &Transaction<'_>,
    plugin: &str,
    scope: &KvScope,
    key: &str,
    value: &[u8],
    Quota(quota): Quota,
) -> Result<(), super::WriteError> {
    if key.is_empty() || key.len() > KEY {
        return Err(StoreError::Invalid(format!("a key has 1 to {KEY} bytes, this one {}", key.len())).into());
    }
    let others: i64 = db.query_row(
        "select coalesce(sum(length(cast(key as blob)) + length(value)), 0) from kv
         where plugin = ?1 and not (scope = ?2 and key = ?3)",
        params![plugin, scope.column(), key],
        |row| row.get(0),
    )?;
    if others as u64 + (key.len() + value.len()) as u64 > quota {
        return Err(StoreError::Quota(format!(
            "over the quota of {quota} bytes (limits: kv_bytes); delete keys first"
        ))
        .into());
    }
    db.execute(
        "insert into kv (plugin, scope, key, value) values (?1, ?2, ?3, ?4)
         on conflict (plugin, scope, key) do update set value = excluded.value",
        params![plugin, scope.column(), key, value],
    )?;
    Ok(())
}
