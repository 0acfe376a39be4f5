//! Sessions of agents that worked for another session: whose they were, and how they ended.

use super::{NewSession, Store, StoreError, now, sessions, to_json};
use crate::context::AgentKind;
use crate::event::EndReason;
use rusqlite::{OptionalExtension as _, Row, params};
use serde::Serialize;
use serde_json::Value;

/// An agent that begins to work for a session.
pub struct NewAgent<'a> {
    /// The session that it works for.
    pub parent: &'a str,
    /// The call of that session that wants it.
    pub call: &'a str,
    /// Kind of agent.
    pub kind: AgentKind,
    /// Name of its definition; empty for the default one.
    pub agent: &'a str,
}

/// An agent as recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentRecord {
    /// Its own session.
    pub session: String,
    /// The session that it worked for.
    pub parent: String,
    /// The call that wanted it.
    pub call: String,
    /// Kind of agent, in the contract's word.
    pub kind: String,
    /// Name of its definition; empty for the default one.
    pub agent: String,
    /// When it began, RFC 3339.
    pub begun: String,
    /// When it ended; none while it runs, or when the host died meanwhile.
    pub ended: Option<String>,
    /// Why it ended.
    pub reason: Option<String>,
    /// What it took, as the agent that asked was told.
    pub statistics: Option<Value>,
    /// Its task, cut to a line.
    pub title: String,
}

const COLUMNS: &str = "select session, parent, call, kind, agent, begun, ended, reason, statistics,
    (select title from sessions where id = session) from agents";

impl Store {
    /// Begins the session of an agent and answers with its id.
    pub fn begin_agent(&self, new: &NewSession<'_>, agent: &NewAgent<'_>) -> Result<String, StoreError> {
        let kind = to_json(&agent.kind)?;
        self.write(|db| {
            let id = sessions::insert(db, new)?;
            db.execute(
                "insert into agents (session, parent, call, kind, agent, begun) values (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, agent.parent, agent.call, kind.trim_matches('"'), agent.agent, now()],
            )?;
            Ok(id)
        })
    }

    /// Records how it ended.
    pub fn end_agent(&self, session: &str, reason: EndReason, statistics: &Value) -> Result<(), StoreError> {
        self.write(|db| {
            db.execute(
                "update agents set ended = ?2, reason = ?3, statistics = ?4 where session = ?1 and ended is null",
                params![session, now(), reason.as_str(), statistics.to_string()],
            )?;
            Ok(())
        })
    }

    /// The agents that worked for a session, in the order in which they began.
    pub fn agents_of(&self, parent: &str) -> Result<Vec<AgentRecord>, StoreError> {
        self.read(|db| {
            let mut statement = db.prepare(&format!("{COLUMNS} where parent = ?1 order by session"))?;
            statement.query_map([parent], read_agent)?.collect()
        })
    }

    /// Whom a session worked for, if it was another agent's.
    pub fn agent(&self, session: &str) -> Result<Option<AgentRecord>, StoreError> {
        self.read(|db| db.query_row(&format!("{COLUMNS} where session = ?1"), [session], read_agent).optional())
    }
}

fn read_agent(row: &Row<'_>) -> rusqlite::Result<AgentRecord> {
    let statistics: Option<String> = row.get(8)?;
    Ok(AgentRecord {
        session: row.get(0)?,
        parent: row.get(1)?,
        call: row.get(2)?,
        kind: row.get(3)?,
        agent: row.get(4)?,
        begun: row.get(5)?,
        ended: row.get(6)?,
        reason: row.get(7)?,
        statistics: statistics.and_then(|text| serde_json::from_str(&text).ok()),
        title: row.get(9)?,
    })
}
