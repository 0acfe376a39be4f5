//! What is wrong in a config that reads: the first value that cannot be meant, by the keys that lead to it. Pure.

use super::{Config, DEEPEST};
use crate::grant::is_secret_name;
use crate::model::select;
use crate::yaml;

/// A value that cannot be meant.
pub(super) struct Mistake {
    keys: Vec<String>,
    said: String,
    /// Where it stands, when the keys alone do not lead there.
    line: Option<String>,
}

impl Mistake {
    fn at(keys: &[&str], said: impl Into<String>) -> Self {
        Self { keys: keys.iter().map(|key| (*key).to_owned()).collect(), said: said.into(), line: None }
    }

    /// In one line, with its place in the config's text.
    pub(super) fn told(&self, text: &str) -> String {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let place = self.line.as_ref().map(|line| format!("{line}: "));
        format!("{}{}: {}", place.unwrap_or_else(|| yaml::place(text, &keys)), keys.join(": "), self.said)
    }
}

/// Fewest tokens of a window, or of a prompt: less is a mistake in the unit.
const FEWEST_TOKENS: u64 = 1_000;

impl Config {
    /// The first value that cannot be meant.
    pub(super) fn mistake(&self) -> Option<Mistake> {
        let limits = self.limits.mistake().map(|(field, said)| Mistake::at(&["limits", field], said));
        let retry = || self.retry.mistake().map(|(field, said)| Mistake::at(&["retry", field], said));
        limits
            .or_else(retry)
            .or_else(|| self.in_counts())
            .or_else(|| self.in_tokens())
            .or_else(|| self.in_models())
            .or_else(|| self.in_prices())
            .or_else(|| self.in_secrets())
    }

    fn in_counts(&self) -> Option<Mistake> {
        if self.agents.depth > DEEPEST {
            return Some(Mistake::at(&["agents", "depth"], format!("must be from 0 to {DEEPEST}")));
        }
        if let Some(other) = self.language.as_deref().filter(|language| !matches!(*language, "zh" | "en")) {
            return Some(Mistake::at(&["language"], format!("{other:?} is none of zh, en")));
        }
        let counts = [("max_steps", self.max_steps), ("max_output_tokens", self.max_output_tokens)];
        let (key, _) = counts.into_iter().find(|(_, count)| *count == Some(0))?;
        Some(Mistake::at(&[key], "must be at least 1"))
    }

    fn in_tokens(&self) -> Option<Mistake> {
        let single = [(vec!["context_window"], self.context_window), (vec!["prompt", "tokens"], self.prompt.tokens)];
        let by_model =
            self.context_windows.iter().map(|(model, tokens)| (vec!["context_windows", model.as_str()], Some(*tokens)));
        let mut all = single.into_iter().chain(by_model);
        let (keys, _) = all.find(|(_, tokens)| tokens.is_some_and(|tokens| tokens < FEWEST_TOKENS))?;
        Some(Mistake::at(&keys, format!("is in tokens, and must be at least {FEWEST_TOKENS}")))
    }

    /// A name that is no model's, so that what hangs on it would never come about.
    fn in_models(&self) -> Option<Mistake> {
        let single =
            [("model", &self.model), ("summary_model", &self.summary_model), ("fallback_model", &self.fallback_model)];
        let single = single.into_iter().filter_map(|(key, name)| Some((vec![key], name.as_deref()?)));
        let words = &self.agents.models;
        let words = words.iter().map(|(word, name)| (vec!["agents", "models", word.as_str()], name.as_str()));
        let windows = self.context_windows.keys().map(|name| (vec!["context_windows", name.as_str()], name.as_str()));
        let prices = self.prices.keys().map(|name| (vec!["prices", name.as_str()], name.as_str()));
        let notes = self.prompt.model_notes.keys();
        let notes = notes.map(|name| (vec!["prompt", "model_notes", name.as_str()], name.as_str()));
        let mut all = single.chain(words).chain(windows).chain(prices).chain(notes);
        all.find_map(|(keys, name)| Some(Mistake::at(&keys, select::check_name(name).err()?)))
    }

    fn in_prices(&self) -> Option<Mistake> {
        self.prices.iter().find_map(|(model, price)| Some(Mistake::at(&["prices", model], price.check().err()?)))
    }

    /// A secret that cannot be one, or one that a grant injects and nobody named.
    fn in_secrets(&self) -> Option<Mistake> {
        for (name, source) in &self.secrets {
            if !is_secret_name(name) {
                let said = "is no name of a secret; use letters, digits, _ and -, at most 64";
                return Some(Mistake::at(&["secrets", name], said));
            }
            if let Some(said) = source.mistake() {
                return Some(Mistake::at(&["secrets", name], said));
            }
        }
        let injected = self.grants.iter().flat_map(|grant| {
            let rules = grant.capabilities.http.iter();
            rules.flat_map(|rule| rule.inject.values()).map(move |template| (grant, &template.secret))
        });
        let (grant, secret) = injected.into_iter().find(|(_, secret)| !self.secrets.contains_key(*secret))?;
        let said = format!(
            "names the secret {secret}, which is not under secrets:; add it there, as in secrets: {{ {secret}: {{ \
             env: NAME }} }}"
        );
        Some(Mistake { line: Some(grant.source.clone()), ..Mistake::at(&["grants", &grant.plugin, "inject"], said) })
    }
}
