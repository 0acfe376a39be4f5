//! A database that is truncated, read-only, on a full disk, locked by another or newer: one line that says what, where and
//! what to do, and nothing is lost. The audit lies in the same file.

use astrarium_tests::place::{Place, Ran};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Commands that need the database, each in another way.
const COMMANDS: [&[&str]; 3] = [&["session", "list"], &["audit", "verify"], &["run", "more"]];

fn database(place: &Place) -> PathBuf {
    place.home().join("astrarium.db")
}

/// A home with a session in it, and the session's id.
fn used() -> (Place, String, String) {
    let place = Place::new();
    let model = place.script(&format!("name: t\nsteps:\n{}", "- say: an answer that is kept\n".repeat(20)));
    let ran = place.run(&["run", "hello", "--model", &model, "--output", "json"]);
    let id = ran.json()["session"].as_str().unwrap().to_owned();
    // All of it in the one file.
    rusqlite::Connection::open(database(&place))
        .unwrap()
        .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        .unwrap();
    (place, id, model)
}

/// One line, with what, where and what to do.
#[track_caller]
fn one_line(ran: &Ran, words: &[&str]) {
    assert_ne!(ran.status, 0, "{ran:?}");
    let said: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with("! ")).collect();
    let [line] = said[..] else { panic!("not one line: {ran:?}") };
    for word in words.iter().chain(&["astrarium.db"]) {
        assert!(line.contains(word), "{word} is not in: {line}");
    }
}

#[test]
fn a_damaged_file_is_named_and_left_as_it_is() {
    for (what, damage) in [
        (
            "no database",
            (|_| b"somebody's notes, long enough to be looked at by SQLite ".repeat(200)) as fn(Vec<u8>) -> Vec<u8>,
        ),
        ("its end is gone", |bytes| bytes[..bytes.len() / 3].to_vec()),
        ("its pages are blank", |mut bytes| {
            bytes[4096..].fill(0);
            bytes
        }),
    ] {
        let (place, id, model) = used();
        let path = database(&place);
        let damaged = damage(fs::read(&path).unwrap());
        fs::write(&path, &damaged).unwrap();
        for command in COMMANDS {
            let mut command = command.to_vec();
            if command[0] == "run" {
                command.extend(["--model", &model]);
            }
            one_line(&place.run(&command), &["damaged", "copy it", "--home"]);
        }
        one_line(&place.run(&["session", "show", &id]), &["damaged"]);
        let doctor = place.run(&["doctor"]);
        assert!(doctor.status != 0 && doctor.stdout.contains("damaged"), "{what}: {doctor:?}");
        assert_eq!(fs::read(&path).unwrap(), damaged, "{what}: somebody may still save what is in it");
    }
}

#[test]
fn a_table_that_is_gone_is_told_with_a_cure() {
    let (place, _, model) = used();
    rusqlite::Connection::open(database(&place))
        .unwrap()
        .execute_batch("pragma foreign_keys = off; drop table audit; drop table sessions")
        .unwrap();
    for command in [&["session", "list"][..], &["audit", "verify"], &["run", "more", "--model", &model]] {
        one_line(&place.run(command), &["no such table", "put a copy from before in its place"]);
    }
}

#[test]
fn an_emptied_file_is_not_taken_for_a_new_one() {
    let (place, _, model) = used();
    fs::write(database(&place), "").unwrap();
    for command in [&["session", "list"][..], &["audit", "verify"], &["run", "more", "--model", &model]] {
        one_line(&place.run(command), &["is empty, though sessions were kept in it", "a copy from before"]);
    }
    fs::remove_file(database(&place)).unwrap();
    assert_eq!(place.run(&["run", "anew", "--model", &model]).status, 0, "as the message says");
    // One that was made just now, by a host that is about to fill it, is no lost one.
    let fresh = Place::new();
    fs::write(database(&fresh), "").unwrap();
    assert_eq!(fresh.run(&["session", "list"]).status, 0);
}

#[test]
fn a_read_only_file_is_named_with_its_cure() {
    let (place, id, model) = used();
    let mut permissions = fs::metadata(database(&place)).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(database(&place), permissions).unwrap();
    // Root writes where nobody may, unless it gives that up.
    let root = fs::metadata("/proc/self").map(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata)).unwrap() == 0;
    let run = |arguments: &[&str]| {
        let plain = place.command(arguments);
        let dropped = ["--bounding-set", "-dac_override,-dac_read_search", "--"];
        match root {
            false => place.run(arguments),
            true => Ran::of(wrapped(&plain, "setpriv", &dropped).output().unwrap()),
        }
    };
    assert_eq!(run(&["session", "show", &id]).status, 0, "what is in it can be read");
    one_line(&run(&["run", "more", "--session", &id, "--model", &model]), &["writable for this user", "--home"]);
}

/// `command` as the arguments of another program.
fn wrapped(command: &Command, program: &str, arguments: &[&str]) -> Command {
    let mut outer = Command::new(program);
    outer.args(arguments).arg(command.get_program()).args(command.get_args()).env_clear();
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(command.get_current_dir().unwrap());
    outer
}

#[test]
fn on_a_full_disk_the_run_ends_with_a_line_and_what_was_answered_is_kept() {
    let (place, id, model) = used();
    // No file may grow beyond this, as on a full disk: a system call says so, and no signal.
    let size = fs::metadata(database(&place)).unwrap().len();
    let blocks = (size / 512 + 8).to_string();
    let full = |arguments: &[&str]| {
        let shell = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
        Ran::of(wrapped(&place.command(arguments), "sh", &["-c", shell, &blocks]).output().unwrap())
    };
    let long = "a question of some length ".repeat(4_000);
    let ran = full(&["run", &long, "--session", &id, "--model", &model]);
    one_line(&ran, &["disk", "what was recorded before is safe"]);
    let shown = place.run(&["session", "show", &id, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap();
    assert!(messages.len() >= 2 && messages[1].to_string().contains("an answer that is kept"), "{shown}");
    assert_eq!(place.run(&["audit", "verify"]).status, 0, "the audit is whole");
    let again = place.run(&["run", "more", "--session", &id, "--model", &model]);
    assert_eq!(again.stdout, "an answer that is kept\n", "with room again it goes on: {again:?}");
}

#[test]
fn a_database_that_another_holds_is_waited_for_and_then_named() {
    let (place, id, model) = used();
    let other = rusqlite::Connection::open(database(&place)).unwrap();
    other
        .execute_batch("pragma locking_mode = exclusive; begin exclusive; update sessions set title = 'mine'")
        .unwrap();
    one_line(&place.run(&["run", "more", "--session", &id, "--model", &model]), &["locked", "let that end"]);
    drop(other);
    assert_eq!(place.run(&["run", "more", "--session", &id, "--model", &model]).status, 0);
}

#[test]
fn a_second_process_is_told_who_has_the_session() {
    let (place, id, _) = used();
    let slow = place.script("name: s\nsteps:\n- say: never\n- say: \"a b c d e f g h i j\"\n  delay_ms: 60000\n");
    let arguments = ["run", "wait", "--session", &id, "--model", &slow, "--output", "stream-json"];
    let mut first = place.command(&arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(first.stdout.as_mut().unwrap()), &mut line).unwrap();
    let second = place.run(&["run", "me too", "--session", &id, "--model", &slow]);
    let holder = format!("(process {}, since 2", first.id());
    assert!(
        second.status != 0 && second.stderr.contains(&holder) && second.stderr.contains("session fork"),
        "{second:?}"
    );
    let removed = place.run(&["session", "remove", &id]);
    assert!(removed.status != 0 && removed.stderr.contains(&holder), "{removed:?}");
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(place.run(&["session", "remove", &id]).status, 0, "the lock ends with its process");
}

#[test]
fn the_doctor_says_where_the_window_is_from_and_which_text_is_not_used() {
    let place = Place::new();
    // Nobody listens there, and nobody is needed for this.
    let set = |name: &str, value: &str| {
        let mut command = place.command(&["doctor", "--model", "openai:somebody-7b"]);
        Ran::of(command.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1").env(name, value).output().unwrap()).stdout
    };
    let doctor = || set("UNUSED", "");
    let line = |shown: &str| shown.lines().find(|line| line.contains("window")).unwrap().to_owned();
    assert!(line(&doctor()).contains("assumed, as this model is not known here"), "{}", doctor());
    place.config("context_window: 9000\n");
    assert!(line(&doctor()).contains("9000 tokens (context_window of the config)"));
    assert!(line(&set("ASTRARIUM_CONTEXT_WINDOW", "7000")).contains("7000 tokens (ASTRARIUM_CONTEXT_WINDOW)"));
    assert!(line(&set("ASTRARIUM_CONTEXT_WINDOW", "many")).contains("at least 1000"));

    let folder = place.home().join("personas/compact");
    fs::create_dir_all(&folder).unwrap();
    for language in ["en", "zh"] {
        fs::write(folder.join(format!("summary-request.{language}.md")), " \n").unwrap();
    }
    let shown = doctor();
    assert!(shown.contains("the text summary-request is empty; the one that ships is used"), "{shown}");
}
