//! A plugin folder that changes at each step of loading: what is published is one version whole, or the one before.

use astrarium::host::Host;
use astrarium::plugin::State;
use astrarium::tool_call::text_of;
use astrarium_tests::place::{Place, call, guests};
use serde_json::json;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Change = Box<dyn FnOnce() + Send>;

/// What to do, once, when the host tells of a step.
static AT: Mutex<Option<(&str, Change)>> = Mutex::new(None);

/// Hears the host tell of its steps.
struct Steps;

impl Subscriber for Steps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("astrarium::plugin")
    }

    fn event(&self, event: &Event<'_>) {
        struct Step(String);
        impl Visit for Step {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                if field.name() == "step" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut step = Step(String::new());
        event.record(&mut step);
        let mut at = AT.lock().unwrap_or_else(PoisonError::into_inner);
        if at.as_ref().is_some_and(|(wanted, _)| format!("{wanted:?}") == step.0)
            && let Some((_, change)) = at.take()
        {
            change();
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Puts a version there as a build does: each file written beside and renamed over, the manifest first.
fn put(folder: &Path, which: &str, version: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("new.tmp"), format!("name: versioned\nversion: {version}\n")).unwrap();
    fs::rename(folder.join("new.tmp"), folder.join("plugin.yaml")).unwrap();
    fs::copy(guests().join(format!("versioned-{which}/versioned_{which}.wasm")), folder.join("new.tmp")).unwrap();
    fs::rename(folder.join("new.tmp"), folder.join("versioned.wasm")).unwrap();
}

/// Version by its manifest, and what its component says of itself.
async fn in_force(host: &Host) -> String {
    let snapshot = host.registry.snapshot();
    let Some(plugin) = snapshot.plugin("versioned") else { return "none".into() };
    assert_eq!(plugin.state, State::Live);
    let answer = call(host, "version", json!({}), &CancellationToken::new()).await;
    format!("{} {}", plugin.status().version, text_of(&answer.parts))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_the_folder_no_half_is_published() {
    tracing::subscriber::set_global_default(Steps).unwrap();
    for (change, step, at_once, then) in [
        // Between manifest and component: another version is taken whole, a lost one leaves the one before.
        ("replaced", "manifest", "3.0.0 a", "3.0.0 a"),
        ("removed", "manifest", "1.0.0 a", "none"),
        ("damaged", "manifest", "1.0.0 a", "1.0.0 a"),
        // From then on the bytes that were read count, and what the folder holds comes with the next look.
        ("replaced", "read", "2.0.0 b", "3.0.0 a"),
        ("removed", "read", "2.0.0 b", "none"),
        ("damaged", "read", "2.0.0 b", "2.0.0 b"),
        ("replaced", "linked", "2.0.0 b", "3.0.0 a"),
        ("removed", "linked", "2.0.0 b", "none"),
        ("damaged", "linked", "2.0.0 b", "2.0.0 b"),
        ("replaced", "listed", "2.0.0 b", "3.0.0 a"),
        ("removed", "listed", "2.0.0 b", "none"),
        ("damaged", "listed", "2.0.0 b", "2.0.0 b"),
        ("replaced", "published", "2.0.0 b", "3.0.0 a"),
        ("removed", "published", "2.0.0 b", "none"),
        ("damaged", "published", "2.0.0 b", "2.0.0 b"),
    ] {
        let place = Place::bare();
        let folder = place.plugins().join("versioned");
        put(&folder, "a", "1.0.0");
        let host = place.host().await;
        put(&folder, "b", "2.0.0");
        let doing: Change = Box::new(move || match change {
            "replaced" => put(&folder, "a", "3.0.0"),
            "removed" => fs::remove_dir_all(&folder).unwrap(),
            _ => fs::write(folder.join("versioned.wasm"), b"\0asm").unwrap(),
        });
        *AT.lock().unwrap() = Some((step, doing));
        host.registry.refresh().await;
        assert!(AT.lock().unwrap().is_none(), "{change} at {step}: nobody told of this step");
        assert_eq!(in_force(&host).await, at_once, "{change} at {step}");
        host.registry.refresh().await;
        assert_eq!(in_force(&host).await, then, "{change} at {step}, and the next look");
    }
}
