//! What people are told of a refresh, a line for each plugin that changed. Pure.

use super::snapshot::{Snapshot, State};

/// What changed between two snapshots, a line each.
pub(super) fn changes(old: &Snapshot, new: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for plugin in &new.plugins {
        let before = old.plugin(&plugin.name);
        if plugin.error.is_some() && before.and_then(|before| before.error.as_ref()) != plugin.error.as_ref() {
            lines.push(format!("plugin {}: {}", plugin.name, plugin.error.as_deref().unwrap_or_default()));
        } else if let Some(before) = before
            && before.digest() != plugin.digest()
        {
            lines.push(format!("plugin {} is now {}", plugin.name, short(plugin.digest())));
        } else if let Some(before) = before
            && before.state != plugin.state
        {
            lines.push(format!("plugin {} is now {:?}", plugin.name, plugin.state).to_lowercase());
        }
    }
    let newcomers = new.plugins.iter().filter(|plugin| old.plugin(&plugin.name).is_none() && plugin.error.is_none());
    // At the first look everything is new.
    for plugin in newcomers.filter(|_| old.looked) {
        lines.push(match plugin.state {
            State::Waiting => format!(
                "plugin {} is new and waits for a grant; under grants: in astrarium.yaml write: {}",
                plugin.name,
                plugin.missing.grant_lines(&plugin.name)
            ),
            _ => format!("plugin {} is new; its tools are offered from the next session on", plugin.name),
        });
    }
    for gone in old.plugins.iter().filter(|plugin| new.plugin(&plugin.name).is_none()) {
        lines.push(format!("plugin {} is gone", gone.name));
    }
    lines
}

/// The part of a digest that people read.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
