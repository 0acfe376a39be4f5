//! From a folder to a live plugin: read once, check, load, and publish in one atomic swap of an immutable snapshot.
//!
//! Calls in flight keep the snapshot they captured; new calls take the new one; nothing waits. A version that fails any
//! step leaves the old one running and says why. This room decides nothing about grants (it takes them as they are) and
//! runs no tool for a model.

mod check;
mod clash;
mod effective;
mod find;
mod folder;
mod gates;
mod life;
mod load;
mod registry;
mod snapshot;
mod told;
mod versions;
mod watch;

pub use check::{Checked, check};
pub use effective::effective;
pub use find::{Found, find};
pub use folder::{Package, read_bounded};
pub use registry::{GrantRule, PluginRoot, Registry, Settings};
pub use snapshot::{Plugin, Snapshot, State, Status, Tool, Uses};
pub use versions::{Kept, VersionError, Versions};
pub use watch::{Guard as WatchGuard, watch};
