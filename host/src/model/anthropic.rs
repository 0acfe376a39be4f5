//! The Anthropic Messages API: the door itself, its headers, its address and its key.
//!
//! What is sent is in `request`, what comes back in `stream`. It does not retry and does not switch thinking on.

use super::wire::{Door, Key, Limits, Vendor, Words};
use super::{Model, ModelError, ModelEvent, Request, ids};
use crate::transcript::Reply;
use async_trait::async_trait;
use futures::StreamExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

mod request;
mod stream;

const VENDOR: Vendor = Vendor {
    key_cure: "check the key in ANTHROPIC_API_KEY and what it may use",
    address_cure: "check the model name and ANTHROPIC_BASE_URL, which has no /v1 at its end",
};
const PATH: &str = "/v1/messages";
/// The version of the API whose shapes this wire speaks; the vendor keeps it stable.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// A model behind the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    name: String,
    model: String,
    door: Door,
}

impl Anthropic {
    /// The model `model` at `base`, which has neither `/v1` nor a slash at its end.
    pub fn new(model: &str, base: &str, key: Key, limits: Limits) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("x-api-key"), key.header("", "ANTHROPIC_API_KEY")?);
        headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
        Ok(Self {
            name: format!("anthropic:{model}"),
            model: model.to_owned(),
            door: Door::new(base, headers, Some(key), &VENDOR, limits)?,
        })
    }
}

#[async_trait]
impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask(&self, request: &Request, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError> {
        let url = self.door.url(PATH);
        let mut events = self.door.stream(&url, request::body(&self.model, request)).await?;
        let mut answer = stream::Answer::default();
        while let Some(event) = events.next().await {
            let event = event.map_err(|fault| self.door.broken(&url, &fault.to_string()))?;
            let over = answer.read(&event.data, on_event).map_err(|fault| match fault {
                stream::Fault::Broken(reason) => self.door.broken(&url, &reason),
                stream::Fault::Refused { kind, message } => {
                    let status = stream::status(&kind);
                    self.door.refused(&url, status, Words { kind: Some(kind), message }, None)
                }
            })?;
            if over {
                let mut reply = answer.reply(&self.model);
                ids::make_unique(&mut reply.content, &request.messages);
                return Ok(reply);
            }
        }
        Err(self.door.broken(&url, "it ended before message_stop"))
    }

    async fn check(&self) -> Result<String, ModelError> {
        // The vendor pages its list; a thousand is the largest page.
        self.door.check("/v1/models", "?limit=1000", &self.model).await
    }
}
