//! Everything that is looked at before a plugin is published, without publishing it.

use super::Registry;
use super::effective::{environment, held_back};
use super::folder::{Captured, Package};
use super::load::load;
use super::snapshot::{State, is_gate};
use crate::grant::Capabilities;
use serde::Serialize;
use std::path::Path;

/// What a look at a plugin found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of its component.
    pub digest: String,
    /// SHA-256 of its manifest.
    pub manifest: String,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Names of its hooks.
    pub hooks: Vec<String>,
    /// What it asks for.
    pub requested: Capabilities,
    /// What of that is granted already.
    pub granted: Capabilities,
    /// What is not.
    pub missing: Capabilities,
    /// Why it cannot be published; nothing when it can.
    pub problems: Vec<String>,
    /// What an operator should know all the same.
    pub notes: Vec<String>,
}

/// Checks a package as if it lay in `folder`: validates, compiles, links, asks for the tools, and compares with the grants
/// and with the plugins that are there.
pub async fn check(registry: &Registry, package: Package, folder: &Path) -> Checked {
    let (settings, snapshot) = (registry.settings(), registry.snapshot());
    let captured = Captured::new(folder, 0, package);
    let manifest = &captured.manifest;
    let mut checked = Checked {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        digest: captured.digest.clone(),
        manifest: manifest.digest.clone(),
        requested: manifest.requests.clone(),
        ..Checked::default()
    };
    let (loaded, tools) = match load(registry.runtime(), registry.services(), &captured).await {
        Ok(loaded) => loaded,
        Err(reason) => {
            checked.problems.push(reason);
            return checked;
        }
    };
    let manifest = &captured.manifest;
    let (env, missing) = environment(&settings, manifest, &captured.digest);
    checked.tools = tools.iter().map(|tool| tool.name.clone()).collect();
    checked.hooks = loaded.exports.hooks().into_iter().map(str::to_owned).collect();
    checked.granted = env.effective;
    for tool in &tools {
        if let Some((other, _)) = snapshot.tool(&tool.name).filter(|(other, _)| other.name != manifest.name) {
            checked.problems.push(format!(
                "its tool {} is also a tool of {}; disable one of the two, or rename the tool",
                tool.name, other.name
            ));
        }
    }
    if let Some(rule) = settings.grants.iter().find(|rule| rule.gate && rule.plugin == manifest.name)
        && !rule.is_for(manifest, &captured.digest)
    {
        checked.problems.push(format!(
            "calls rely on the gate {} in another build ({}); give yours a name of its own",
            manifest.name, rule.source
        ));
    }
    let before = snapshot.plugin(&manifest.name);
    if let Some(before) =
        before.filter(|before| before.state == State::Live && before.fingerprint != captured.fingerprint)
    {
        match held_back(before, manifest, &loaded, &missing) {
            Some(reason) => checked.notes.push(format!("a running host holds it back: {reason}")),
            None => checked.notes.push(format!("it takes the place of {}", before.folder.display())),
        }
    }
    if loaded.exports.prompt_segment.is_some() {
        checked.notes.push("it contributes pieces of the system prompt, without any grant".into());
    }
    if is_gate(&loaded.exports) {
        checked.notes.push("it sees every call and may change or refuse it, without any grant".into());
    }
    checked.missing = missing;
    checked
}
