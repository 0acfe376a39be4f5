//! What a failure of SQLite means for whoever reads of it, and what cures it.

use rusqlite::{Error, ErrorCode};

/// The failure in a line: what SQLite says, and what to do.
pub(super) fn told(error: &Error) -> String {
    if error.to_string().contains("no such table") {
        return format!(
            "{error}; somebody changed the file: copy it away, put a copy from before in its place, or begin anew in another \
             home with --home"
        );
    }
    match error.sqlite_error_code().and_then(cure) {
        Some(cure) => format!("{error}; {cure}"),
        None => error.to_string(),
    }
}

fn cure(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            "the file is damaged: copy it and its -wal file away before anything else, put a copy from before in its place, \
             or begin anew in another home with --home"
        }
        ErrorCode::DiskFull | ErrorCode::TooBig => {
            "its disk is full: free some space and go on, what was recorded before is safe"
        }
        ErrorCode::SystemIoFailure => {
            "its disk fails, is full, or lets no file grow further: look there, what was recorded before is safe"
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            "make it and its folder writable for this user, or choose another home with --home"
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            "another program holds it for longer than 5 s: let that end, then try again"
        }
        ErrorCode::CannotOpen => {
            "make it a file in a folder that this user can write to, or choose another home with --home"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn a_full_database_is_told_with_its_cure() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("create table t (x); pragma max_page_count = 3").unwrap();
        let fill = || db.execute("insert into t values (zeroblob(3000))", []);
        let error = (0..10).find_map(|_| fill().err()).unwrap();
        assert!(told(&error).contains("full") && told(&error).contains("free some space"), "{}", told(&error));
    }
}
