//! What one edited skill among 2,000 costs, against looking at all of them for the first time, as ratios in one run.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use astrarium::skills::{Changes, Owner, Registry, Root};
use std::fs;
use std::time::{Duration, Instant};

const SKILLS: usize = 2_000;
const ROUNDS: u32 = 200;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let root = folder.path().canonicalize().expect("it is there");
    let body = "Look at the header first, then at the data.\n".repeat(100);
    let put = |n: usize, version: u32| {
        let path = root.join(format!("group-{}/skill-{n}/SKILL.md", n % 20));
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder can be made");
        let front = format!("---\nname: skill-{n}\ndescription: about {n}\nversion: {version}\npaths: '*.{n}'\n---\n");
        fs::write(&path, front + &body).expect("a file can be written");
        path
    };
    (0..SKILLS).for_each(|n| drop(put(n, 0)));
    let registry = Registry::new(vec![Root { path: root.clone(), owner: Owner::User, within: None }]);
    let first = timed(|| drop(registry.refresh()));
    let again = timed(|| drop(registry.refresh()));
    let mut edits = Duration::ZERO;
    let before = registry.work();
    for round in 1..=ROUNDS {
        let path = put(1_007, round);
        let changes = Changes { paths: [path].into(), all: false };
        edits += timed(|| drop(registry.apply(&changes)));
    }
    let work = registry.work();
    let edit = edits / ROUNDS;
    let ratio = |time: Duration| time.as_secs_f64() / first.as_secs_f64();
    let read = (work.files - before.files) as f64 / f64::from(ROUNDS);
    show("first look at all", first, 1.0);
    show("look at all, nothing changed", again, ratio(again));
    show("one edited", edit, ratio(edit));
    println!("files read for an edit: {read}");
}

fn timed(body: impl FnOnce()) -> Duration {
    let began = Instant::now();
    body();
    began.elapsed()
}

fn show(what: &str, time: Duration, ratio: f64) {
    println!("{what:<32} {:>10.3} ms   {ratio:.5}", time.as_secs_f64() * 1_000.0);
}
