//! What goes on the audit: one entry for each call, hook decision, capability decision, permission, turn of a plugin's
//! life and act of an operator; and the trail that one guest call leaves of its own.
//!
//! Words only: the store chains and keeps them, the rooms that decide fill them in. No guest writes an entry, and none
//! can read one; what a guest said stands in `reason` and `target` alone, cut and escaped by the store.

use crate::context::{AgentKind, CallContext};
use crate::digest::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What kind of thing an entry tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A tool call: `begun` before it runs, and how it ended.
    #[default]
    Call,
    /// What a hook answered.
    Hook,
    /// Whether a guest may use something outside itself.
    Capability,
    /// What the permission rules, or a person who was asked, said of a call.
    Permission,
    /// A turn in a plugin's life.
    Plugin,
    /// A command of the operator.
    Operator,
}

/// One entry. What does not apply is left empty, and not written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// When, in UTC, RFC 3339; the store fills it in.
    pub at: String,
    /// What kind of thing it tells of.
    pub kind: Kind,
    /// The tool, the hook, the capability, the turn of life or the command.
    pub what: String,
    /// What came of it: `begun`, `ok`, `failed`, `refused`; a hook's decision; `allowed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Session id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Step of the turn.
    #[serde(skip_serializing_if = "is_zero")]
    pub step: u64,
    /// Tool call id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Kind of agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentKind>,
    /// Plugin that answered, judged, asked or changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plugin: String,
    /// SHA-256 of its component.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What it was about: the tool that a hook judged, the path or address that a guest wanted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// SHA-256 of the arguments as they stood; never the arguments.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// The rule that decided, in the operator's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Why, when it was refused or failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Wall time, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Most bytes of linear memory that the guest had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// How many like it, when more than one.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: u64,
    /// Of a plugin: where it stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
}

/// Where a plugin stands, as far as the audit compares it with the time before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Life {
    /// Its own version.
    pub version: String,
    /// `live`, `waiting`, `disabled`, `failed` or `gone`.
    pub state: String,
    /// Where it lies.
    pub folder: String,
    /// What it may do, as in a grant.
    pub granted: String,
    /// What it asks for and may not do.
    pub missing: String,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Entry {
    /// An entry of work in `context`.
    pub fn of(context: &CallContext, kind: Kind, what: &str) -> Self {
        Self {
            kind,
            what: what.to_owned(),
            session: context.session.clone(),
            step: context.step.into(),
            call: context.call.clone(),
            agent: Some(context.agent),
            ..Self::default()
        }
    }

    /// The same with the plugin it tells of.
    pub fn by(mut self, plugin: &str, digest: &str) -> Self {
        self.plugin = plugin.to_owned();
        self.digest = digest.to_owned();
        self
    }

    /// The same with what came of it; an empty reason is none.
    pub fn came_to(mut self, outcome: &str, reason: &str) -> Self {
        self.outcome = outcome.to_owned();
        self.reason = reason.to_owned();
        self
    }

    /// The same with what it took.
    pub fn took(mut self, duration: Duration, memory: usize) -> Self {
        self.duration_us = Some(duration.as_micros() as u64);
        self.memory = (memory > 0).then_some(memory as u64);
        self
    }
}

/// SHA-256 of arguments as they are handed to a guest, lower-case hex.
pub fn digest(arguments: &Value) -> String {
    struct Hash(Sha256);
    impl std::io::Write for Hash {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hash(Sha256::new());
    // Hashing cannot fail, and a JSON value always serialises.
    let _ = serde_json::to_writer(&mut hash, arguments);
    hex(&hash.0.finalize())
}

/// Different decisions of each kind, refusals and others, that one guest call leaves by name: a guest that is refused ever
/// anew must not fill the audit, nor hide one kind behind the other. All are counted.
const DECISIONS: usize = 256;

/// What one guest call left behind, whatever came of it: what it was allowed and refused, and its peak of memory. Made
/// for the call, written to on the guest's thread, read when the call has ended.
#[derive(Debug, Default)]
pub struct Trail {
    memory: AtomicUsize,
    decisions: Mutex<Decisions>,
}

#[derive(Debug, Default)]
struct Decisions {
    kept: BTreeMap<Decision, (String, String, u64)>,
    /// Capabilities, and whether they were allowed, of those that are not named.
    counted: BTreeMap<(&'static str, bool), u64>,
}

/// Capability, whether it was allowed, the rule, and the target where each is named. Kept with the reason, the first target
/// and the number.
type Decision = (&'static str, bool, String, Option<String>);

impl Trail {
    /// A use of a capability that a rule allows.
    pub fn allowed(&self, capability: &'static str, rule: &str, target: &str) {
        self.note((capability, true, rule.to_owned(), None), String::new(), target);
    }

    /// A use that a rule allows and that changes something: each is named.
    pub fn changed(&self, capability: &'static str, rule: &str, target: &str) {
        self.note((capability, true, rule.to_owned(), Some(target.to_owned())), String::new(), target);
    }

    /// A use of a capability that was refused, with the rule that is missing or forbids it, and the reason as the guest
    /// was told it.
    pub fn refused(&self, capability: &'static str, rule: &str, target: &str, reason: &str) {
        self.note((capability, false, rule.to_owned(), Some(target.to_owned())), reason.to_owned(), target);
    }

    fn note(&self, key: Decision, reason: String, target: &str) {
        let mut decisions = self.decisions();
        let (capability, allowed, ..) = key;
        let alike = || decisions.kept.keys().filter(|(_, other, ..)| *other == allowed).count();
        if !decisions.kept.contains_key(&key) && alike() >= DECISIONS {
            *decisions.counted.entry((capability, allowed)).or_default() += 1;
            return;
        }
        decisions.kept.entry(key).or_insert_with(|| (reason, target.to_owned(), 0)).2 += 1;
    }

    /// Sets the bytes of memory that the guest has now; memories never shrink.
    pub fn has_memory(&self, bytes: usize) {
        self.memory.store(bytes, Ordering::Relaxed);
    }

    /// The peak, in bytes.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Takes the decisions out, an entry each.
    pub fn entries(&self, context: &CallContext, plugin: &str, digest: &str) -> Vec<Entry> {
        let Decisions { kept, counted } = std::mem::take(&mut *self.decisions());
        let entry = |what: &str| Entry::of(context, Kind::Capability, what).by(plugin, digest);
        let mut entries: Vec<Entry> = kept
            .into_iter()
            .map(|((capability, allowed, rule, _), (reason, target, count))| {
                let outcome = outcome(allowed);
                let count = if count > 1 { count } else { 0 };
                Entry { rule, target, count, ..entry(capability).came_to(outcome, &reason) }
            })
            .collect();
        entries.extend(counted.into_iter().map(|((capability, allowed), count)| Entry {
            count,
            ..entry(capability).came_to(outcome(allowed), "more than are named, of various targets")
        }));
        entries
    }

    fn decisions(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outcome(allowed: bool) -> &'static str {
    if allowed { "allowed" } else { "refused" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    fn context() -> CallContext {
        CallContext {
            session: "s".into(),
            call: "c".into(),
            step: 2,
            agent: AgentKind::Main,
            language: "en".into(),
            workspace: PathBuf::new(),
        }
    }

    #[test]
    fn reads_are_counted_and_each_change_and_refusal_is_named() {
        let trail = Trail::default();
        for path in ["a", "b", "c"] {
            trail.allowed("fs", "workspace", path);
        }
        for path in ["new", "new", "old"] {
            trail.changed("fs", "workspace rw", path);
        }
        trail.refused("fs", "kept out", "home", "no");
        trail.refused("fs", "kept out", "other", "no");
        let entries = trail.entries(&context(), "files", "d");
        let shown: Vec<_> =
            entries.iter().map(|e| format!("{} {} {} {} {}", e.outcome, e.rule, e.target, e.count, e.reason)).collect();
        let expected = [
            "refused kept out home 0 no",
            "refused kept out other 0 no",
            "allowed workspace a 3 ",
            "allowed workspace rw new 2 ",
            "allowed workspace rw old 0 ",
        ];
        assert_eq!(shown, expected);
        assert!(trail.entries(&context(), "files", "d").is_empty(), "they are taken once");
    }

    #[test]
    fn a_guest_that_is_refused_for_ever_fills_nothing() {
        let trail = Trail::default();
        for n in 0..10_000 {
            trail.changed("fs", "workspace rw", &n.to_string());
        }
        for n in 0..9_000 {
            trail.refused("http", "no rule", &n.to_string(), "no");
        }
        let entries = trail.entries(&context(), "p", "d");
        assert_eq!(entries.len(), 2 * DECISIONS + 2, "neither kind hides the other");
        let counted: Vec<_> =
            entries[2 * DECISIONS..].iter().map(|e| (e.what.as_str(), &*e.outcome, e.count)).collect();
        let left = |all: u64| all - DECISIONS as u64;
        assert_eq!(counted, [("fs", "allowed", left(10_000)), ("http", "refused", left(9_000))]);
    }

    #[test]
    fn the_digest_is_that_of_the_text_that_a_guest_is_handed() {
        let input = json!({ "b": [1, "é"], "a": null });
        let text = Sha256::digest(input.to_string().as_bytes());
        assert_eq!(digest(&input), text.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
}
