//! Thousands of swaps under steady calls: no call is lost, none is answered by half of each version, and nothing is left
//! behind.

use astrarium::audit::Kind;
use astrarium::host::Host;
use astrarium::plugin::{Plugin, Snapshot};
use astrarium::runtime::{Desk, Loaded};
use astrarium::store::AuditFilter;
use astrarium::tool_call::{Calls, text_of};
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call_with, guests, resident};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Swaps published one after another, as fast as they come.
const DIRECT: usize = 10_000;

/// Swaps that the watcher sees, each after its pause.
const WATCHED: usize = 50;

/// Time between two calls: 50 a second.
const PACE: Duration = Duration::from_millis(20);

/// How long every tenth call stays in the guest: many swaps.
const LONG_MS: u64 = 300;

/// Puts a version in the place of the other in one step, as a build does.
fn put(place: &Place, which: &str) {
    let folder = place.plugins().join("versioned");
    let new = folder.join("new.tmp");
    fs::hard_link(place.home().join(which), &new).unwrap();
    fs::rename(new, folder.join("versioned.wasm")).unwrap();
}

fn which(swap: usize) -> &'static str {
    if swap.is_multiple_of(2) { "b" } else { "a" }
}

/// What has been published and is still there.
#[derive(Default)]
struct Alive {
    snapshots: Vec<Weak<Snapshot>>,
    plugins: Vec<Weak<Plugin>>,
    components: Vec<Weak<Loaded>>,
}

impl Alive {
    fn note(&mut self, host: &Host) {
        let snapshot = host.registry.snapshot();
        let plugin = snapshot.plugin("versioned").expect("it is always there");
        let (component, _) = plugin.code.as_ref().expect("it is always loaded");
        self.plugins.push(Arc::downgrade(plugin));
        self.components.push(Arc::downgrade(component));
        self.snapshots.push(Arc::downgrade(&snapshot));
    }

    /// How many of each there are.
    fn count(&mut self) -> [usize; 3] {
        self.snapshots.retain(|one| one.strong_count() > 0);
        self.plugins.retain(|one| one.strong_count() > 0);
        self.components.retain(|one| one.strong_count() > 0);
        [self.snapshots.len(), self.plugins.len(), self.components.len()]
    }
}

/// Calls 50 times a second until it is told to stop; answers with the digests that answered, and with what.
async fn call_steadily(host: Arc<Host>, stop: Arc<AtomicBool>) -> Vec<(String, String)> {
    let calls = Arc::new(Calls::new(host.registry.clone(), Desk::default()));
    let (mut running, mut ticks, mut number) = (JoinSet::new(), tokio::time::interval(PACE), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        number += 1;
        let (host, calls, wait) = (host.clone(), calls.clone(), if number.is_multiple_of(10) { LONG_MS } else { 0 });
        running.spawn(async move {
            let input = json!({ "wait_ms": wait });
            let finished = call_with(&calls, &host, "version", &input, &CancellationToken::new()).await;
            assert_eq!(finished.status, CallStatus::Ok, "{finished:?}");
            (finished.digest, text_of(&finished.parts))
        });
    }
    let answers = running.join_all().await;
    assert_eq!(answers.len() as u64, number, "no call is lost");
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swaps_lose_no_call_mix_no_versions_and_leave_nothing() {
    let place = Place::bare();
    let mut digests = BTreeMap::new();
    for which in ["a", "b"] {
        let wasm = fs::read(guests().join(format!("versioned-{which}/versioned_{which}.wasm"))).unwrap();
        digests.insert(which, astrarium::digest::sha256(&wasm));
        fs::write(place.home().join(which), wasm).unwrap();
    }
    fs::create_dir(place.plugins().join("versioned")).unwrap();
    fs::write(place.plugins().join("versioned/plugin.yaml"), "name: versioned\nversion: 0.1.0\n").unwrap();
    put(&place, "a");
    let host = Arc::new(place.host().await);
    let stop = Arc::new(AtomicBool::new(false));
    let calling = tokio::spawn(call_steadily(host.clone(), stop.clone()));
    let (mut alive, mut early) = (Alive::default(), 0);
    let in_force = |host: &Host| host.registry.snapshot().plugin("versioned").unwrap().digest().to_owned();
    // A long call holds what it captured, and so many may be under way at once; a few more may be between two steps.
    let most = LONG_MS as usize / PACE.as_millis() as usize / 10 + 20;
    for swap in 0..DIRECT {
        put(&place, which(swap));
        host.registry.refresh().await;
        assert_eq!(in_force(&host), digests[which(swap)], "swap {swap}");
        alive.note(&host);
        if swap % (DIRECT / 10) == 0 {
            let left = alive.count();
            assert!(left.iter().all(|left| *left <= most), "after {swap} swaps there are {left:?} of {most}");
        }
        if swap == DIRECT / 10 {
            early = resident();
        }
    }
    let late = resident();
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let watching = host.watch(move |line| drop(sender.send(line))).unwrap();
    for swap in 0..WATCHED {
        put(&place, which(swap));
        while in_force(&host) != digests[which(swap)] {
            told.recv().await.expect("the watcher goes on");
        }
        alive.note(&host);
    }
    drop(watching);
    stop.store(true, Ordering::Relaxed);
    let answers = calling.await.unwrap();
    let by = |which: &str| answers.iter().filter(|(digest, _)| *digest == digests[which]).count();
    for (digest, answer) in &answers {
        assert_eq!(
            digests.get(answer.as_str()),
            Some(digest),
            "the version that is on record is the one that answered"
        );
    }
    assert!(by("a") > 0 && by("b") > 0 && by("a") + by("b") == answers.len());
    let rows = host.store.audit_rows(&AuditFilter::default()).unwrap();
    let told = |kind: Kind, what: &str, outcome: &str, digest: &str| {
        let rows = rows.iter().map(|row| &row.entry);
        rows.filter(|e| (e.kind, &*e.what, &*e.outcome, &*e.digest) == (kind, what, outcome, digest)).count()
    };
    for which in ["a", "b"] {
        assert_eq!(told(Kind::Call, "version", "ok", &digests[which]), by(which), "each call is on record once");
    }
    let swaps =
        told(Kind::Plugin, "swapped", "live", &digests["a"]) + told(Kind::Plugin, "swapped", "live", &digests["b"]);
    assert_eq!(swaps, DIRECT + WATCHED, "and so is each swap");
    // The last version is all that is left.
    assert_eq!(alive.count(), [1, 1, 1]);
    assert_eq!((host.registry.runtime().running_calls(), host.registry.runtime().stuck_threads()), (0, 0));
    assert!(late < early + early / 4, "resident memory went from {early} to {late} MiB");
}
