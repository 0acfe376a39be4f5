//! From a name to a model: which one is meant, and where its key and its address come from. It asks no model anything.
//!
//! Invariant: the environment is read through a closure that the street hands in, so that nothing here depends on the
//! process it runs in.

use super::anthropic::Anthropic;
use super::openai::OpenAi;
use super::scripted::Scripted;
use super::wire::{Key, Limits};
use super::{Model, ModelError};
use reqwest::Url;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

const ANTHROPIC_BASE: &str = "https://api.anthropic.com";
const OPENAI_BASE: &str = "https://api.openai.com/v1";

/// Keys, addresses and limits of the wires.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// `ANTHROPIC_API_KEY`.
    pub anthropic_key: Option<Key>,
    /// `ANTHROPIC_BASE_URL`; the vendor's own address otherwise.
    pub anthropic_base: Option<String>,
    /// `OPENAI_API_KEY`.
    pub openai_key: Option<Key>,
    /// `OPENAI_BASE_URL`; the vendor's own address otherwise.
    pub openai_base: Option<String>,
    /// How long a wire waits and how much it takes in.
    pub limits: Limits,
}

impl Endpoints {
    /// Reads the four variables through `get`; an empty one counts as absent.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        Self {
            anthropic_key: get("ANTHROPIC_API_KEY").map(|key| Key::new(&key)),
            anthropic_base: get("ANTHROPIC_BASE_URL"),
            openai_key: get("OPENAI_API_KEY").map(|key| Key::new(&key)),
            openai_base: get("OPENAI_BASE_URL"),
            limits: Limits::default(),
        }
    }
}

/// The model that `name` names: `anthropic:NAME`, `openai:NAME` or `scripted:FILE`.
pub fn open(name: &str, endpoints: &Endpoints) -> Result<Arc<dyn Model>, ModelError> {
    let (wire, model) = name.split_once(':').map_or((name, ""), |(wire, model)| (wire.trim(), model.trim()));
    match (wire, model) {
        ("anthropic", model) if !model.is_empty() => {
            let base = anthropic_base(endpoints.anthropic_base.as_deref().unwrap_or(ANTHROPIC_BASE))?;
            let key = endpoints.anthropic_key.clone().ok_or_else(|| missing(name, "ANTHROPIC_API_KEY"))?;
            Ok(Arc::new(Anthropic::new(model, &base, key, endpoints.limits)?))
        }
        ("openai", model) if !model.is_empty() => {
            let base = openai_base(endpoints.openai_base.as_deref().unwrap_or(OPENAI_BASE))?;
            let key = endpoints.openai_key.clone();
            if key.is_none() && base == OPENAI_BASE {
                return Err(missing(name, "OPENAI_API_KEY"));
            }
            Ok(Arc::new(OpenAi::new(model, &base, key, endpoints.limits)?))
        }
        ("scripted", file) if !file.is_empty() => Ok(Arc::new(Scripted::from_file(Path::new(file))?)),
        _ => Err(ModelError::Config(no_model(name))),
    }
}

/// Whether [`open`] knows the wire that `name` names; neither keys nor files are looked for.
pub fn check_name(name: &str) -> Result<(), String> {
    match name.split_once(':').map(|(wire, model)| (wire.trim(), model.trim())) {
        Some(("anthropic" | "openai" | "scripted", model)) if !model.is_empty() => Ok(()),
        _ => Err(no_model(name)),
    }
}

fn no_model(name: &str) -> String {
    format!(
        "{name:?} names no model; write anthropic:NAME, openai:NAME (also for compatible servers, with \
         OPENAI_BASE_URL) or scripted:FILE"
    )
}

fn missing(name: &str, variable: &str) -> ModelError {
    ModelError::Config(format!("{name} needs a key; set {variable}, or name another model"))
}

/// Without `/v1` and what may be written behind it, since this wire adds it.
fn anthropic_base(text: &str) -> Result<String, ModelError> {
    let base = base_url("ANTHROPIC_BASE_URL", text)?;
    let base = base.strip_suffix("/messages").unwrap_or(&base);
    Ok(base.strip_suffix("/v1").unwrap_or(base).trim_end_matches('/').to_owned())
}

/// With the version that the server's documents show. An address of a host alone gets `/v1`, which is where Ollama,
/// llama.cpp, vLLM, LM Studio and DeepSeek answer; one with a path is taken as it is.
fn openai_base(text: &str) -> Result<String, ModelError> {
    let base = base_url("OPENAI_BASE_URL", text)?;
    let base = base.strip_suffix("/chat/completions").unwrap_or(&base).trim_end_matches('/');
    let bare = base.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    Ok(if bare { format!("{base}/v1") } else { base.to_owned() })
}

/// `text` as an address that errors may show: the value is not repeated where it is refused, since it may hold a
/// secret.
fn base_url(variable: &str, text: &str) -> Result<String, ModelError> {
    let wrong = |reason: &str| ModelError::Config(format!("{variable} {reason}"));
    let url = Url::parse(text.trim())
        .map_err(|error| wrong(&format!("is no address ({error}); write it like https://host/v1")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is no http or https address; write it like https://host/v1"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a user name or a password; put the key into its own variable"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has a ? or a #; end it before them"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Which rule chose a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Named on the command line.
    Explicit,
    /// Named in `ASTRARIUM_MODEL`.
    Environment,
    /// Named in the config.
    Config,
    /// No name, but a key for Anthropic.
    AnthropicKey,
    /// No name, but a key for OpenAI.
    OpenAiKey,
    /// Neither: the demo script.
    Demo,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Explicit => "named on the command line",
            Rule::Environment => "named in ASTRARIUM_MODEL",
            Rule::Config => "named in the config",
            Rule::AnthropicKey => "no model is named and ANTHROPIC_API_KEY is set",
            Rule::OpenAiKey => "no model is named and OPENAI_API_KEY is set",
            Rule::Demo => "no model is named and no key is set",
        })
    }
}

/// A model and why it is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// For [`open`]; `None` is the demo script, which the host carries in itself.
    pub name: Option<String>,
    /// Why.
    pub rule: Rule,
}

/// Asked where a key is set and no model is named.
const ANTHROPIC_DEFAULT: &str = "anthropic:claude-sonnet-4-5";
const OPENAI_DEFAULT: &str = "openai:gpt-5";

/// Which model to use: the first that is named, else the vendor whose key is set, else the demo script. An empty name
/// counts as none.
pub fn choose(
    explicit: Option<&str>,
    environment: Option<&str>,
    config: Option<&str>,
    endpoints: &Endpoints,
) -> Choice {
    let named = [(explicit, Rule::Explicit), (environment, Rule::Environment), (config, Rule::Config)];
    for (name, rule) in named {
        if let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) {
            return Choice { name: Some(name.to_owned()), rule };
        }
    }
    let by_key = |name: &str, rule| Choice { name: Some(name.to_owned()), rule };
    if endpoints.anthropic_key.is_some() {
        by_key(ANTHROPIC_DEFAULT, Rule::AnthropicKey)
    } else if endpoints.openai_key.is_some() {
        by_key(OPENAI_DEFAULT, Rule::OpenAiKey)
    } else {
        Choice { name: None, rule: Rule::Demo }
    }
}

#[cfg(test)]
mod tests;
