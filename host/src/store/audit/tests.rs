//! The chain by itself: what it refuses, what it finds out, and that many writers keep one.

use super::*;
use crate::audit::Kind;
use tempfile::TempDir;

fn entry(what: &str) -> Entry {
    Entry { kind: Kind::Call, what: what.into(), plugin: "files".into(), session: "abc".into(), ..Entry::default() }
}

fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("a.db")).unwrap();
    (folder, store)
}

fn filled(rows: usize) -> (TempDir, Store) {
    let (folder, store) = store();
    store.audit((0..rows).map(|n| entry(&format!("tool_{n}"))).collect()).unwrap();
    (folder, store)
}

/// What someone with the file and a SQLite of his own can do.
fn by_hand(folder: &TempDir, sql: &str) -> rusqlite::Result<()> {
    Connection::open(folder.path().join("a.db")).unwrap().execute_batch(sql)
}

const UNGUARD: &str = "drop trigger audit_unchanged; drop trigger audit_undeleted; drop trigger audit_next;
    drop trigger audit_head_forward;";

fn what_is_broken(store: &Store) -> String {
    match store.verify_audit(None).unwrap() {
        Verified::Broken { what, .. } => what,
        Verified::Whole(head) => panic!("nothing was found: {head:?}"),
    }
}

#[test]
fn rows_are_numbered_filtered_and_whole() {
    let (_folder, store) = filled(3);
    store.audit(vec![Entry { plugin: "guard".into(), session: "xyz".into(), ..entry("hook") }]).unwrap();
    let read = |filter| store.audit_rows(&filter).unwrap().iter().map(|row| row.seq).collect::<Vec<_>>();
    assert_eq!(read(AuditFilter::default()), [1, 2, 3, 4]);
    assert_eq!(read(AuditFilter { last: Some(2), ..AuditFilter::default() }), [3, 4]);
    assert_eq!(read(AuditFilter { after: 3, ..AuditFilter::default() }), [4]);
    assert_eq!(read(AuditFilter { plugin: Some("guard".into()), ..AuditFilter::default() }), [4]);
    assert_eq!(read(AuditFilter { session: Some("ab".into()), ..AuditFilter::default() }), [1, 2, 3]);
    let head = store.audit_head().unwrap();
    assert_eq!(store.verify_audit(None).unwrap(), Verified::Whole(head.clone()));
    assert_eq!(store.check_audit().unwrap(), Verified::Whole(head));
}

#[test]
fn the_database_itself_refuses_changes_removals_and_strange_rows() {
    let (folder, store) = filled(3);
    for sql in [
        "update audit set entry = '{}' where seq = 2",
        "delete from audit where seq = 3",
        "insert or replace into audit values (2, '{}', zeroblob(32))",
        "insert into audit values (9, '{}', zeroblob(32))",
        "insert into audit (entry, hash) values ('{}', zeroblob(32))",
        "update audit_head set seq = 0",
        "delete from audit_head",
        "insert or replace into audit_head values (1, 0, zeroblob(32))",
    ] {
        let error = by_hand(&folder, sql).expect_err(sql).to_string();
        assert!(error.contains("appended to and nothing else"), "{sql}: {error}");
    }
    assert!(matches!(store.verify_audit(None).unwrap(), Verified::Whole(head) if head.seq == 3));
}

#[test]
fn a_changed_row_is_named() {
    let (folder, store) = filled(5);
    by_hand(&folder, UNGUARD).unwrap();
    by_hand(&folder, "update audit set entry = replace(entry, 'tool_2', 'tool_9') where seq = 3").unwrap();
    assert_eq!(what_is_broken(&store), "row 3 is not as it was written");
}

#[test]
fn a_removed_row_is_named() {
    let (folder, store) = filled(5);
    by_hand(&folder, UNGUARD).unwrap();
    by_hand(&folder, "delete from audit where seq = 2").unwrap();
    assert_eq!(what_is_broken(&store), "row 2 is missing");
}

#[test]
fn a_tail_that_was_cut_off_is_found_by_the_head() {
    let (folder, store) = filled(5);
    by_hand(&folder, UNGUARD).unwrap();
    by_hand(&folder, "delete from audit where seq > 3").unwrap();
    assert_eq!(what_is_broken(&store), "rows 4 to 5 were cut off");
    assert!(matches!(store.check_audit().unwrap(), Verified::Broken { .. }));
    // And one who sets the head back too is found by a head that was noted.
    let (folder, store) = filled(5);
    let noted = store.audit_head().unwrap();
    by_hand(&folder, UNGUARD).unwrap();
    by_hand(
        &folder,
        "delete from audit where seq > 3;
         update audit_head set seq = 3, hash = (select hash from audit where seq = 3);",
    )
    .unwrap();
    let Verified::Broken { what, .. } = store.verify_audit(Some(&noted)).unwrap() else { panic!("nothing was found") };
    assert_eq!(what, "row 5, which was noted, is not there: rows were cut off");
}

#[test]
fn a_chain_that_was_rewritten_whole_is_found_by_a_head_that_was_noted() {
    let (_, noted) = filled(3);
    let noted = noted.audit_head().unwrap();
    let (_folder, store) = store();
    store.audit((0..4).map(|n| entry(&format!("other_{n}"))).collect()).unwrap();
    let Verified::Broken { row, what } = store.verify_audit(Some(&noted)).unwrap() else { panic!("nothing was found") };
    assert!(row == 3 && what.contains("rewritten"), "{row} {what}");
    let earlier = store.audit_head().unwrap();
    store.audit(vec![entry("more")]).unwrap();
    assert!(matches!(store.verify_audit(Some(&earlier)).unwrap(), Verified::Whole(head) if head.seq == 5));
}

#[test]
fn missing_triggers_are_said() {
    let (folder, store) = filled(1);
    by_hand(&folder, "drop trigger audit_undeleted").unwrap();
    assert!(what_is_broken(&store).contains("audit_undeleted"));
}

#[test]
fn texts_of_strangers_are_escaped_and_cut() {
    let (folder, store) = store();
    let long = "x".repeat(10_000);
    store.audit(vec![Entry { target: "a\u{202e}b\nc\u{9b}".into(), reason: long, ..entry("t") }]).unwrap();
    let row = store.audit_rows(&AuditFilter::default()).unwrap().remove(0);
    assert_eq!(row.entry.target, "a\\u{202e}b\\u{a}c\\u{9b}");
    assert!(row.entry.reason.len() < 700 && row.entry.reason.ends_with('…'));
    let kept: String = Connection::open(folder.path().join("a.db"))
        .unwrap()
        .query_row("select entry from audit", [], |row| row.get(0))
        .unwrap();
    assert!(!kept.contains(['\u{202e}', '\n', '\u{9b}']), "{kept:?}");
}

#[test]
fn many_writers_keep_one_chain() {
    let (folder, store) = store();
    let path = folder.path().join("a.db");
    // Connections of their own, as processes have them.
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let path = path.clone();
            std::thread::spawn(move || {
                let store = Store::open(&path).unwrap();
                for n in 0..50 {
                    store.audit(vec![entry(&format!("w{writer}_{n}")), entry("second")]).unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert!(matches!(store.verify_audit(None).unwrap(), Verified::Whole(head) if head.seq == 400));
    let rows = store.audit_rows(&AuditFilter::default()).unwrap();
    assert!(rows.chunks(2).all(|pair| pair[1].entry.what == "second"), "entries of one act stay together");
}

#[test]
fn the_same_news_is_told_once() {
    let (folder, store) = store();
    let other = Store::open(&folder.path().join("a.db")).unwrap();
    let news = |known: &BTreeMap<String, (Entry, Life)>| match known.get("files") {
        Some((_, life)) if life.state == "live" => Vec::new(),
        _ => vec![Entry {
            kind: Kind::Plugin,
            life: Some(Life { state: "live".into(), ..Life::default() }),
            ..entry("loaded")
        }],
    };
    store.audit_lives(news).unwrap();
    other.audit_lives(news).unwrap();
    assert_eq!(store.audit_rows(&AuditFilter::default()).unwrap().len(), 1);
}
