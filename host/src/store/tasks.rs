//! A session's task list: replaced whole, checked before, stored in one transaction.

use super::{Store, StoreError, to_json};
use crate::prompt::tasks::TaskLine;
use rusqlite::params;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Unique within the list.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// Ids of tasks that come first.
    pub depends_on: Vec<String>,
    /// Who does it.
    pub assignee: Option<String>,
}

/// Tasks a list may have: a plan longer than this is no plan.
const MOST: usize = 500;

impl TaskStatus {
    /// How it is shown.
    pub fn mark(self) -> char {
        match self {
            TaskStatus::Pending => '⏳',
            TaskStatus::InProgress => '🔄',
            TaskStatus::Completed => '✅',
        }
    }
}

impl Task {
    /// As it is shown.
    pub fn line(&self) -> TaskLine<'_> {
        let Task { id, content, status, depends_on, assignee } = self;
        TaskLine { id, content, mark: status.mark(), depends_on, assignee: assignee.as_deref() }
    }
}

impl Store {
    /// The list, in order.
    pub fn tasks(&self, session: &str) -> Result<Vec<Task>, StoreError> {
        let texts: Vec<String> = self.read(|db| {
            let mut statement = db.prepare("select task from tasks where session = ?1 order by position")?;
            statement.query_map([session], |row| row.get(0))?.collect()
        })?;
        let parsed = texts.iter().map(|text| {
            serde_json::from_str(text).map_err(|error| StoreError::Failed {
                path: self.path.display().to_string(),
                reason: format!("a task of session {session} does not read: {error}"),
            })
        });
        parsed.collect()
    }

    /// How often the list was written.
    pub fn tasks_written(&self, session: &str) -> Result<u64, StoreError> {
        self.read(|db| {
            db.query_row("select tasks_written from sessions where id = ?1", [session], |row| row.get::<_, i64>(0))
        })
        .map(|count| count as u64)
    }

    /// Replaces the list. A list that makes no sense is refused, and the old one stays.
    pub fn replace_tasks(&self, session: &str, tasks: &[Task]) -> Result<(), StoreError> {
        check_tasks(tasks).map_err(StoreError::Invalid)?;
        let rows = tasks.iter().map(to_json).collect::<Result<Vec<_>, _>>()?;
        self.write(|db| {
            let known: bool =
                db.query_row("select exists (select 1 from sessions where id = ?1)", [session], |row| row.get(0))?;
            if !known {
                return Err(StoreError::NoSession(session.to_owned()).into());
            }
            db.execute("update sessions set tasks_written = tasks_written + 1 where id = ?1", [session])?;
            db.execute("delete from tasks where session = ?1", [session])?;
            for (position, task) in rows.iter().enumerate() {
                db.execute(
                    "insert into tasks (session, position, task) values (?1, ?2, ?3)",
                    params![session, position as i64, task],
                )?;
            }
            Ok(())
        })
    }
}

/// Whether a list makes sense: ids present and unique, dependencies known and free of cycles (SPEC 3.5).
pub fn check_tasks(tasks: &[Task]) -> Result<(), String> {
    if tasks.len() > MOST {
        return Err(format!("a list of {} tasks is too long; at most {MOST}", tasks.len()));
    }
    let mut after: BTreeMap<&str, &[String]> = BTreeMap::new();
    for task in tasks {
        if task.id.trim().is_empty() {
            return Err("a task has an empty id; give it one".into());
        }
        if after.insert(&task.id, &task.depends_on).is_some() {
            return Err(format!("the task id {} stands twice; ids must be unique", task.id));
        }
    }
    for task in tasks {
        if let Some(unknown) = task.depends_on.iter().find(|id| !after.contains_key(id.as_str())) {
            return Err(format!("task {} depends on {unknown}, which is not in the list", task.id));
        }
    }
    // Takes away tasks whose dependencies are all taken away already; what stays holds a cycle.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    loop {
        let ready: Vec<&str> = after
            .iter()
            .filter(|(id, before)| !done.contains(*id) && before.iter().all(|id| done.contains(id.as_str())))
            .map(|(id, _)| *id)
            .collect();
        if ready.is_empty() {
            break;
        }
        done.extend(ready);
    }
    match after.keys().find(|id| !done.contains(*id)) {
        Some(id) => Err(format!("task {id} waits for itself through its dependencies; break the cycle")),
        None => Ok(()),
    }
}
