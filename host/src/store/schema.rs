//! The schema, as a list of migrations: a migration that was published is never edited, a change is a new one.

use super::StoreError;
use rusqlite::Connection;

const MIGRATIONS: &[&str] = &[
    "
    create table sessions (
        id text primary key,
        created text not null,
        updated text not null,
        model text not null,
        workspace text not null,
        title text not null
    ) strict;
    create table messages (
        session text not null references sessions (id),
        seq integer not null,
        created text not null,
        message text not null,
        usage text,
        primary key (session, seq)
    ) strict, without rowid;
    create table calls (
        session text not null references sessions (id),
        seq integer not null,
        place integer not null,
        id text not null,
        tool text not null,
        input text not null,
        plugin text not null,
        digest text not null,
        begun text not null,
        ended text,
        duration_us integer,
        status text,
        outcome text,
        primary key (session, seq, place)
    ) strict, without rowid;
    create table tasks (
        session text not null references sessions (id),
        position integer not null,
        task text not null,
        primary key (session, position)
    ) strict, without rowid;
    create table kv (
        plugin text not null,
        scope text not null,
        key text not null,
        value blob not null,
        primary key (plugin, scope, key)
    ) strict, without rowid;
    create table gates (
        plugin text primary key
    ) strict, without rowid;
",
    "
    create table prefixes (
        hash text primary key,
        content text not null
    ) strict, without rowid;
    create table epochs (
        session text not null references sessions (id),
        number integer not null,
        created text not null,
        reason text not null,
        inputs text not null,
        prefix text not null references prefixes (hash),
        told text not null,
        primary key (session, number)
    ) strict, without rowid;
    create table requests (
        session text not null references sessions (id),
        number integer not null,
        epoch integer not null,
        step integer not null,
        created text not null,
        model text not null,
        first integer not null,
        messages integer not null,
        shared_bytes integer not null,
        bytes integer not null,
        usage text not null,
        primary key (session, number)
    ) strict, without rowid;
    alter table sessions add column tasks_written integer not null default 0;
",
    "
    create table audit (
        seq integer primary key,
        entry text not null,
        hash blob not null
    ) strict;
    create index audit_lives on audit (entry ->> 'plugin', seq) where entry ->> 'kind' = 'plugin';
    create table audit_head (
        one integer primary key check (one = 1),
        seq integer not null,
        hash blob not null
    ) strict;
    insert into audit_head values (1, 0, zeroblob(32));
    create trigger audit_next before insert on audit when new.seq is not (select seq + 1 from audit_head)
        begin select raise(abort, 'the audit is appended to and nothing else'); end;
    create trigger audit_moves_head after insert on audit
        begin update audit_head set seq = new.seq, hash = new.hash; end;
    create trigger audit_unchanged before update on audit
        begin select raise(abort, 'the audit is appended to and nothing else'); end;
    create trigger audit_undeleted before delete on audit
        begin select raise(abort, 'the audit is appended to and nothing else'); end;
    create trigger audit_head_forward before update on audit_head when new.one <> 1 or new.seq <> old.seq + 1
        begin select raise(abort, 'the audit is appended to and nothing else'); end;
    create trigger audit_head_one before insert on audit_head
        begin select raise(abort, 'the audit is appended to and nothing else'); end;
    create trigger audit_head_undeleted before delete on audit_head
        begin select raise(abort, 'the audit is appended to and nothing else'); end;
",
    "
    create table compactions (
        session text not null references sessions (id),
        number integer not null,
        created text not null,
        cause text not null,
        layer text,
        first integer not null,
        messages integer not null,
        messages_before integer not null,
        tokens_before integer not null,
        tokens_after integer,
        window_tokens integer not null,
        model text not null,
        reason text,
        primary key (session, number)
    ) strict, without rowid;
",
    "
    create table skill_uses (
        key text primary key,
        uses integer not null,
        last text not null
    ) strict, without rowid;
    create table skill_views (
        session text primary key references sessions (id),
        view text not null
    ) strict, without rowid;
",
    "
    create table agents (
        session text primary key references sessions (id),
        parent text not null references sessions (id),
        call text not null,
        kind text not null,
        agent text not null,
        begun text not null,
        ended text,
        reason text,
        statistics text
    ) strict, without rowid;
    create index agents_of on agents (parent, session);
",
    "
    alter table gates add column hooks text not null default '';
",
];

/// The newest schema that there is.
pub(super) fn known() -> i64 {
    MIGRATIONS.len() as i64
}

pub(super) fn bring_up(connection: &mut Connection, path: &str) -> Result<(), StoreError> {
    let failed =
        |error: rusqlite::Error| StoreError::Open { path: path.to_owned(), reason: super::fault::told(&error) };
    let known = known();
    let version = |connection: &Connection| connection.query_row("pragma user_version", [], |row| row.get::<_, i64>(0));
    if version(connection).map_err(failed)? == known {
        return Ok(());
    }
    // Read again inside the transaction: another process may have brought it up meanwhile.
    let behavior = rusqlite::TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    let found = version(&transaction).map_err(failed)?;
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    for migration in &MIGRATIONS[found.max(0) as usize..] {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::transcript::Message;

    /// A database as the first `version` migrations left it, with a session in it.
    fn old(path: &std::path::Path, version: usize) {
        let connection = Connection::open(path).unwrap();
        for migration in &MIGRATIONS[..version] {
            connection.execute_batch(migration).unwrap();
        }
        connection.pragma_update(None, "user_version", version as i64).unwrap();
        let message = serde_json::to_string(&Message::user("kept")).unwrap();
        connection
            .execute("insert into sessions (id, created, updated, model, workspace, title) values ('s1', 'c', 'u', 'm', 'w', 't')", [])
            .unwrap();
        connection.execute("insert into messages values ('s1', 0, 'c', ?1, null)", [message]).unwrap();
        connection.execute("insert into tasks values ('s1', 0, '{\"id\":\"a\",\"content\":\"open\",\"status\":\"pending\",\"depends_on\":[],\"assignee\":null}')", []).unwrap();
    }

    fn schema(connection: &Connection) -> Vec<String> {
        let mut statement = connection
            .prepare("select type || ' ' || name || ' ' || coalesce(sql, '') from sqlite_schema order by 1")
            .unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn every_older_schema_is_brought_up_and_keeps_what_was_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new.db");
        Store::open(&new).unwrap();
        let newest = schema(&Connection::open(&new).unwrap());
        for version in 1..MIGRATIONS.len() {
            let path = folder.path().join(format!("{version}.db"));
            old(&path, version);
            let store = Store::open(&path).unwrap_or_else(|error| panic!("schema {version}: {error}"));
            assert_eq!(store.messages("s1").unwrap(), [Message::user("kept")], "schema {version}");
            assert_eq!(store.tasks("s1").unwrap().len(), 1, "schema {version}");
            assert_eq!(store.append("s1", &Message::user("more"), None).unwrap(), 1, "schema {version}");
            assert!(store.compactions("s1").unwrap().is_empty() && store.last_request("s1").unwrap().is_none());
            drop(store);
            assert_eq!(schema(&Connection::open(&path).unwrap()), newest, "schema {version}");
            Store::open(&path).unwrap_or_else(|error| panic!("schema {version}, again: {error}"));
        }
    }

    #[test]
    fn a_migration_that_fails_leaves_the_database_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.db");
        old(&path, 1);
        // Somebody's own table stands where a migration makes one.
        Connection::open(&path).unwrap().execute_batch("create table prefixes (own)").unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("prefixes") && error.contains("old.db"), "{error}");
        let connection = Connection::open(&path).unwrap();
        let version: i64 = connection.query_row("pragma user_version", [], |row| row.get(0)).unwrap();
        let kept: i64 = connection.query_row("select count(*) from messages", [], |row| row.get(0)).unwrap();
        assert_eq!((version, kept), (1, 1));
    }
}
