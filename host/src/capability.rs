//! The host side of `astrarium:host`, one room an interface. Each call is judged by the guest's effective grants first.
//!
//! Nothing here decides what is granted, and nothing trusts what a guest says about itself: plugin, session and grants
//! come from the store's own state. What a later release brings answers `denied` and says so.

mod agents;
mod config;
mod context;
pub mod http;
mod kv;
mod log;
mod memory;
pub mod process;
mod skills;
mod tasks;
mod tools;

use crate::audit::{Entry, Kind};
use crate::context::CallContext;
use crate::runtime::contract::astrarium::host::types;
use crate::runtime::{GuestEnv, GuestState};
use crate::store::{Audit, StoreError};
use std::sync::Arc;

impl GuestState {
    /// Judges a capability that is granted or not, with nothing between. Either way it goes on the call's trail; the
    /// refusal names its cure.
    fn may(&self, capability: &'static str, granted: bool) -> Result<(), types::Error> {
        if granted {
            self.trail.allowed(capability, &format!("{capability}: true"), "");
            return Ok(());
        }
        let reason = format!(
            "{capability} is not granted to {plugin}; do not retry; an operator grants it under grants: in astrarium.yaml with \
             `- {{ plugin: {plugin}, {capability}: true }}`",
            plugin = self.env.plugin
        );
        self.trail.refused(capability, "not granted", "", &reason);
        Err(types::Error::Denied(reason))
    }

    /// Where an act is recorded before it happens.
    fn recorder(&self) -> Recorder {
        Recorder { audit: self.services.audit.clone(), context: self.context.clone(), env: self.env.clone() }
    }
}

/// Puts one decision on the audit before the act that it allows: for acts that leave this machine or start a program, which
/// must not happen unrecorded. Cheaper ones go on the trail, which is recorded when the call has ended.
#[derive(Clone)]
struct Recorder {
    audit: Audit,
    context: CallContext,
    env: Arc<GuestEnv>,
}

impl Recorder {
    fn record_first(&self, capability: &str, target: &str, rule: &str) -> Result<(), String> {
        let entry = Entry::of(&self.context, Kind::Capability, capability).by(&self.env.plugin, &self.env.digest);
        let (target, rule) = (target.to_owned(), rule.to_owned());
        let entry = Entry { target, rule, ..entry.came_to("allowed", "") };
        self.audit
            .put(vec![entry])
            .map_err(|error| format!("{capability}: every use must be recorded, and this one cannot be: {error}"))
    }
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
