//! The turns of the plugins' lives, for the audit: what is new against the last thing that was recorded of each.
//!
//! Pure but for a look whether a folder is still there. Compared with the record and not with this process's memory, so
//! that a change made while no host ran is told too, and none is told twice.

use super::registry::Settings;
use super::snapshot::{Plugin, Snapshot, State};
use crate::audit::{Entry, Kind, Life};
use crate::store::recorded;
use std::collections::BTreeMap;
use std::path::Path;

/// Entries for all that changed between the record and `new`. `old` is what this host ran before.
pub(super) fn news(
    known: &BTreeMap<String, (Entry, Life)>,
    settings: &Settings,
    old: &Snapshot,
    new: &Snapshot,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for plugin in &new.plugins {
        let now = recorded(standing(plugin));
        match known.get(&now.plugin) {
            Some((before, life)) => entries.extend(turns(plugin, before, life, now)),
            None if now.outcome == "failed" => entries.push(Entry { what: "refused".into(), ..now }),
            None if now.outcome == "disabled" => entries.push(Entry { what: "disabled".into(), ..now }),
            None => entries.push(Entry { what: "loaded".into(), ..now }),
        }
    }
    let gone = known.iter().filter(|(name, (_, life))| {
        let was_ours = || old.plugin(name).is_some() || lies_in_a_root(settings, &life.folder);
        life.state != "gone" && new.plugin(name).is_none() && was_ours()
    });
    entries.extend(gone.map(|(name, (before, life))| {
        let life = Life { state: "gone".into(), granted: String::new(), missing: String::new(), ..life.clone() };
        let entry = Entry { kind: Kind::Plugin, what: "vanished".into(), ..Entry::default() };
        Entry { life: Some(life), ..entry.by(name, &before.digest).came_to("gone", "its folder is gone") }
    }));
    entries
}

/// Where a plugin stands, as an entry that has no name yet.
fn standing(plugin: &Plugin) -> Entry {
    let state = match plugin.state {
        State::Live => "live",
        State::Waiting => "waiting",
        State::Disabled => "disabled",
        State::Failed => "failed",
    };
    let life = Life {
        version: plugin.manifest.as_ref().map(|manifest| manifest.version.clone()).unwrap_or_default(),
        state: state.into(),
        folder: plugin.folder.to_string_lossy().into_owned(),
        granted: plugin.granted.to_string(),
        missing: plugin.missing.to_string(),
    };
    let entry = Entry { kind: Kind::Plugin, life: Some(life), ..Entry::default() };
    entry.by(&plugin.name, plugin.digest()).came_to(state, plugin.error.as_deref().unwrap_or_default())
}

/// The turns that lead from what was recorded last to `now`, each by its name.
fn turns(plugin: &Plugin, before: &Entry, life: &Life, now: Entry) -> Vec<Entry> {
    let to = now.life.clone().unwrap_or_default();
    let mut names = Vec::new();
    if now.digest != before.digest || to.version != life.version {
        names.push(match (before.digest.is_empty() || life.state == "gone", now.digest.is_empty()) {
            (_, true) => "refused",
            (true, false) => "loaded",
            (false, false) => "swapped",
        });
    } else if life.state == "gone" {
        names.push("loaded");
    }
    if to.state != life.state {
        match (life.state.as_str(), to.state.as_str()) {
            (_, "disabled") => names.push("disabled"),
            ("disabled", _) => names.push("enabled"),
            _ => {}
        }
    }
    // Of one build what is missing and what is granted make up what it asks for: less of one is more of the other.
    if to.granted != life.granted && names.iter().all(|name| matches!(*name, "disabled" | "enabled")) {
        names.push(if to.missing.len() > life.missing.len() { "revoked" } else { "granted" });
    }
    if now.reason != before.reason && !now.reason.is_empty() {
        names.retain(|name| *name != "refused");
        names.push(match (plugin.held.is_some(), plugin.folder.is_dir()) {
            (true, _) => "held-back",
            (false, true) => "refused",
            (false, false) => "vanished",
        });
    }
    // What is told by no name of its own: an error that is over, a folder that moved.
    if names.is_empty() && (to != *life || now.reason != before.reason) {
        names.push(if now.reason.is_empty() { "changed" } else { "refused" });
    }
    names.into_iter().map(|name| Entry { what: name.to_owned(), ..now.clone() }).collect()
}

pub(super) fn lies_in_a_root(settings: &Settings, folder: &str) -> bool {
    settings.roots.iter().any(|root| Path::new(folder).parent() == Some(&root.path))
}
