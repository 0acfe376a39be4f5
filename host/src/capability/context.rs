//! `context`: how full the conversation's window is, and a compaction that is wanted when the step is over.
//!
//! The step's own results belong to the conversation, so nothing is compacted while a call of it runs: a wish is left on
//! the desk, and the answer says what the compaction aims at.

use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::context;
use crate::runtime::contract::astrarium::host::types::Error;

/// Characters of instructions that a wish may have.
const INSTRUCTIONS: usize = 4_000;

impl context::Host for GuestState {
    async fn get_usage(&mut self) -> Result<context::Usage, Error> {
        self.may("context", self.env.effective.context)?;
        match &*self.services.desk.context() {
            Some(desk) => Ok(context::Usage { tokens: desk.tokens, window: desk.window, messages: desk.messages }),
            None => Err(none()),
        }
    }

    async fn compact(&mut self, instructions: Option<String>) -> Result<context::Compaction, Error> {
        self.may("context", self.env.effective.context)?;
        let instructions: String = instructions.unwrap_or_default().chars().take(INSTRUCTIONS).collect();
        match &mut *self.services.desk.context() {
            Some(desk) => {
                desk.wanted = Some(instructions);
                let tokens_after = desk.goal.min(desk.tokens);
                Ok(context::Compaction { tokens_before: desk.tokens, tokens_after, layer: "summary".into() })
            }
            None => Err(none()),
        }
    }
}

fn none() -> Error {
    Error::NotFound("no conversation is under way where this guest runs".into())
}
