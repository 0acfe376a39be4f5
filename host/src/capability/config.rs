//! `config`: the manifest's defaults under the operator's values.

use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::config;

impl config::Host for GuestState {
    async fn get(&mut self, key: String) -> Option<String> {
        self.env.config.get(&key).map(ToString::to_string)
    }

    async fn all(&mut self) -> String {
        self.env.config.to_string()
    }
}
