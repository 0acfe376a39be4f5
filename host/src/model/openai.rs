//! OpenAI-compatible Chat Completions, which also reaches Ollama, llama.cpp, vLLM, DeepSeek and others: the door itself,
//! its address and its key.
//!
//! What is sent is in `request`, what comes back in `stream`. It does not retry and asks for no reasoning.

use super::wire::{Door, Key, Limits, Vendor};
use super::{Model, ModelError, ModelEvent, Request};
use crate::transcript::Reply;
use async_trait::async_trait;
use futures::StreamExt;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

mod request;
mod stream;

const VENDOR: Vendor = Vendor {
    key_cure: "check the key in OPENAI_API_KEY and what it may use",
    address_cure: "check the model name and OPENAI_BASE_URL, which mostly ends in /v1",
};
const PATH: &str = "/chat/completions";

/// A model behind Chat Completions.
#[derive(Debug)]
pub struct OpenAi {
    name: String,
    model: String,
    /// What this server calls the limit of an answer.
    limit: request::LimitField,
    door: Door,
}

impl OpenAi {
    /// The model `model` at `base`, which ends in the API's version and no slash. A local server needs no key.
    pub fn new(model: &str, base: &str, key: Option<Key>, limits: Limits) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            headers.insert(AUTHORIZATION, key.header("Bearer ", "OPENAI_API_KEY")?);
        }
        Ok(Self {
            name: format!("openai:{model}"),
            model: model.to_owned(),
            limit: limit_field(base),
            door: Door::new(base, headers, key, &VENDOR, limits)?,
        })
    }
}

/// The vendor's own hosts, the regional ones too, refuse `max_tokens` for their reasoning models; most other servers
/// know no other name.
fn limit_field(base: &str) -> request::LimitField {
    let host = Url::parse(base).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    if host == "api.openai.com" || host.ends_with(".api.openai.com") {
        request::LimitField::MaxCompletionTokens
    } else {
        request::LimitField::MaxTokens
    }
}

#[async_trait]
impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask(&self, request: &Request, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError> {
        let url = self.door.url(PATH);
        let mut events = self.door.stream(&url, request::body(&self.model, self.limit, request)).await?;
        let mut answer = stream::Answer::default();
        let mut end = "it ended without a finish_reason".to_owned();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) if event.data.trim() == "[DONE]" => break,
                Ok(event) => answer.read(&event.data, on_event).map_err(|fault| match fault {
                    stream::Fault::Broken(reason) => self.door.broken(&url, &reason),
                    stream::Fault::Refused { status, words } => self.door.refused(&url, status, words, None),
                })?,
                Err(fault) => {
                    end = fault.to_string();
                    break;
                }
            }
        }
        // Behind a finish_reason comes nothing but the usage, so the answer is whole however the stream ended.
        if !answer.is_finished() {
            return Err(self.door.broken(&url, &end));
        }
        Ok(answer.reply(&self.model, &request.messages, on_event))
    }

    async fn check(&self) -> Result<String, ModelError> {
        self.door.check("/models", "", &self.model).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_vendors_own_hosts_get_max_completion_tokens() {
        let field = |base: &str| limit_field(base) == request::LimitField::MaxCompletionTokens;
        assert!(field("https://api.openai.com/v1"));
        assert!(field("https://eu.api.openai.com/v1"));
        assert!(!field("https://api.openai.com.example.org/v1"));
        assert!(!field("https://notapi.openai.com/v1"));
        assert!(!field("http://localhost:11434/v1"));
    }
}
