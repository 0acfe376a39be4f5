//! The operator's files: `astrarium.yaml`, the shipped policy, what the command line granted, and which plugins are switched
//! off.
//!
//! The config is the one in the home folder or the one named by `--config`, never one found in a workspace: a cloned
//! repository must not grant itself anything. Errors name the file and the place.

mod grants;
mod mistakes;

pub use grants::{Build, Granted, grant, granted, revoke};

use crate::grant::SecretSource;
use crate::limits::Limits;
use crate::model::recover::Policy;
use crate::permission::Permissions;
use crate::plugin::GrantRule;
use crate::price::Price;
use crate::prompt::{Segment, Stability, segments};
use crate::request::CacheLife;
use crate::yaml;
use anyhow::{Context as _, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// `astrarium.yaml`. Every key may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model, as `wire:name`.
    pub model: Option<String>,
    /// `zh` or `en`; else the locale decides.
    pub language: Option<String>,
    /// Steps a turn may take.
    pub max_steps: Option<u32>,
    /// Limit of an answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Who the agent is: the name of a persona, or a folder that holds `identity.md`.
    pub persona: Option<String>,
    /// The operator's part of the system prompt.
    pub prompt: PromptConfig,
    /// The window in tokens of every model that `context_windows` does not name.
    pub context_window: Option<u64>,
    /// Windows in tokens by model, as `wire:name`.
    pub context_windows: BTreeMap<String, u64>,
    /// The model that writes summaries, as `wire:name`; else the one that answers.
    pub summary_model: Option<String>,
    /// How long a provider is asked to keep what it cached: `5m` or `1h`.
    pub cache_life: CacheLife,
    /// Prices by model, as `wire:name`.
    pub prices: BTreeMap<String, Price>,
    /// The model that answers for a while when the other is overloaded, as `wire:name`.
    pub fallback_model: Option<String>,
    /// How patient we are with a server.
    pub retry: Policy,
    /// Limits of guests.
    pub limits: Limits,
    /// What plugins may do.
    #[serde(deserialize_with = "grants::rules")]
    pub grants: Vec<GrantRule>,
    /// Where secrets are that grants inject, by name.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Which calls run, are asked about, or are refused.
    pub permissions: Permissions,
    /// Agents that work for another one.
    pub agents: AgentsConfig,
    /// How native programs are run.
    pub process: ProcessConfig,
    /// Settings of single plugins, by name.
    pub plugins: BTreeMap<String, PluginConfig>,
}

/// Agents that work for another one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentsConfig {
    /// How deep agents may work for one another: 1 when only the session's own agent may start others, 0 when none may.
    pub depth: u32,
    /// Which model a word in an agent definition means, as `wire:name`: `haiku`, `sonnet`, `opus` or any other.
    pub models: BTreeMap<String, String>,
}

/// Deepest that agents may work for one another: with ten steps each, a mistake below that would already be a thousand.
const DEEPEST: u32 = 3;

impl Default for AgentsConfig {
    fn default() -> Self {
        Self { depth: 1, models: BTreeMap::new() }
    }
}

/// The operator's part of the system prompt. Each text is a segment of its own; a blank one is left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptConfig {
    /// Tokens that the system prompt may take; what does not fit is dropped by rank and named.
    pub tokens: Option<u64>,
    /// Whether a headless custom prompt, which stands alone, is told how memory works (SPEC 1.9).
    pub memory_mechanics: bool,
    /// In which words to answer, where the language alone does not say it.
    pub language: String,
    /// How to answer.
    pub output_style: String,
    /// A folder for passing notes.
    pub scratchpad: String,
    /// Notes on single models, by `wire:name`.
    pub model_notes: BTreeMap<String, String>,
}

impl PromptConfig {
    /// As segments, for this model.
    pub fn notes(&self, model: &str) -> Vec<Segment> {
        let model_note = self.model_notes.get(model).map(String::as_str).unwrap_or_default();
        let notes = [
            ("language", self.language.as_str()),
            ("output-style", self.output_style.as_str()),
            ("model-notes", model_note),
            ("scratchpad", self.scratchpad.as_str()),
        ];
        let segments = notes.into_iter().enumerate().map(|(at, (name, text))| Segment {
            source: "config (prompt:)".into(),
            ..segments::own(name, segments::order::NOTES + at as i32, Stability::Session, 3, text.to_owned())
        });
        segments.collect()
    }
}

/// How native programs are run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessConfig {
    /// What to do where the kernel has no Landlock.
    pub without_landlock: WithoutLandlock,
}

/// Whether programs run without the kernel's confinement of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutLandlock {
    /// They do not.
    #[default]
    Refuse,
    /// They do, and reach every file that this user can.
    Allow,
}

/// Settings of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginConfig {
    /// Values behind its `config` import, over the manifest's defaults.
    pub config: Map<String, Value>,
}

/// The shipped default policy.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shipped {
    /// What the plugins that ship may do.
    #[serde(deserialize_with = "grants::rules")]
    pub grants: Vec<GrantRule>,
    /// Which calls are asked about where the operator says nothing.
    #[serde(default)]
    pub permissions: Permissions,
}

/// `plugin-state.json` in the home folder, written by `plugin enable` and `plugin disable`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginState {
    disabled: BTreeSet<String>,
}

/// File name of the grants that the command line writes, in the home folder.
pub const GRANTS: &str = "grants.yaml";

/// File name of the switched-off list in the home folder.
pub const PLUGIN_STATE: &str = "plugin-state.json";

/// Bytes of an operator's file; the YAML reader has bounds of its own inside.
const LIMIT: u64 = 1 << 20;

impl Config {
    /// Reads the config. An absent file is the default one unless it was named on the command line.
    pub fn load(path: &Path, named: bool) -> Result<Self> {
        let Some(text) = read(path, named)? else { return Ok(Self::default()) };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut config: Config = yaml::from_str(&text).map_err(|reason| anyhow!("{}: {reason}", path.display()))?;
        // Before the file is put before the lines of grants: an error names it once.
        if let Some(mistake) = config.mistake() {
            bail!("{}: {}", path.display(), mistake.told(&text));
        }
        grants::say_where(&mut config.grants, path);
        Ok(config)
    }

    /// What a change of the config does not reach at once, a line each: fields of the limits in `late`, and what a session that
    /// is open has from its beginning.
    pub fn news(&self, old: &Config, late: &[&str]) -> Vec<String> {
        let kept = [
            ("model", self.model != old.model),
            ("language", self.language != old.language),
            ("persona", self.persona != old.persona),
            ("prompt", self.prompt != old.prompt),
            ("max_output_tokens", self.max_output_tokens != old.max_output_tokens),
            ("context_window", self.context_window != old.context_window),
            ("context_windows", self.context_windows != old.context_windows),
            ("summary_model", self.summary_model != old.summary_model),
            ("fallback_model", self.fallback_model != old.fallback_model),
            ("cache_life", self.cache_life != old.cache_life),
            ("prices", self.prices != old.prices),
            ("retry", self.retry != old.retry),
            ("agents", self.agents != old.agents),
        ];
        let kept: Vec<&str> = kept.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect();
        let mut news = Vec::new();
        if !kept.is_empty() {
            news.push(format!(
                "astrarium.yaml: {} counts from the next session on (/clear begins one)",
                kept.join(", ")
            ));
        }
        if !late.is_empty() && self.limits != old.limits {
            news.push(format!("astrarium.yaml: limits: {} needs a restart; the rest holds now", late.join(", ")));
        }
        news
    }

    /// Plugins that the config speaks of.
    pub fn named_plugins(&self) -> impl Iterator<Item = &str> {
        let granted = self.grants.iter().map(|grant| grant.plugin.as_str());
        granted.chain(self.plugins.keys().map(String::as_str))
    }
}

/// Grants and permission rules that ship with Astrarium; none where it runs without its share folder.
pub fn policy(share: &Path) -> Result<Shipped> {
    let path = share.join("policy.yaml");
    let Some(text) = read(&path, false)? else { return Ok(Shipped::default()) };
    let mut shipped: Shipped = yaml::from_str(&text).map_err(|reason| anyhow!("{}: {reason}", path.display()))?;
    grants::say_where(&mut shipped.grants, &path);
    Ok(shipped)
}

/// Plugins that are switched off.
pub fn disabled(home: &Path) -> Result<BTreeSet<String>> {
    let path = home.join(PLUGIN_STATE);
    let Some(text) = read(&path, false)? else { return Ok(BTreeSet::new()) };
    let state: PluginState = serde_json::from_str(&text)
        .with_context(|| format!("{} does not read; mend it, or remove it to enable every plugin", path.display()))?;
    Ok(state.disabled)
}

/// Switches a plugin on or off, by an atomic replacement of the file that running hosts watch.
pub fn set_disabled(home: &Path, plugin: &str, off: bool) -> Result<()> {
    let _alone = alone(home)?;
    let mut state = PluginState { disabled: disabled(home)? };
    match off {
        true => state.disabled.insert(plugin.to_owned()),
        false => state.disabled.remove(plugin),
    };
    let text = serde_json::to_string_pretty(&state).context("the switches do not become JSON")?;
    replace(home, PLUGIN_STATE, &format!("{text}\n"))
}

/// One command at a time reads what was decided and writes it anew; the system lets go of the lock when the process ends.
fn alone(home: &Path) -> Result<fs::File> {
    let path = home.join("operator.lock");
    let failed = || format!("cannot lock {}; check that the home folder is writable", path.display());
    let file = fs::File::create(&path).with_context(failed)?;
    file.lock().with_context(failed)?;
    Ok(file)
}

/// Puts a file of the home in place of the one there, in one step, so that a running host never reads half of it.
fn replace(home: &Path, name: &str, text: &str) -> Result<()> {
    let path = home.join(name);
    let failed = || format!("cannot write {}; check that the home folder is writable", path.display());
    let mut file = tempfile::NamedTempFile::new_in(home).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.persist(&path).with_context(failed)?;
    Ok(())
}

fn read(path: &Path, must_exist: bool) -> Result<Option<String>> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => return Ok(None),
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    if !meta.is_file() {
        bail!("{} is not a regular file; write one there, or name another", path.display());
    }
    if meta.len() > LIMIT {
        bail!("{} is larger than {LIMIT} bytes; no config needs that, so look what is in it", path.display());
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {} as UTF-8 text", path.display()))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&said(text));
    }

    fn said(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("astrarium.yaml");
        fs::write(&path, text).unwrap();
        match Config::load(&path, true) {
            Ok(config) => format!("{:?} {:?}", config.model, config.grants),
            Err(error) => error.to_string().replace(&folder.path().display().to_string(), "…"),
        }
    }

    #[test]
    fn an_empty_config_is_the_default() {
        check("\n", expect!["None []"]);
    }

    #[test]
    fn a_misspelt_capability_is_an_error_and_no_grant() {
        check(
            "grants:\n- { plugin: a, kvs: true }\n",
            expect![
                "…/astrarium.yaml: line 2, column 3: grants: a: unknown field `kvs`, expected one of `fs`, `http`, `process`, `env`, `kv`, `tasks`, `memory`, `skills`, `context`, `agents`"
            ],
        );
    }

    #[test]
    fn a_zero_limit_is_refused() {
        check(
            "limits: { tool_ms: 0 }\n",
            expect![
                "…/astrarium.yaml: line 1, column 20: limits: tool_ms: must be from 1 to 86400000; leave it out for the default"
            ],
        );
    }

    #[test]
    fn a_duplicate_key_is_an_error() {
        check(
            "model: a\nmodel: b\n",
            expect!["…/astrarium.yaml: line 2, column 1: duplicate mapping key: model; write it once"],
        );
    }

    #[test]
    fn every_mistake_has_its_line() {
        for (text, line) in [
            ("\nretry: { attempts: 0 }\n", "line 2, column 20: retry: attempts: must be from 1 to 100"),
            ("retry: { silence_s: 0 }\n", "line 1, column 21: retry: silence_s: must be from 1 to 86400"),
            ("max_steps: 0\n", "line 1, column 12: max_steps: must be at least 1"),
            ("\nlanguage: fr\n", "line 2, column 11: language: \"fr\" is none of zh, en"),
            ("agents:\n  depth: 9\n", "line 2, column 10: agents: depth: must be from 0 to 3"),
            ("context_window: 200\n", "line 1, column 17: context_window: is in tokens, and must be at least 1000"),
            (
                "context_windows:\n  \"openai:x\": 8\n",
                "line 2, column 15: context_windows: openai:x: is in tokens, and must be at least 1000",
            ),
            (
                "prices:\n  openai:x: { input: -1, output: 1 }\n",
                "line 2, column 13: prices: openai:x: -1 is no price; write money for a million tokens, 0 or more",
            ),
            (
                "secrets:\n  a b: { env: X }\n",
                "line 2, column 8: secrets: a b: is no name of a secret; use letters, digits, _ and -, at most 64",
            ),
            (
                "secrets:\n  ads: { file: token }\n",
                "line 2, column 8: secrets: ads: file: token is not absolute; write the whole path",
            ),
            (
                "grants:\n- plugin: a\n  http: [{ origin: 'https://x.org', inject: { authorization: 'Bearer ${ads}' } }]\n",
                "line 2: grants: a: inject: names the secret ads, which is not under secrets:; add it there, as in \
                 secrets: { ads: { env: NAME } }",
            ),
        ] {
            assert_eq!(said(text), format!("…/astrarium.yaml: {line}"));
        }
        let names = "names no model; write anthropic:NAME, openai:NAME (also for compatible servers, with \
                     OPENAI_BASE_URL) or scripted:FILE";
        for (text, line) in [
            ("model: gpt\n", "line 1, column 8: model: \"gpt\""),
            ("summary_model: 'x:y'\n", "line 1, column 16: summary_model: \"x:y\""),
            ("\nfallback_model: 'openai:'\n", "line 2, column 17: fallback_model: \"openai:\""),
            ("agents: { models: { haiku: y } }\n", "line 1, column 28: agents: models: haiku: \"y\""),
            ("context_windows: { gpt: 9000 }\n", "line 1, column 25: context_windows: gpt: \"gpt\""),
        ] {
            assert_eq!(said(text), format!("…/astrarium.yaml: {line} {names}"));
        }
    }

    #[test]
    fn a_negative_limit_is_an_error() {
        check(
            "limits: { tool_ms: -1 }\n",
            expect!["…/astrarium.yaml: line 1, column 20: this must be a whole number from 0 up"],
        );
    }
}
