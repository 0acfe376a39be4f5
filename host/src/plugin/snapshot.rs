//! The registry at one moment, immutable: which plugins there are, what they answer, and which could not be loaded.

use super::gates::Known;
use super::registry::{GrantRule, Version};
use crate::arguments::Schema;
use crate::catalogue::Entry;
use crate::grant::Capabilities;
use crate::manifest::Manifest;
use crate::permission::Rules;
use crate::runtime::{Exports, GuestEnv, Loaded};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A tool of a plugin.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The plugin's own one-line summary.
    pub summary: Option<String>,
    /// Whole description.
    pub description: String,
    /// Arguments.
    pub schema: Schema,
    /// Whether a call changes nothing.
    pub read_only: bool,
}

/// How often each tool was called on this home, by name.
pub type Uses = BTreeMap<String, u64>;

/// Where a plugin stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It answers.
    Live,
    /// It is loaded, and waits for grants; its calls are refused with the line that would grant them.
    Waiting,
    /// An operator switched it off.
    Disabled,
    /// It could not be loaded.
    Failed,
}

/// A plugin, as loaded.
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// Place of its root among the roots; what ships is 0.
    pub root: usize,
    /// SHA-256 of the component; empty when there is none.
    pub digest: String,
    /// Over manifest and component.
    pub fingerprint: String,
    /// Where it stands.
    pub state: State,
    /// What it says of itself; none when it did not read.
    pub manifest: Option<Arc<Manifest>>,
    /// The component and who it runs as; none when it could not be loaded, or is switched off and was not.
    pub code: Option<(Arc<Loaded>, Arc<GuestEnv>)>,
    /// Its tools.
    pub tools: Arc<Vec<Tool>>,
    /// What it may do.
    pub granted: Capabilities,
    /// What it asked for and may not do.
    pub missing: Capabilities,
    /// Where its grants are written.
    pub granted_by: Vec<String>,
    /// Lines that took back what is missing: they win over every grant in astrarium.yaml.
    pub taken_back: Vec<String>,
    /// Why it could not be loaded, or why a newer version of it is held back.
    pub error: Option<String>,
    /// The newer version that is held back, loaded.
    pub(super) held: Option<Arc<Version>>,
}

/// All plugins at one moment.
#[derive(Default)]
pub struct Snapshot {
    /// In the order of their hooks.
    pub plugins: Vec<Arc<Plugin>>,
    tools: BTreeMap<String, (Arc<Plugin>, usize)>,
    /// Whether the folders have been looked at: at the first look everything is new.
    pub(super) looked: bool,
    /// The permission rules in force.
    pub permissions: Rules,
    /// What is odd about the operator's files, a line each.
    pub notes: Vec<String>,
    /// Gates that are enabled and cannot judge, with the reason: while there is one, every call is refused.
    pub broken_gates: Vec<(String, String)>,
}

/// A plugin, as `plugin list --json` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of the component; empty when it could not be loaded.
    pub digest: String,
    /// SHA-256 of its manifest; empty when it did not read.
    pub manifest: String,
    /// False when an operator switched it off.
    pub enabled: bool,
    /// Where it stands.
    pub state: State,
    /// Whether its code is there: what is switched off is not loaded, and its tools and hooks are not known.
    pub loaded: bool,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Names of its hooks.
    pub hooks: Vec<String>,
    /// What it asks for.
    pub requested: Capabilities,
    /// What it may do.
    pub granted: Capabilities,
    /// Where that is written.
    pub granted_by: Vec<String>,
    /// Lines that took back what is missing: they win over every grant in astrarium.yaml.
    pub taken_back: Vec<String>,
    /// What it asked for and may not do.
    pub missing: Capabilities,
    /// Why it could not be loaded, or why a newer version is held back.
    pub error: Option<String>,
    /// Whether it contributes pieces of the prompt.
    pub prompt: bool,
    /// One line.
    pub description: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// The line for `grants:` that would grant what is missing.
    pub grant_line: Option<String>,
    /// The command that would.
    pub grant_command: Option<String>,
}

impl Plugin {
    /// The hooks it exports.
    pub fn hooks(&self) -> Vec<&'static str> {
        self.code.iter().flat_map(|(loaded, _)| loaded.exports.hooks()).collect()
    }

    /// SHA-256 of the component; empty when there is none.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether it judges or changes calls.
    pub fn is_gate(&self) -> bool {
        !self.gates().is_empty()
    }

    /// The hooks by which it judges or changes calls.
    pub(super) fn gates(&self) -> Vec<&'static str> {
        self.code.as_ref().map(|(loaded, _)| gates(&loaded.exports)).unwrap_or_default()
    }

    /// Whether it may start other agents.
    pub fn starts_agents(&self) -> bool {
        self.code.as_ref().is_some_and(|(_, env)| env.effective.agents)
    }

    /// Place of its hooks.
    pub fn order(&self) -> i32 {
        self.manifest.as_ref().map_or(0, |manifest| manifest.order)
    }

    /// Why it is not the gate that calls rely on, if it is not.
    fn unfit(&self, rule: &GrantRule) -> Option<String> {
        if !self.manifest.as_ref().is_some_and(|manifest| rule.is_for(manifest, self.digest())) {
            return Some("it is another build than the one that is relied on; give yours a name of its own".into());
        }
        let judges = self.code.as_ref().is_some_and(|(loaded, _)| loaded.exports.pre_tool_use.is_some());
        (!judges).then(|| "it does not export pre-tool-use".into())
    }

    /// For lists and scripts.
    pub fn status(&self) -> Status {
        Status {
            name: self.name.clone(),
            version: self.manifest.as_ref().map(|manifest| manifest.version.clone()).unwrap_or_default(),
            digest: self.digest().to_owned(),
            manifest: self.manifest.as_ref().map(|manifest| manifest.digest.clone()).unwrap_or_default(),
            enabled: self.state != State::Disabled,
            state: self.state,
            loaded: self.code.is_some(),
            tools: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            hooks: self.hooks().into_iter().map(str::to_owned).collect(),
            prompt: self.code.as_ref().is_some_and(|(loaded, _)| loaded.exports.prompt_segment.is_some()),
            requested: self.manifest.as_ref().map(|manifest| manifest.requests.clone()).unwrap_or_default(),
            granted: self.granted.clone(),
            granted_by: self.granted_by.clone(),
            taken_back: self.taken_back.clone(),
            missing: self.missing.clone(),
            error: self.error.clone(),
            description: self.manifest.as_ref().map(|manifest| manifest.description.clone()).unwrap_or_default(),
            folder: self.folder.clone(),
            grant_line: (!self.missing.is_empty() && self.taken_back.is_empty())
                .then(|| self.missing.grant_lines(&self.name)),
            grant_command: (!self.missing.is_empty()).then(|| format!("astrarium plugin grant {}", self.name)),
        }
    }
}

/// Whether exports judge or change calls: such a plugin fails closed.
pub(super) fn is_gate(exports: &Exports) -> bool {
    !gates(exports).is_empty()
}

/// The hooks that judge or change calls.
fn gates(exports: &Exports) -> Vec<&'static str> {
    let hooks = [("pre-tool-use", exports.pre_tool_use.is_some()), ("post-tool-use", exports.post_tool_use.is_some())];
    hooks.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

impl Snapshot {
    /// The tools as the catalogue sees them, by name.
    pub fn entries<'a>(&'a self, uses: &Uses) -> Vec<Entry<'a>> {
        let tools = self.tools().map(|(plugin, tool)| Entry {
            name: &tool.name,
            plugin: &plugin.name,
            built_in: plugin.root == 0,
            summary: tool.summary.as_deref(),
            description: &tool.description,
            schema: &tool.schema.canonical,
            deferred: plugin.manifest.as_ref().is_some_and(|manifest| manifest.deferred),
            uses: uses.get(&tool.name).copied().unwrap_or(0),
            starts_agents: plugin.starts_agents(),
        });
        tools.collect()
    }

    /// Builds the snapshot. `plugins` come in the order in which they may claim tool names; one that claims a name of
    /// another fails. `gates` are names of plugins that were gates when they last loaded, `relied_on`
    /// those of enabled gates that calls rely on, each with the digest that it must have, or none where any build will do.
    pub(super) fn build(plugins: Vec<Plugin>, gates: &Known, relied_on: &BTreeMap<&str, &GrantRule>) -> Self {
        let mut snapshot = Snapshot::default();
        let mut kept = Vec::new();
        for mut plugin in plugins {
            let clash = snapshot.clash(&plugin);
            let claims_names = clash.is_none() && plugin.state != State::Failed;
            if clash.is_some() {
                plugin.error = clash;
                if plugin.state != State::Disabled {
                    plugin.state = State::Failed;
                }
            }
            let plugin = Arc::new(plugin);
            if claims_names {
                for (place, tool) in plugin.tools.iter().enumerate() {
                    snapshot.tools.insert(tool.name.clone(), (plugin.clone(), place));
                }
            }
            let must = relied_on.get(plugin.name.as_str());
            let was_gate = plugin.is_gate() || must.is_some() || gates.contains_key(&plugin.name);
            let broken = match plugin.state {
                State::Failed if was_gate => Some(plugin.error.clone().unwrap_or_default()),
                State::Waiting if was_gate => {
                    Some(format!("it waits for a grant: {}", plugin.missing.grant_lines(&plugin.name)))
                }
                State::Live => must.and_then(|rule| plugin.unfit(rule)),
                _ => None,
            };
            snapshot.broken_gates.extend(broken.map(|reason| (plugin.name.clone(), reason)));
            kept.push(plugin);
        }
        for name in relied_on.keys().filter(|name| !kept.iter().any(|plugin| plugin.name == **name)) {
            snapshot.broken_gates.push(((*name).to_owned(), "it is not there".into()));
        }
        // Gates that calls rely on judge last, whatever order others ask for: nothing changes a call after them.
        let place = |plugin: &Plugin| (relied_on.contains_key(plugin.name.as_str()), plugin.order());
        kept.sort_by(|a, b| (place(a), &a.name).cmp(&(place(b), &b.name)));
        snapshot.plugins = kept;
        snapshot
    }

    fn clash(&self, plugin: &Plugin) -> Option<String> {
        plugin.tools.iter().find_map(|tool| {
            let (other, _) = self.tools.get(&tool.name)?;
            Some(format!(
                "its tool {} is also a tool of {}; disable one of the two, or rename the tool",
                tool.name, other.name
            ))
        })
    }

    /// A tool by name, with its plugin.
    pub fn tool(&self, name: &str) -> Option<(&Arc<Plugin>, &Tool)> {
        self.tools.get(name).map(|(plugin, place)| (plugin, &plugin.tools[*place]))
    }

    /// All tools with their plugins, by name.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Tool)> {
        self.tools.values().map(|(plugin, place)| (plugin, &plugin.tools[*place]))
    }

    /// A plugin by name.
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// Live plugins with a hook, in the hooks' order.
    pub fn hooks<'a>(
        &'a self,
        exported: impl Fn(&Exports) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a Arc<Plugin>, &'a Arc<Loaded>, &'a Arc<GuestEnv>)> {
        self.plugins.iter().filter(|plugin| plugin.state == State::Live).filter_map(move |plugin| {
            let (loaded, env) = plugin.code.as_ref()?;
            exported(&loaded.exports).then_some((plugin, loaded, env))
        })
    }
}
