//! Gates that are not what they were: gone, or judging nothing any more. Calls relied on them, so they fail closed.
//!
//! `last` answers with what was recorded last of a plugin's life; it is asked only where something is amiss.

use super::life;
use super::registry::{Settings, without_code};
use super::snapshot::{Plugin, Snapshot, State};
use crate::audit::Life;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Plugins that were gates when they last loaded, with the hooks by which they judged.
pub(super) type Known = BTreeMap<String, Vec<String>>;

/// Gates whose folder went away, while the host runs or while none did: a removed gate does not wave calls through, an
/// operator disables it. One that lay in a folder which this host was not asked to load is none of its own. What is not
/// known to have lain elsewhere is missed.
pub(super) fn vanished(
    settings: &Settings,
    old: &Snapshot,
    found: &[Plugin],
    gates: &Known,
    last: impl Fn(&str) -> Option<Life>,
) -> Vec<Plugin> {
    let is_missing =
        |name: &&String| !settings.disabled.contains(*name) && !found.iter().any(|plugin| plugin.name == **name);
    let gone = gates.keys().filter(is_missing).filter_map(|name| {
        let before = old.plugin(name);
        let folder = match (before, before.is_none().then(|| last(name)).flatten()) {
            (Some(before), _) => before.folder.clone(),
            (None, Some(life)) if life::lies_in_a_root(settings, &life.folder) => life.folder.into(),
            (None, Some(_)) => return None,
            (None, None) => PathBuf::new(),
        };
        let root = before.map_or(usize::MAX, |before| before.root);
        let error = "its folder is gone; put it back, or disable the plugin";
        Some(without_code(name.clone(), folder, root, State::Failed, error.into()))
    });
    gone.collect()
}

/// Gates that came back without a hook by which they judged, while no host ran to hold them back. An operator who switches
/// such a plugin off and on again has decided that this is meant.
pub(super) fn refuse_lost(plugins: &mut [Plugin], old: &Snapshot, gates: &Known, last: impl Fn(&str) -> Option<Life>) {
    for plugin in plugins {
        let Some(known) = gates.get(&plugin.name).filter(|_| plugin.code.is_some()) else { continue };
        let now = plugin.gates();
        let lost: Vec<&str> = known.iter().map(String::as_str).filter(|hook| !now.contains(hook)).collect();
        if plugin.state == State::Disabled || lost.is_empty() && !now.is_empty() {
            continue;
        }
        let was_off = match old.plugin(&plugin.name) {
            Some(before) => before.state == State::Disabled,
            None => last(&plugin.name).is_some_and(|life| life.state == "disabled"),
        };
        if !was_off {
            plugin.state = State::Failed;
            let which = if lost.is_empty() { String::new() } else { format!(" {}", lost.join(" and ")) };
            plugin.error = Some(format!(
                "it no longer exports the gate{which} that calls rely on; disable it and enable it again if that is meant"
            ));
        }
    }
}
