//! The registry: scans the plugin folders, loads what is new, keeps what is good, and publishes a snapshot.

use super::effective::{environment, held_back, odd_grants};
use super::folder::{self, Captured, Unreadable};
use super::load::load;
use super::snapshot::{Plugin, Snapshot, State, Tool};
use super::{clash, gates, life, told};
use crate::audit::{Entry, Kind};
use crate::grant::{Capabilities, SecretSource};
use crate::manifest::Manifest;
use crate::permission::{self, Rules};
use crate::runtime::{Loaded, Runtime, Services};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// A folder of plugin folders. Of two plugins with one name, the one in the later root counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRoot {
    /// Where it is; it may be absent.
    pub path: PathBuf,
}

/// What an operator, or the shipped default policy, grants to a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRule {
    /// Plugin name.
    pub plugin: String,
    /// SHA-256 that the component must have, or any.
    pub digest: Option<String>,
    /// SHA-256 that the manifest must have, or any.
    pub manifest: Option<String>,
    /// Whether calls rely on it as a gate: while it is enabled and cannot judge, every call is refused, also where it has
    /// never been loaded here.
    pub gate: bool,
    /// What is granted.
    pub capabilities: Capabilities,
    /// Where it is written: a file, and a line where that is known.
    pub source: String,
}

impl GrantRule {
    /// Whether it is for this build of the plugin.
    pub(super) fn is_for(&self, manifest: &Manifest, digest: &str) -> bool {
        let fits = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        self.plugin == manifest.name && fits(&self.digest, digest) && fits(&self.manifest, &manifest.digest)
    }
}

/// What the operator decided. Set by the host composition; replaced whole when a config changes.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where plugins lie.
    pub roots: Vec<PluginRoot>,
    /// Grants, shipped and the operator's.
    pub grants: Vec<GrantRule>,
    /// What the operator took back, whoever granted it.
    pub revoked: Vec<GrantRule>,
    /// The operator's values behind each plugin's `config` import.
    pub configs: BTreeMap<String, Map<String, Value>>,
    /// Where the secrets are that grants inject, by name.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Which calls run, are asked about, or are refused.
    pub permissions: Rules,
    /// Plugins switched off.
    pub disabled: BTreeSet<String>,
    /// The workspace: what a grant of `workspace` opens.
    pub workspace: PathBuf,
    /// Real paths that no grant reaches, whatever folder covers them.
    pub kept_out: Vec<PathBuf>,
    /// The library: what a grant of `library` opens.
    pub library: PathBuf,
    /// Whether native programs run where the kernel has no Landlock.
    pub without_landlock: bool,
    /// Folders of skills outside of the workspace: what a grant of `skills` opens.
    pub skills: Vec<PathBuf>,
}

/// Loads and publishes. Shared by everything that calls a plugin.
pub struct Registry {
    runtime: Arc<Runtime>,
    services: Services,
    settings: RwLock<Settings>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// One refresh at a time; each sees all that came before it.
    refreshing: tokio::sync::Mutex<()>,
}

impl Registry {
    /// An empty registry; [`Registry::refresh`] fills it.
    pub fn new(runtime: Arc<Runtime>, services: Services, settings: Settings) -> Self {
        Self {
            runtime,
            services,
            settings: RwLock::new(settings),
            snapshot: RwLock::default(),
            refreshing: tokio::sync::Mutex::default(),
        }
    }

    /// The plugins as they are now. A caller keeps what it captured for as long as it needs it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The runtime that calls go to.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// What host functions work with.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// What the operator decided.
    pub fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what the operator decided; takes effect with the next refresh.
    pub fn set_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Reads all folders again, loads what changed and publishes the result in one swap. Answers with one line for each
    /// plugin that changed its state or could not be taken over.
    pub async fn refresh(&self) -> Vec<String> {
        let _one = self.refreshing.lock().await;
        let settings = self.settings();
        let old = self.snapshot();
        let mut problems = Vec::new();
        let candidates = match tokio::task::spawn_blocking({
            let (roots, limit) = (settings.roots.clone(), self.runtime.limits().component_bytes);
            move || scan(&roots, limit)
        })
        .await
        {
            Ok((candidates, mut unread)) => {
                problems.append(&mut unread);
                candidates
            }
            Err(error) => return vec![format!("the plugin folders could not be read: {error}")],
        };
        let mut plugins = Vec::new();
        for candidate in candidates {
            plugins.push(match candidate {
                Ok(captured) => self.take(&settings, &old, captured).await,
                Err(unreadable) => keep_or_fail(&settings, &old, unreadable),
            });
        }
        clash::hold_back(&mut plugins, &settings, &old);
        let (known_gates, unknown) = match self.services.store.gates() {
            Ok(gates) => (gates, None),
            Err(error) => (BTreeMap::new(), Some(error.to_string())),
        };
        // What is not known of their folders makes no gate less.
        let last = |name: &str| self.services.store.lives().unwrap_or_default().remove(name).map(|(_, life)| life);
        plugins.extend(gates::vanished(&settings, &old, &plugins, &known_gates, last));
        gates::refuse_lost(&mut plugins, &old, &known_gates, last);
        // Who was live before keeps its tool names against a newcomer, what ships against what was added, who may run
        // against who waits; who is switched off keeps them from nobody.
        let was_live = |plugin: &Plugin| old.plugin(&plugin.name).is_some_and(|before| before.state == State::Live);
        plugins.sort_by_key(|plugin| {
            (plugin.state == State::Disabled, !was_live(plugin), plugin.state == State::Waiting, plugin.root)
        });
        let relied_on = settings.grants.iter().filter(|rule| rule.gate && !settings.disabled.contains(&rule.plugin));
        let relied_on: BTreeMap<&str, &GrantRule> = relied_on.map(|rule| (rule.plugin.as_str(), rule)).collect();
        let mut new = Snapshot::build(plugins, &known_gates, &relied_on);
        new.permissions.clone_from(&settings.permissions);
        new.looked = true;
        // Without the record nobody knows whether a gate is missing.
        new.broken_gates.extend(unknown.map(|error| ("the record of gates".to_owned(), error)));
        self.remember_gates(&new, &known_gates);
        problems.extend(told::changes(&old, &new));
        new.notes = odd_grants(&settings, &new);
        // While a plugin is not loaded, nobody knows its tools.
        if new.plugins.iter().all(|plugin| plugin.code.is_some()) {
            let tools: Vec<&str> = new.tools().map(|(_, tool)| tool.name.as_str()).collect();
            new.notes.extend(permission::idle(&new.permissions.own, &tools));
        }
        problems.extend(new.notes.iter().filter(|note| !old.notes.contains(note)).cloned());
        if old.permissions != new.permissions && old.looked {
            problems.push("the permission rules are others now".into());
            let entry = Entry { kind: Kind::Permission, what: "rules".into(), ..Entry::default() };
            if let Err(error) = self.services.audit.put(vec![entry.came_to("changed", "")]) {
                problems.push(format!("what changed is not on the audit: {error}"));
            }
        }
        // A change takes effect all the same: a plugin that was switched off stays off, and calls that cannot be recorded
        // are refused one by one.
        if let Err(error) = self.services.audit.put_lives(|known| life::news(known, &settings, &old, &new)) {
            problems.push(format!("what changed is not on the audit: {error}"));
        }
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        tracing::debug!(step = "published");
        problems
    }

    async fn take(&self, settings: &Settings, old: &Snapshot, captured: Captured) -> Plugin {
        let before = old.plugin(&captured.manifest.name);
        let same = before
            .filter(|plugin| plugin.fingerprint == captured.fingerprint)
            .and_then(|plugin| plugin.code.as_ref().map(|(loaded, _)| (loaded.clone(), plugin.tools.clone())));
        let is_new = same.is_none();
        // A version that was held back was loaded then.
        let held = before.and_then(|plugin| plugin.held.as_ref());
        let held = held.filter(|version| version.fingerprint == captured.fingerprint);
        let held = held.and_then(|version| Some((version.loaded.clone()?, version.tools.clone())));
        let code = match same.or(held) {
            Some(code) => Ok(Some(code)),
            // Nothing of a plugin that is switched off is compiled or run.
            None if settings.disabled.contains(&captured.manifest.name) => Ok(None),
            None => {
                let loaded = load(&self.runtime, &self.services, &captured).await;
                loaded.map(|(code, tools)| Some((code, Arc::new(tools))))
            }
        };
        let Captured { folder, root, manifest, digest, fingerprint, .. } = captured;
        let failed = |reason: String| {
            let (folder, name) = (folder.clone(), manifest.name.clone());
            keep_or_fail(settings, old, Unreadable { folder, root, name, reason })
        };
        let (loaded, tools) = match code {
            Ok(code) => code.map_or_else(Default::default, |(loaded, tools)| (Some(loaded), tools)),
            Err(reason) => return failed(reason),
        };
        let refused = before.filter(|before| is_new && before.state == State::Live).and_then(|before| {
            let (_, missing) = environment(settings, &manifest, &digest);
            held_back(before, &manifest, loaded.as_ref()?, &missing)
        });
        let before = refused.map(failed);
        let version = Version { folder, root, digest, fingerprint, manifest: Arc::new(manifest), loaded, tools };
        match before {
            Some(before) => Plugin { held: Some(Arc::new(version)), ..before },
            None => published(settings, version, None),
        }
    }

    fn remember_gates(&self, snapshot: &Snapshot, known: &gates::Known) {
        let loaded = snapshot.plugins.iter().filter(|plugin| plugin.code.is_some() && plugin.state != State::Failed);
        for plugin in loaded {
            let hooks = plugin.gates();
            let same = known.get(&plugin.name).map_or(hooks.is_empty(), |known| *known == hooks);
            if !same && let Err(error) = self.services.store.remember_gate(&plugin.name, &hooks) {
                tracing::warn!("{error}");
            }
        }
    }
}

/// A version that loaded, or may.
pub(super) struct Version {
    pub(super) folder: PathBuf,
    pub(super) root: usize,
    pub(super) digest: String,
    pub(super) fingerprint: String,
    pub(super) manifest: Arc<Manifest>,
    /// None while it is switched off and has not been loaded yet.
    pub(super) loaded: Option<Arc<Loaded>>,
    pub(super) tools: Arc<Vec<Tool>>,
}

/// A version under the grants of now.
fn published(settings: &Settings, version: Version, error: Option<String>) -> Plugin {
    let Version { folder, root, digest, fingerprint, manifest, loaded, tools } = version;
    let (env, missing) = environment(settings, &manifest, &digest);
    let grants = settings.grants.iter().filter(|rule| rule.is_for(&manifest, &digest));
    let granted_by = grants.filter(|rule| !rule.capabilities.is_empty()).map(|rule| rule.source.clone()).collect();
    let taken_back = settings.revoked.iter().filter(|rule| rule.plugin == manifest.name && !missing.is_empty());
    let taken_back = taken_back.map(|rule| rule.source.clone()).collect();
    let state = match (settings.disabled.contains(&manifest.name), missing.is_empty()) {
        (true, _) => State::Disabled,
        (false, false) => State::Waiting,
        (false, true) => State::Live,
    };
    Plugin {
        name: manifest.name.clone(),
        folder,
        root,
        digest,
        fingerprint,
        state,
        manifest: Some(manifest),
        granted: env.effective.clone(),
        code: loaded.map(|loaded| (loaded, Arc::new(env))),
        tools,
        missing,
        granted_by,
        taken_back,
        error,
        held: None,
    }
}

/// The version before stays when there is one that runs, under the grants of now; else the plugin is listed as failed.
pub(super) fn keep_or_fail(settings: &Settings, old: &Snapshot, unreadable: Unreadable) -> Plugin {
    let Unreadable { folder, root, name, reason } = unreadable;
    let before = old.plugin(&name).and_then(|before| {
        let (loaded, _) = before.code.as_ref()?;
        Some(Version {
            folder: before.folder.clone(),
            root: before.root,
            digest: before.digest.clone(),
            fingerprint: before.fingerprint.clone(),
            manifest: before.manifest.clone()?,
            loaded: Some(loaded.clone()),
            tools: before.tools.clone(),
        })
    });
    match before {
        Some(before) => published(settings, before, Some(format!("the version before goes on: {reason}"))),
        None => {
            let state = if settings.disabled.contains(&name) { State::Disabled } else { State::Failed };
            without_code(name, folder, root, state, reason)
        }
    }
}

/// A plugin of which there is nothing to run.
pub(super) fn without_code(name: String, folder: PathBuf, root: usize, state: State, error: String) -> Plugin {
    Plugin {
        name,
        folder,
        root,
        digest: String::new(),
        fingerprint: String::new(),
        state,
        manifest: None,
        code: None,
        tools: Arc::default(),
        granted: Capabilities::default(),
        missing: Capabilities::default(),
        granted_by: Vec::new(),
        taken_back: Vec::new(),
        error: Some(error),
        held: None,
    }
}

/// Every plugin folder of every root, later roots over earlier ones, and what could not be read at all. A folder that
/// does not read takes the place of none that does.
fn scan(roots: &[PluginRoot], limit: u64) -> (Vec<Result<Captured, Unreadable>>, Vec<String>) {
    let mut problems = Vec::new();
    let mut by_name: BTreeMap<String, Result<Captured, Unreadable>> = BTreeMap::new();
    for (place, root) in roots.iter().enumerate() {
        let folders = folder::list(&root.path).unwrap_or_else(|reason| {
            problems.push(reason);
            Vec::new()
        });
        for path in folders {
            let captured = folder::capture(&path, place, limit);
            let name = match &captured {
                Ok(captured) => captured.manifest.name.clone(),
                Err(unreadable) => unreadable.name.clone(),
            };
            match (by_name.get(&name), captured) {
                (Some(Ok(kept)), Err(unreadable)) => problems.push(format!(
                    "{} does not take the place of {}: {}",
                    path.display(),
                    kept.folder.display(),
                    unreadable.reason
                )),
                (earlier, captured) => {
                    if let Some(Ok(shadowed)) = earlier {
                        problems.push(format!("{} takes the place of {}", path.display(), shadowed.folder.display()));
                    }
                    by_name.insert(name, captured);
                }
            }
        }
    }
    (by_name.into_values().collect(), problems)
}
