//! What other agents are made of, as the operator's config has it: the model that a name in an agent definition means.

use crate::agent;
use crate::config::Config;
use crate::model::recover::Recovering;
use crate::model::select::{self, Endpoints};
use crate::roster::Roster;
use crate::skills::Root;
use crate::subagent::{Fitted, Staff};
use std::sync::Arc;

/// The config of a host, for its agents.
pub(super) struct Hired {
    pub(super) config: Arc<Config>,
    pub(super) endpoints: Endpoints,
    pub(super) roots: Vec<Root>,
}

impl Staff for Hired {
    fn model(&self, name: &str, own: &str, stranger: bool) -> Result<Fitted, String> {
        let full = full_name(name, own, &self.config)?;
        // What the operator's own config says a word means may be any provider's.
        if stranger && !self.config.agents.models.contains_key(name) {
            agent::may_choose(&full, own)?;
        }
        let model = select::open(&full, &self.endpoints).map_err(|error| format!("{name}: {error}"))?;
        // One that does not open is told where the host's own model is opened.
        let fallback = self.config.fallback_model.as_ref().filter(|fallback| **fallback != full);
        let fallback = fallback.and_then(|fallback| select::open(fallback, &self.endpoints).ok());
        let window = super::models::window(&self.config, &full).map_err(|error| error.to_string())?.tokens;
        Ok(Fitted {
            model: Arc::new(Recovering::new(model, fallback, self.config.retry.clone())),
            price: self.config.prices.get(&full).copied(),
            window,
            notes: self.config.prompt.notes(&full),
        })
    }

    fn roster(&self) -> Roster {
        Roster::read(&self.roots)
    }
}

/// A model as `wire:name`: what the config says a word means, else the name as it is, over the wire of the agent that asks.
fn full_name(name: &str, own: &str, config: &Config) -> Result<String, String> {
    if let Some(full) = config.agents.models.get(name) {
        return Ok(full.clone());
    }
    let is_word = !name.contains(['-', ':', '/', '.']);
    let wire = own.split_once(':').map(|(wire, _)| wire);
    match wire {
        _ if is_word => Err(format!("the config does not say which model {name} is (agents: models:)")),
        _ if name.contains(':') => Ok(name.to_owned()),
        Some(wire) => Ok(format!("{wire}:{name}")),
        None => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_what_the_config_says_and_a_name_goes_over_the_same_wire() {
        let mut config = Config::default();
        config.agents.models.insert("haiku".into(), "openai:small-1".into());
        let named = |name: &str| full_name(name, "anthropic:claude-opus-4-5", &config);
        assert_eq!(named("haiku").unwrap(), "openai:small-1");
        assert_eq!(named("claude-haiku-4-5").unwrap(), "anthropic:claude-haiku-4-5");
        assert_eq!(named("openai:qwen3").unwrap(), "openai:qwen3");
        assert!(named("opus").unwrap_err().contains("agents: models:"));
    }
}
