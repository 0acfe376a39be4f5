//! The host side of `astrarium:host`, one room an interface. Each call is judged by the guest's effective grants first.
//!
//! Nothing here decides what is granted, and nothing trusts what a guest says about itself: plugin, session and grants
//! come from the store's own state. What a later release brings answers `denied` and says so.

mod config;
mod kv;
mod later;
mod log;
mod memory;
mod tasks;
mod tools;

use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::types;
use crate::store::StoreError;

/// The refusal for a capability that was not granted, with its cure.
fn denied(state: &GuestState, capability: &str) -> types::Error {
    types::Error::Denied(format!(
        "{capability} is not granted to {plugin}; an operator grants it under grants: in astrarium.yaml with \
         `- {{ plugin: {plugin}, {capability}: true }}`",
        plugin = state.env.plugin
    ))
}

impl From<StoreError> for types::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(reason) => types::Error::Invalid(reason),
            StoreError::Quota(reason) => types::Error::LimitExceeded(reason),
            StoreError::NoSession(_) => types::Error::NotFound(error.to_string()),
            _ => types::Error::Failed(error.to_string()),
        }
    }
}

impl types::Host for GuestState {}

impl crate::runtime::contract::astrarium::plugin::types::Host for GuestState {}
