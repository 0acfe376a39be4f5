//! The registry: scans the plugin folders, loads what is new, keeps what is good, and publishes a snapshot.

use super::folder::{self, Captured, Unreadable};
use super::load::{load, merge_config};
use super::snapshot::{Plugin, Snapshot, State, is_gate};
use crate::grant::{Capabilities, FsMode, Root};
use crate::runtime::{GuestEnv, Loaded, Preopen, Runtime, Services};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
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
    /// Whether calls rely on it as a gate: while it is enabled and cannot judge, every call is refused, also where it has
    /// never been loaded here.
    pub gate: bool,
    /// What is granted.
    pub capabilities: Capabilities,
}

/// What the operator decided. Set by the host composition; replaced whole when a config changes.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where plugins lie.
    pub roots: Vec<PluginRoot>,
    /// Grants, shipped and the operator's.
    pub grants: Vec<GrantRule>,
    /// The operator's values behind each plugin's `config` import.
    pub configs: BTreeMap<String, Map<String, Value>>,
    /// Plugins switched off.
    pub disabled: BTreeSet<String>,
    /// The workspace: what a grant of `workspace` opens.
    pub workspace: PathBuf,
    /// Real paths that no grant reaches, whatever folder covers them.
    pub kept_out: Vec<PathBuf>,
    /// The library: what a grant of `library` opens.
    pub library: PathBuf,
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
        // Who was live before keeps its tool names against a newcomer.
        plugins.sort_by_key(|plugin| !old.plugin(&plugin.name).is_some_and(|before| before.state == State::Live));
        let gates = self.services.store.gates().unwrap_or_else(|error| {
            problems.push(error.to_string());
            Vec::new()
        });
        let relied_on = settings.grants.iter().filter(|rule| rule.gate && !settings.disabled.contains(&rule.plugin));
        let relied_on: BTreeSet<&str> = relied_on.map(|rule| rule.plugin.as_str()).collect();
        let new = Snapshot::build(plugins, &gates, &relied_on);
        self.remember_gates(&new, &gates);
        problems.extend(changes(&old, &new));
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        problems
    }

    async fn take(&self, settings: &Settings, old: &Snapshot, captured: Captured) -> Plugin {
        let before = old.plugin(&captured.manifest.name).filter(|plugin| plugin.folder == captured.folder);
        let same = before
            .filter(|plugin| plugin.fingerprint == captured.fingerprint)
            .and_then(|plugin| plugin.code.as_ref().map(|(loaded, _)| (loaded.clone(), plugin.tools.clone())));
        let code = match same {
            Some(code) => Ok(code),
            None => load(&self.runtime, &self.services, &captured).await.map(|(code, tools)| (code, Arc::new(tools))),
        };
        let failed = |reason: String| {
            let (folder, name) = (captured.folder.clone(), captured.manifest.name.clone());
            keep_or_fail(settings, old, Unreadable { folder, name, reason })
        };
        let (loaded, tools) = match code {
            Ok(code) => code,
            Err(reason) => return failed(reason),
        };
        let name = captured.manifest.name.clone();
        let enabled = !settings.disabled.contains(&name);
        let (env, missing) = environment(settings, &captured, &loaded);
        if let Some(reason) = before.and_then(|before| held_back(before, &captured, &loaded, &missing)) {
            return failed(reason);
        }
        Plugin {
            version: captured.manifest.version.clone(),
            description: captured.manifest.description.clone(),
            folder: captured.folder.clone(),
            order: captured.manifest.order,
            fingerprint: captured.fingerprint,
            state: match (enabled, missing.is_empty()) {
                (false, _) => State::Disabled,
                (true, false) => State::Waiting,
                (true, true) => State::Live,
            },
            code: Some((loaded, Arc::new(env))),
            tools,
            requested: captured.manifest.requests.clone(),
            missing,
            error: None,
            name,
        }
    }

    fn remember_gates(&self, snapshot: &Snapshot, known: &[String]) {
        for plugin in snapshot.plugins.iter().filter(|plugin| plugin.code.is_some()) {
            if plugin.is_gate() != known.contains(&plugin.name)
                && let Err(error) = self.services.store.remember_gate(&plugin.name, plugin.is_gate())
            {
                tracing::warn!("{error}");
            }
        }
    }
}

/// Every plugin folder of every root, later roots over earlier ones, and what could not be read at all.
fn scan(roots: &[PluginRoot], limit: u64) -> (Vec<Result<Captured, Unreadable>>, Vec<String>) {
    let mut problems = Vec::new();
    let mut by_name: BTreeMap<String, Result<Captured, Unreadable>> = BTreeMap::new();
    for root in roots {
        let folders = folder::list(&root.path).unwrap_or_else(|reason| {
            problems.push(reason);
            Vec::new()
        });
        for path in folders {
            let captured = folder::capture(&path, limit);
            let name = match &captured {
                Ok(captured) => captured.manifest.name.clone(),
                Err(unreadable) => unreadable.name.clone(),
            };
            if let Some(Ok(shadowed)) = by_name.insert(name, captured) {
                problems.push(format!("{} takes the place of {}", path.display(), shadowed.folder.display()));
            }
        }
    }
    (by_name.into_values().collect(), problems)
}

/// The version before stays when there is one that runs; else the plugin is listed as failed.
fn keep_or_fail(settings: &Settings, old: &Snapshot, unreadable: Unreadable) -> Plugin {
    let Unreadable { folder, name, reason } = unreadable;
    let enabled = !settings.disabled.contains(&name);
    let before = old.plugin(&name).filter(|plugin| plugin.folder == folder && plugin.code.is_some());
    match before {
        Some(before) => Plugin {
            name,
            version: before.version.clone(),
            description: before.description.clone(),
            folder,
            order: before.order,
            fingerprint: before.fingerprint,
            state: match (enabled, before.missing.is_empty()) {
                (false, _) => State::Disabled,
                (true, false) => State::Waiting,
                (true, true) => State::Live,
            },
            code: before.code.clone(),
            tools: before.tools.clone(),
            requested: before.requested.clone(),
            missing: before.missing.clone(),
            error: Some(format!("the version before goes on: {reason}")),
        },
        None => Plugin {
            name,
            version: String::new(),
            description: String::new(),
            folder,
            order: 0,
            fingerprint: [0; 32],
            state: if enabled { State::Failed } else { State::Disabled },
            code: None,
            tools: Arc::default(),
            requested: Capabilities::default(),
            missing: Capabilities::default(),
            error: Some(reason),
        },
    }
}

/// The capability ratchet: a version that asks for more than is granted, or that lost a gate which calls rely on, does
/// not take the place of one that runs.
fn held_back(before: &Plugin, captured: &Captured, loaded: &Loaded, missing: &Capabilities) -> Option<String> {
    if before.state != State::Live || before.fingerprint == captured.fingerprint {
        return None;
    }
    if !missing.is_empty() {
        let line = missing.grant_lines(&before.name);
        return Some(format!(
            "version {} asks for more than is granted; grant it with {line}",
            captured.manifest.version
        ));
    }
    if before.is_gate() && !is_gate(&loaded.exports) {
        return Some(format!(
            "version {} no longer exports the gate that calls rely on; disable the plugin first if that is meant",
            captured.manifest.version
        ));
    }
    None
}

/// Who the plugin runs as, and what it asked for in vain.
fn environment(settings: &Settings, captured: &Captured, loaded: &Loaded) -> (GuestEnv, Capabilities) {
    let name = &captured.manifest.name;
    let fits =
        |rule: &&GrantRule| rule.plugin == *name && rule.digest.as_ref().is_none_or(|digest| *digest == loaded.digest);
    let granted =
        settings.grants.iter().filter(fits).fold(Capabilities::default(), |all, rule| all.join(&rule.capabilities));
    let effective = captured.manifest.requests.meet(&granted);
    let missing = captured.manifest.requests.missing(&effective);
    let preopens = effective.fs.iter().map(|rule| {
        let (host, guest): (&Path, String) = match &rule.path {
            Root::Workspace => (&settings.workspace, "/workspace".into()),
            Root::Library => (&settings.library, "/library".into()),
            Root::Folder(path) => (path, path.to_string_lossy().into_owned()),
        };
        Preopen { host: host.to_owned(), guest, writable: rule.mode == FsMode::Rw }
    });
    let preopens: Vec<Preopen> = preopens.collect();
    let covered = |place: &&PathBuf| {
        preopens.iter().any(|folder| place.starts_with(folder.host.canonicalize().as_ref().unwrap_or(&folder.host)))
    };
    let env = GuestEnv {
        plugin: name.clone(),
        digest: loaded.digest.clone(),
        kept_out: settings.kept_out.iter().filter(covered).cloned().collect(),
        preopens,
        config: merge_config(&captured.manifest.config, settings.configs.get(name)),
        effective,
    };
    (env, missing)
}

/// What changed between two snapshots, a line each.
fn changes(old: &Snapshot, new: &Snapshot) -> Vec<String> {
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
    for gone in old.plugins.iter().filter(|plugin| new.plugin(&plugin.name).is_none()) {
        lines.push(format!("plugin {} is gone", gone.name));
    }
    lines
}

/// The part of a digest that people read.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
