//! The imports whose host side a later release brings: they link, so that guests written today keep working, and answer
//! `denied` with that reason whatever is granted.

use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::skills;
use crate::runtime::contract::astrarium::host::types::Error;

pub(super) fn later<T>(interface: &str) -> Result<T, Error> {
    Err(Error::Denied(format!(
        "this host (astrarium {}) does not offer astrarium:host/{interface} yet; do not retry",
        env!("CARGO_PKG_VERSION")
    )))
}

impl skills::Host for GuestState {
    async fn all(&mut self) -> Result<Vec<skills::Entry>, Error> {
        later("skills")
    }

    async fn load(&mut self, _: String, _: Option<String>, _: Option<u32>) -> Result<skills::Loaded, Error> {
        later("skills")
    }
}
