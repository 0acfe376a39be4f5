//! `tools`: finds tools of the session by words. It runs none: a call goes through the host, whoever found the tool.

use crate::catalogue;
use crate::plugin::Uses;
use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::tools;
use crate::runtime::contract::astrarium::host::types::Error;

/// Tools that one search may name: their schemas are read by a model.
const MOST: u32 = 20;

impl tools::Host for GuestState {
    async fn search(&mut self, query: String, limit: u32) -> Result<Vec<tools::Entry>, Error> {
        let Some(registry) = &self.services.desk.registry else {
            return Err(Error::NotFound("no tools are known where this guest runs; call it as a tool".into()));
        };
        let snapshot = registry.snapshot();
        let entries = self.services.desk.reach.of(snapshot.entries(&Uses::new()));
        let found = catalogue::search(&entries, &query, limit.clamp(1, MOST) as usize);
        let found = found.into_iter().map(|entry| tools::Entry {
            name: entry.name.to_owned(),
            summary: entry.line(),
            description: entry.description.to_owned(),
            input_schema: entry.schema.as_str().to_owned(),
            plugin: entry.plugin.to_owned(),
        });
        Ok(found.collect())
    }
}
