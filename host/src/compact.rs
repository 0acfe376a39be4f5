//! The compaction plan: from messages, their sizes and the window to what stays, what goes and what comes back. Pure.
//!
//! Four layers, decided in one batch when a compaction is due (SPEC 4): `micro` empties old tool results, `summary` puts a
//! model's text in the place of the middle, `snip` drops the middle, `aggressive` keeps the last two results and cuts until it
//! fits. Nothing here asks a model or touches the record: [`plan`] says which layers to try, [`Plan::apply`] makes the new
//! conversation of one, and the conductor asks and appends.
//!
//! Laws, for any history and any window that leaves room beside tools and system prompt (property tests): a call is never
//! parted from its result, no message is empty, the first one is a user's, the new conversation is smaller than the old
//! one and below the point where the next compaction is due, and what is restored takes at most a fifth of the window. The
//! work is linear in the history.

mod breaker;
mod build;
mod clip;
mod cut;
mod plan;
mod restore;
mod standing;
mod summary;
mod texts;
mod window;

pub use breaker::{Attempt, Breaker, Go, Thrash};
pub use plan::{Compacted, Input, Plan, Refused, Stuck, plan};
pub use restore::{Item, Restore};
pub use standing::standing;
pub use summary::{clean, request, transcript};
pub use texts::{Labels, Texts};
pub use window::Window;

use serde::{Deserialize, Serialize};

/// What started a compaction, in the contract's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// The window is full to its share.
    Auto,
    /// The server refused a request as too long.
    Overflow,
    /// A tool asked for it.
    Tool,
    /// The user asked for it.
    Manual,
}

/// What a compaction does, in the contract's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The middle is dropped: the first 3 and the last 47 messages stay (layer 0).
    Snip,
    /// Older tool results are emptied (layer 1).
    Micro,
    /// A model's summary takes the place of the middle (layer 2).
    Summary,
    /// The last two tool results stay, and only what fits (layer 3).
    Aggressive,
}

impl Trigger {
    /// In the contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Auto => "auto",
            Trigger::Overflow => "overflow",
            Trigger::Tool => "tool",
            Trigger::Manual => "manual",
        }
    }
}

impl Layer {
    /// In the contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Snip => "snip",
            Layer::Micro => "micro",
            Layer::Summary => "summary",
            Layer::Aggressive => "aggressive",
        }
    }
}

#[cfg(test)]
mod tests;
