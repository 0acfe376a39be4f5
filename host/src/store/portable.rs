//! All rows of one session: read, written into another database, copied up to a message, removed.
//!
//! Tables are not named one by one: whatever has a column `session` belongs to one, and so does what a later migration adds.
//! Beside them a session has its own keys of the plugins' store, and the prefixes that its epochs name by hash.

use super::{Store, StoreError, new_session_id, schema};
use crate::digest::sha256;
use crate::transcript::{Block, Message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A row, as it travels between databases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its table.
    pub table: String,
    /// Its columns: texts and numbers as they are, bytes as `{"base64": …}`.
    pub row: Map<String, Value>,
}

/// A table with rows of sessions, and its columns.
struct Table {
    name: String,
    /// The column that names the session.
    key: &'static str,
    columns: Vec<String>,
}

/// The newest schema that rows can be of.
pub fn schema_version() -> i64 {
    schema::known()
}

impl Store {
    /// Every row of a session, the session's own first and each before those that refer to it; then likewise those of the
    /// agents that worked for it.
    pub fn session_rows(&self, id: &str) -> Result<Vec<Row>, StoreError> {
        let mut connection = self.lock();
        // One transaction, so that a session that is being written to is read as it was at one moment.
        let transaction = connection.transaction().map_err(|error| self.failed(error))?;
        let all = || {
            let mut all = Vec::new();
            for id in with_agents(&transaction, id)? {
                rows(&transaction, &id, &mut all)?;
            }
            Ok(all)
        };
        all().map_err(|error| self.failed(error))
    }

    /// Writes the rows of a session and of its agents, all or none: `next` gives them one by one, with the line that each
    /// stands in, and `last` is done before they count. The session is `id` here; agents keep their ids unless it is a `copy`.
    pub fn insert_session(
        &self,
        id: &str,
        copy: bool,
        mut next: impl FnMut() -> Result<Option<(u64, Row)>, StoreError>,
        last: impl FnOnce(&HashMap<String, String>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.write(|db| {
            let tables = tables(db)?;
            let (mut messages, mut ids) = (0, Ids::default());
            while let Some((line, row)) = next()? {
                let refused = |reason: String| StoreError::Invalid(format!("line {line}: {reason}"));
                if let ("sessions", Some(there)) = (row.table.as_str(), row.row.get("id").and_then(Value::as_str)) {
                    let here = match (ids.known.is_empty(), copy) {
                        (true, _) => id.to_owned(),
                        (false, true) => new_session_id(),
                        (false, false) => there.to_owned(),
                    };
                    if db.query_row("select 1 from sessions where id = ?1", [&here], |_| Ok(())).optional()?.is_some() {
                        return Err(
                            refused(format!("session {here} is in this home already; import with --copy")).into()
                        );
                    }
                    ids.known.insert(there.to_owned(), here);
                    there.clone_into(&mut ids.current);
                    messages = 0;
                }
                if row.table == "messages" {
                    if row.row.get("seq").and_then(Value::as_u64) != Some(messages) {
                        return Err(refused(format!("message {messages} of the transcript is missing")).into());
                    }
                    messages += 1;
                }
                insert(db, &tables, &ids, &row).map_err(refused)?;
            }
            Ok(last(&ids.known)?)
        })
    }

    /// Begins a session `new` that is `old` up to and without the message `at`, which must be a place where nothing is torn.
    pub fn fork_session(
        &self,
        old: &str,
        new: &str,
        at: u64,
        last: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.write(|db| {
            for table in tables(db)? {
                let Table { name, key, columns } = &table;
                let condition = match name.as_str() {
                    "messages" | "calls" => "and seq < ?3",
                    "compactions" | "requests" => "and first + messages <= ?3",
                    // Without a request of its own that stands, an epoch's told news would be those of later messages.
                    "epochs" => {
                        "and (number in (select epoch from requests where session = ?1 and first + messages <= ?3)
                                 or not exists (select 1 from messages where session = ?1 and seq >= ?3))"
                    }
                    _ => "and ?3 is not null",
                };
                let listed = columns.join(", ");
                let picked = columns.iter().map(|column| if column == key { "?2" } else { column.as_str() });
                let picked = picked.collect::<Vec<_>>().join(", ");
                db.execute(
                    &format!("insert into {name} ({listed}) select {picked} from {name} where {key} = ?1 {condition}"),
                    params![old, new, at as i64],
                )?;
            }
            Ok(last()?)
        })
    }

    /// After how many messages the transcript of a session can end, smallest first: no call is without its result there, and
    /// no compaction in two. Where it ends now is one of them, since opening a session mends it.
    pub fn whole_places(&self, id: &str) -> Result<Vec<u64>, StoreError> {
        let messages = self.messages(id)?;
        let calls = |message: &Message| message.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let compacted: Vec<_> = self.compactions(id)?.into_iter().filter(|done| done.layer.is_some()).collect();
        let inside = |at: u64| compacted.iter().any(|done| (done.first + 1..done.first + done.messages).contains(&at));
        let count = messages.len();
        let whole = (1..=count).filter(|at| *at == count || !calls(&messages[at - 1]) && !inside(*at as u64));
        Ok(whole.map(|at| at as u64).collect())
    }

    /// Removes a session with all its rows, and those of the agents that worked for it; answers with the ids of all.
    pub fn remove_session(&self, id: &str) -> Result<Vec<String>, StoreError> {
        self.write(|db| {
            let ids = with_agents(db, id)?;
            for id in &ids {
                db.execute("delete from agents where session = ?1 or parent = ?1", [id])?;
            }
            for id in &ids {
                // The session's own row goes last: the others refer to it.
                for Table { name, key, .. } in tables(db)?.iter().rev() {
                    db.execute(&format!("delete from {name} where {key} = ?1"), [id])?;
                }
            }
            db.execute("delete from prefixes where hash not in (select prefix from epochs)", [])?;
            Ok(ids)
        })
    }
}

/// The tables that have rows of sessions, `sessions` first.
fn tables(db: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = db.prepare(
        "select t.name, c.name from sqlite_schema t join pragma_table_info(t.name) c where t.type = 'table'
         order by t.name, c.cid",
    )?;
    let columns = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut tables: Vec<Table> = Vec::new();
    for column in columns {
        let (table, column) = column?;
        match tables.last_mut() {
            Some(last) if last.name == table => last.columns.push(column),
            _ => tables.push(Table { name: table, key: "session", columns: vec![column] }),
        }
    }
    for table in &mut tables {
        table.key = match table.name.as_str() {
            "sessions" => "id",
            "kv" => "scope",
            _ => "session",
        };
    }
    // For whom an agent's session worked goes with that other session only.
    tables.retain(|table| table.name != AGENTS && table.columns.iter().any(|column| column == table.key));
    tables.sort_by_key(|table| (table.name != "sessions", table.name.clone()));
    Ok(tables)
}

/// A session and all agents that worked for it, and for them, each after the one it worked for.
fn with_agents(db: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare(
        "with recursive below (id, depth) as
         (select ?1, 0 union select agents.session, depth + 1 from agents join below on agents.parent = below.id)
         select id from below order by depth, id",
    )?;
    statement.query_map([id], |row| row.get(0))?.collect()
}

/// Ids of sessions that are being taken in.
#[derive(Default)]
struct Ids {
    /// What each is called here.
    known: HashMap<String, String>,
    /// Whose rows come now, by its name in the file.
    current: String,
}

fn rows(db: &Transaction<'_>, id: &str, rows: &mut Vec<Row>) -> rusqlite::Result<()> {
    let tables = tables(db)?;
    for (at, Table { name, key, columns }) in tables.iter().enumerate() {
        let listed = columns.join(", ");
        collect(db, rows, name, &format!("select {listed} from {name} where {key} = ?1 order by {listed}"), id)?;
        if at == 0 {
            let sql = "select hash, content from prefixes where hash in (select prefix from epochs where session = ?1)
                       order by hash";
            collect(db, rows, "prefixes", sql, id)?;
            // The session that is exported may have worked for another one, which stays.
            if rows.first().is_some_and(|first| first.row.get("id").and_then(Value::as_str) != Some(id)) {
                collect(db, rows, AGENTS, "select * from agents where session = ?1", id)?;
            }
        }
    }
    Ok(())
}

/// The table of whom an agent's session worked for.
const AGENTS: &str = "agents";

fn collect(db: &Transaction<'_>, rows: &mut Vec<Row>, table: &str, sql: &str, id: &str) -> rusqlite::Result<()> {
    let mut statement = db.prepare(sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([id])?;
    while let Some(row) = found.next()? {
        let mut map = Map::new();
        for (at, name) in names.iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(_) => row.get::<_, String>(at)?.into(),
                ValueRef::Blob(bytes) => json!({ "base64": BASE64.encode(bytes) }),
            };
            map.insert(name.clone(), value);
        }
        rows.push(Row { table: table.to_owned(), row: map });
    }
    Ok(())
}

/// Writes one row; an error says what is wrong with it.
fn insert(db: &Transaction<'_>, tables: &[Table], ids: &Ids, row: &Row) -> Result<(), String> {
    let Row { table: name, row } = row;
    if name == "prefixes" {
        return insert_prefix(db, row);
    }
    if name == AGENTS {
        return insert_agent(db, ids, row);
    }
    let table = tables.iter().find(|table| table.name == *name);
    let Some(Table { key, columns, .. }) = table else { return Err(format!("{name:?} is no table of sessions")) };
    let (Some(whose), Some(id)) = (row.get(*key).and_then(Value::as_str), ids.known.get(&ids.current)) else {
        return Err(format!("a row of {name} names no session"));
    };
    if whose != ids.current {
        return Err(format!("a row of {name} is that of session {whose}, among those of {}", ids.current));
    }
    if let Some(unknown) = row.keys().find(|column| !columns.contains(column)) {
        return Err(format!("{name} has no column {unknown:?} here"));
    }
    if let Some(text) = row.get("message").and_then(Value::as_str) {
        let _: Message = serde_json::from_str(text).map_err(|error| format!("its message does not read: {error}"))?;
    }
    let mut values = Vec::with_capacity(row.len());
    for (column, value) in row {
        // The session may have another id here.
        values.push(if column == key {
            Sql::Text(id.to_owned())
        } else {
            from_json(value).ok_or_else(|| format!("{column} is {value}"))?
        });
    }
    let listed: Vec<&str> = row.keys().map(String::as_str).collect();
    let marks = vec!["?"; listed.len()].join(", ");
    db.execute(&format!("insert into {name} ({}) values ({marks})", listed.join(", ")), params_from_iter(values))
        .map(|_| ())
        .map_err(|error| format!("a row of {name} cannot be taken in: {error}"))
}

/// For whom an agent worked; both are here by then.
fn insert_agent(db: &Transaction<'_>, ids: &Ids, row: &Map<String, Value>) -> Result<(), String> {
    let text = |name: &str| row.get(name).and_then(Value::as_str);
    let here = |name: &str| text(name).and_then(|there| ids.known.get(there));
    let (Some(session), Some(parent)) = (here("session"), here("parent")) else {
        return Err("an agent worked for a session that is not in the file".into());
    };
    db.execute(
        "insert into agents (session, parent, call, kind, agent, begun, ended, reason, statistics)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            session,
            parent,
            text("call"),
            text("kind"),
            text("agent"),
            text("begun"),
            text("ended"),
            text("reason"),
            text("statistics")
        ],
    )
    .map(|_| ())
    .map_err(|error| format!("a row of agents cannot be taken in: {error}"))
}

/// A prefix is known by the hash of its content, and belongs to whoever names it.
fn insert_prefix(db: &Transaction<'_>, row: &Map<String, Value>) -> Result<(), String> {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    let (hash, content) = (text("hash"), text("content"));
    if sha256(content.as_bytes()) != hash {
        return Err("what stood in front of the requests was changed: its hash is another".into());
    }
    db.execute("insert or ignore into prefixes (hash, content) values (?1, ?2)", [hash, content])
        .map(|_| ())
        .map_err(|error| error.to_string())
}

fn from_json(value: &Value) -> Option<Sql> {
    Some(match value {
        Value::Null => Sql::Null,
        Value::Number(number) if number.is_f64() => Sql::Real(number.as_f64()?),
        Value::Number(number) => Sql::Integer(number.as_i64()?),
        Value::String(text) => Sql::Text(text.clone()),
        Value::Object(object) if object.len() == 1 => Sql::Blob(BASE64.decode(object.get("base64")?.as_str()?).ok()?),
        _ => return None,
    })
}
