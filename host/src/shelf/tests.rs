//! The shelf over real files: versions, broken files, and writers that meet.

use super::*;
use crate::memory::{Kind, Mark};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

struct Desk {
    folder: tempfile::TempDir,
    shelf: Shelf,
}

fn desk() -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(folder.path());
    Desk { folder, shelf }
}

fn draft<'a>(slug: &'a str, content: &'a str) -> Draft<'a> {
    Draft { slug, name: None, kind: Kind::Project, description: "about it", content, supersedes: None, made_from: None }
}

impl Desk {
    fn files(&self) -> Vec<String> {
        let names =
            fs::read_dir(self.shelf.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.shelf.folder().join(file)).unwrap()
    }

    fn put(&self, file: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.shelf.folder()).unwrap();
        fs::write(self.shelf.folder().join(file), bytes).unwrap();
    }
}

#[test]
fn an_entry_written_again_keeps_its_older_versions_and_the_users_own_keys() {
    let desk = desk();
    assert_eq!(desk.shelf.list().unwrap().current, []);
    let first = desk.shelf.write(&draft("Zero Point", "23.9")).unwrap();
    assert_eq!((first.slug.as_str(), first.archived), ("zero-point", None));
    let edited = desk.text("zero-point.md").replace("type:", "tags: [a, b]\ntype:");
    desk.put("zero-point.md", edited);
    let second = desk.shelf.write(&draft("zero-point", "25.0")).unwrap();
    assert_eq!(second.archived.as_deref(), Some("zero-point_v1.md"));
    desk.shelf.write(&draft("zero-point", "26.0")).unwrap();
    assert_eq!(desk.files(), ["MEMORY.md", "zero-point.md", "zero-point_v1.md", "zero-point_v2.md"]);
    assert!(
        desk.text("zero-point.md").contains("tags: [\"a\",\"b\"]") && desk.text("zero-point.md").ends_with("26.0\n")
    );
    assert!(desk.text("zero-point_v1.md").contains("23.9") && desk.text("zero-point_v2.md").contains("25.0"));
    let listing = desk.shelf.list().unwrap();
    assert_eq!(listing.candidates().len(), 1);
    assert!(listing.archived.iter().all(|old| listing.mark(old) == Mark::Updated(Some("zero-point".into()))));
    // The same once more is no new version.
    assert_eq!(desk.shelf.write(&draft("zero-point", "26.0")).unwrap().archived, None);
}

#[test]
fn what_is_superseded_is_archived_with_the_name_of_its_successor() {
    let desk = desk();
    desk.shelf.write(&draft("figures", "12 pt")).unwrap();
    let written = desk.shelf.write(&Draft { supersedes: Some("figures"), ..draft("figure size", "14 pt") }).unwrap();
    assert_eq!(written.replaced.as_deref(), Some("figures"));
    assert_eq!(desk.files(), ["MEMORY.md", "figure-size.md", "figures_v1.md"]);
    assert!(desk.text("figures_v1.md").contains("superseded_by: figure-size"));
    let (old, listing) = desk.shelf.read("figures").unwrap();
    assert_eq!(listing.mark(&old), Mark::Updated(Some("figure-size".into())));
    let error = desk.shelf.write(&Draft { supersedes: Some("figurs"), ..draft("x", "y") }).unwrap_err().to_string();
    assert!(error.contains("no memory figurs"), "{error}");
    assert_eq!(desk.files().len(), 3, "a refused write leaves nothing");
}

#[test]
fn a_forgotten_entry_is_kept_and_not_read() {
    let desk = desk();
    desk.shelf.write(&draft("a", "x")).unwrap();
    assert_eq!(desk.shelf.forget("a").unwrap(), "a_v1.md");
    assert!(desk.text("a_v1.md").contains("forgotten: true"));
    let error = desk.shelf.read("a").unwrap_err().to_string();
    assert!(error.contains("forgotten") && error.contains("a_v1.md"), "{error}");
    assert!(!desk.text("MEMORY.md").contains("[a]"));
    assert!(matches!(desk.shelf.forget("b"), Err(ShelfError::NotFound(_))));
}

#[test]
fn a_broken_file_is_named_and_hides_no_other() {
    let desk = desk();
    desk.shelf.write(&draft("good", "x")).unwrap();
    desk.put("open.md", "---\ntype: user\nno end");
    desk.put("latin.md", b"---\ntype: user\n---\ncaf\xe9");
    desk.put("large.md", "x".repeat(FILE_BYTES as usize + 1));
    desk.put("My Note.md", "x");
    desk.put("other.txt", "not ours");
    fs::create_dir(desk.shelf.folder().join("folder.md")).unwrap();
    std::os::unix::fs::symlink("nowhere", desk.shelf.folder().join("link.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", desk.shelf.folder().join("out.md")).unwrap();
    let listing = desk.shelf.list().unwrap();
    assert_eq!(listing.current.iter().map(|entry| entry.slug.as_str()).collect::<Vec<_>>(), ["good"]);
    let said: Vec<String> = listing.broken.iter().map(|broken| format!("{}: {}", broken.file, broken.reason)).collect();
    let expected = [
        "My Note.md: the name is none",
        "folder.md: is no regular file",
        "large.md: is larger than 65536 bytes",
        "latin.md: byte 23 is no UTF-8",
        "link.md: does not exist",
        "open.md: line 1: the head that begins with --- has no closing ---",
        "out.md: is a link that leads out of the folder of memories",
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
    // Writing over a broken one keeps its bytes.
    let written = desk.shelf.write(&draft("open", "mended")).unwrap();
    assert_eq!(desk.text(&written.archived.unwrap()), "---\ntype: user\nno end");
    assert_eq!(desk.shelf.list().unwrap().broken.len(), 6);
}

#[test]
fn a_hand_edit_is_seen_at_once_and_an_unchanged_folder_is_read_once() {
    let desk = desk();
    desk.shelf.write(&draft("a", "old")).unwrap();
    let before = desk.shelf.list().unwrap();
    assert!(Arc::ptr_eq(&before, &desk.shelf.list().unwrap()));
    desk.put("a.md", desk.text("a.md").replace("old", "new"));
    let time = SystemTime::now() + Duration::from_secs(1);
    fs::File::options().write(true).open(desk.shelf.folder().join("a.md")).unwrap().set_modified(time).unwrap();
    assert_eq!(desk.shelf.list().unwrap().current[0].content, "new");
}

#[test]
fn a_write_from_an_older_version_is_refused() {
    let desk = desk();
    let first = desk.shelf.write(&draft("a", "one")).unwrap();
    let made_from = Some(first.version.as_str());
    desk.shelf.write(&Draft { made_from, ..draft("a", "two") }).unwrap();
    let error = desk.shelf.write(&Draft { made_from, ..draft("a", "three") }).unwrap_err();
    assert!(matches!(error, ShelfError::Changed(_)), "{error}");
    assert!(desk.text("a.md").contains("two"));
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_nothing() {
    let desk = desk();
    for (draft, word) in [
        (draft("…", "x"), "names no memory"),
        (draft("memory", "x"), "names no memory"),
        (Draft { description: " \n ", ..draft("a", "x") }, "one line"),
        (draft("a", &"x".repeat(70_000)), "65536"),
    ] {
        let error = desk.shelf.write(&draft).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let left = desk.shelf.list().unwrap();
    assert!(left.current.is_empty() && left.archived.is_empty());
}

#[test]
fn many_writers_on_many_handles_lose_nothing() {
    let desk = desk();
    let (writers, each) = (8, 12);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let library = desk.folder.path();
            scope.spawn(move || {
                let shelf = Shelf::new(library);
                for n in 0..each {
                    shelf.write(&draft(&format!("own-{writer}-{n}"), "x")).unwrap();
                    shelf.write(&draft("shared", &format!("by {writer} number {n}"))).unwrap();
                    shelf.list().unwrap();
                }
            });
        }
    });
    let listing = desk.shelf.list().unwrap();
    assert_eq!(listing.current.len(), writers * each + 1);
    let texts: BTreeSet<&str> = listing
        .current
        .iter()
        .chain(&listing.archived)
        .filter(|e| e.slug == "shared")
        .map(|e| e.content.as_str())
        .collect();
    assert_eq!(texts.len(), writers * each, "every text that was written is there, as current or as an older version");
    assert_eq!(desk.text("MEMORY.md").matches("](").count(), writers * each + 1);
    let left = fs::read_dir(desk.shelf.folder())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".write-"));
    assert_eq!(left.count(), 0, "no half-written file stays");
}

#[test]
fn names_that_differ_in_signs_alone_take_nobodys_place() {
    let desk = desk();
    desk.shelf.write(&draft("quasars z<3", "near")).unwrap();
    let refused = desk.shelf.write(&draft("quasars z>3", "far")).unwrap_err().to_string();
    assert!(refused.contains("quasars-z-3") && refused.contains("\"quasars z<3\""), "{refused}");
    assert!(desk.text("quasars-z-3.md").contains("near"));
    let missing = desk.shelf.read("quasars z>3").unwrap_err().to_string();
    assert!(missing.contains("there is no memory \"quasars z>3\"; quasars-z-3 is \"quasars z<3\""), "{missing}");
    assert!(desk.shelf.forget("quasars z>3").is_err());
    // Whoever names the slug means that entry, and a name may be written in other ways.
    desk.shelf.write(&draft("Quasars  z<3!", "nearer")).unwrap();
    desk.shelf.write(&draft("quasars-z-3", "nearest")).unwrap();
    assert_eq!(desk.shelf.read("quasars z<3").unwrap().0.content, "nearest");
}

#[test]
fn a_folder_that_cannot_be_reached_is_not_an_empty_one() {
    let desk = desk();
    assert_eq!(desk.shelf.list().unwrap().current, [], "one that was never made is");
    std::os::unix::fs::symlink("/nowhere/memory", desk.shelf.folder()).unwrap();
    let error = desk.shelf.list().unwrap_err().to_string();
    assert!(error.contains("leads nowhere"), "{error}");
    fs::remove_file(desk.shelf.folder()).unwrap();
    fs::write(desk.shelf.folder(), "a file").unwrap();
    let error = desk.shelf.list().unwrap_err().to_string();
    assert!(error.contains("it is no folder"), "{error}");
    let library = desk.folder.path().join("library");
    std::os::unix::fs::symlink("/nowhere/library", &library).unwrap();
    assert!(Shelf::new(&library).list().is_err(), "nor is one in a library that is not mounted");
}

#[test]
fn an_edit_that_loses_the_type_is_refused() {
    let desk = desk();
    desk.shelf.write(&Draft { kind: Kind::Feedback, ..draft("note", "text") }).unwrap();
    let text = desk.text("note.md");
    for broken in [text.replace("type:", "typ:"), text.replacen("---", "----", 1), "garbage".into()] {
        let refused = desk.shelf.replace("note.md", text.as_bytes(), &broken).unwrap_err().to_string();
        assert!(refused.contains("note.md") && refused.contains("type"), "{refused}");
        assert_eq!(desk.text("note.md"), text);
    }
    desk.put("own.md", "by hand, without a head\n");
    desk.shelf.replace("own.md", b"by hand, without a head\n", "still without one\n").unwrap();
}
