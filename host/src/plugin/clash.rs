//! Tool names that two plugins list: who has had one keeps it. A version that lists a tool of another plugin that runs does
//! not take the place of the one before it, so that an update breaks nobody but itself.

use super::folder::Unreadable;
use super::registry::{Settings, Version, keep_or_fail};
use super::snapshot::{Plugin, Snapshot, State};
use std::sync::Arc;

/// Puts the version before in the place of each update that lists a tool of another plugin.
pub(super) fn hold_back(plugins: &mut [Plugin], settings: &Settings, old: &Snapshot) {
    // Each round goes back to one version that ran before, so there are at most as many as plugins. One that went back may
    // list what another has taken meanwhile.
    while let Some((at, reason)) = (0..plugins.len()).find_map(|at| Some((at, taken(at, plugins, old)?))) {
        let plugin = &plugins[at];
        let (folder, root, name) = (plugin.folder.clone(), plugin.root, plugin.name.clone());
        let version = plugin.manifest.clone().map(|manifest| Version {
            folder: plugin.folder.clone(),
            root: plugin.root,
            digest: plugin.digest.clone(),
            fingerprint: plugin.fingerprint.clone(),
            manifest,
            loaded: plugin.code.as_ref().map(|(loaded, _)| loaded.clone()),
            tools: plugin.tools.clone(),
        });
        let before = keep_or_fail(settings, old, Unreadable { folder, root, name, reason });
        plugins[at] = Plugin { held: version.map(Arc::new), ..before };
    }
}

/// Why the update at this place does not go through, if there is a reason.
fn taken(at: usize, plugins: &[Plugin], old: &Snapshot) -> Option<String> {
    let plugin = &plugins[at];
    let before = old.plugin(&plugin.name).filter(|before| before.state == State::Live)?;
    if plugin.state != State::Live || plugin.fingerprint == before.fingerprint {
        return None;
    }
    let had = |plugin: &Plugin, tool: &str| {
        old.tool(tool).is_some_and(|(owner, _)| owner.name == plugin.name && owner.state == State::Live)
    };
    plugin.tools.iter().filter(|tool| !had(plugin, &tool.name)).find_map(|tool| {
        let mut others = plugins.iter().enumerate().filter(|(place, other)| *place != at && other.state == State::Live);
        let (_, other) = others.find(|(place, other)| {
            // Of two that list it for the first time, the one that comes first.
            other.tools.iter().any(|own| own.name == tool.name) && (had(other, &tool.name) || *place < at)
        })?;
        let version = plugin.manifest.as_ref().map(|manifest| manifest.version.clone()).unwrap_or_default();
        Some(format!(
            "version {version} lists the tool {}, which is a tool of {}; rename it, or disable one of the two",
            tool.name, other.name
        ))
    })
}
