//! Which models a host has: the one that answers, those that stand in or write summaries, and how large their windows are.

use super::Host;
use crate::config::Config;
use crate::model::recover::Recovering;
use crate::model::select::{Choice, Endpoints};
use crate::model::windows::Known;
use crate::model::{Model, scripted::Scripted, select, windows};
use crate::session::Summarizer;
use anyhow::{Context as _, Result, bail};
use std::sync::Arc;
use std::time::Duration;

/// Answers where no model is named and no key is set.
const NO_MODEL: &str = include_str!("../../demo/no-model.yaml");

impl Host {
    /// Which model answers, and why that one.
    pub fn choice(&self) -> (Choice, Endpoints) {
        let variable = |name: &str| std::env::var(name).ok();
        let mut endpoints = Endpoints::from_env(&variable);
        endpoints.limits.idle = Duration::from_secs(self.config().retry.silence_s);
        let named = variable("ASTRARIUM_MODEL");
        let choice =
            select::choose(self.options.model.as_deref(), named.as_deref(), self.config().model.as_deref(), &endpoints);
        (choice, endpoints)
    }

    /// The model; without a name and without a key a script that reads a little, changes nothing and says so.
    pub fn model(&self) -> Result<Arc<dyn Model>> {
        let (choice, endpoints) = self.choice();
        match &choice.name {
            Some(name) => {
                let model = select::open(name, &endpoints);
                self.recovering(model.with_context(|| format!("the model {name}, {}", choice.rule))?)
            }
            None => Ok(Arc::new(Scripted::from_str("no-model", NO_MODEL)?)),
        }
    }

    /// The model of this name, for a command that asks for it.
    pub fn model_named(&self, name: &str) -> Result<Arc<dyn Model>> {
        let (_, endpoints) = self.choice();
        self.recovering(select::open(name, &endpoints)?)
    }

    /// The model with the config's retries and fallback.
    fn recovering(&self, model: Arc<dyn Model>) -> Result<Arc<dyn Model>> {
        let (_, endpoints) = self.choice();
        let config = self.config();
        let fallback = config
            .fallback_model
            .as_deref()
            .map(|name| select::open(name, &endpoints).with_context(|| format!("fallback_model {name} of the config")));
        Ok(Arc::new(Recovering::new(model, fallback.transpose()?, self.config().retry.clone())))
    }

    /// The demo's script.
    pub fn demo_model(&self) -> Result<Arc<dyn Model>> {
        let path = self.options.share.join("demo/script.yaml");
        let script = Scripted::from_file(&path).context("the demo is not there; `cargo xtask run` puts it there")?;
        Ok(Arc::new(script))
    }

    /// The window of a model in tokens, and who says so.
    pub fn window(&self, model: &str) -> Result<Known> {
        window(&self.config(), model)
    }

    /// The model that writes summaries, where the config names one.
    pub(super) fn summary_model(&self) -> Result<Option<Summarizer>> {
        let config = self.config();
        let Some(name) = &config.summary_model else { return Ok(None) };
        let (_, endpoints) = self.choice();
        let model = select::open(name, &endpoints).with_context(|| format!("summary_model {name} of the config"))?;
        let model = Arc::new(Recovering::new(model, None, self.config().retry.clone()));
        Ok(Some(Summarizer { model, window: self.window(name)?.tokens }))
    }
}

/// The window of a model in tokens, and who says so.
pub(super) fn window(config: &Config, model: &str) -> Result<Known> {
    let named = |tokens, by| Known { tokens, by, named: true };
    if let Ok(text) = std::env::var("ASTRARIUM_CONTEXT_WINDOW")
        && !text.trim().is_empty()
    {
        return match text.trim().parse() {
            Ok(tokens) if tokens >= 1_000 => Ok(named(tokens, "ASTRARIUM_CONTEXT_WINDOW")),
            _ => bail!("ASTRARIUM_CONTEXT_WINDOW is {text:?}; write a number of tokens, at least 1000"),
        };
    }
    let own = config.context_windows.get(model).map(|tokens| named(*tokens, "context_windows of the config"));
    if let Some(own) = own.or(config.context_window.map(|tokens| named(tokens, "context_window of the config"))) {
        return Ok(own);
    }
    let (tokens, by) = match windows::known(model) {
        Some(tokens) => (tokens, "known by the model's name"),
        None => (windows::USUAL, "assumed, as this model is not known here"),
    };
    Ok(Known { tokens, by, named: false })
}
