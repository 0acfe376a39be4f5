//! Everything a Rust guest needs: tools, hooks, and the host's side of the contract as plain Rust.
//!
//! A tool is a struct of its arguments. The doc comment of the struct is what the model reads about the tool, those of
//! the fields are what it reads about the arguments. This is a whole plugin:
//!
//! ```
//! use astrarium_sdk::{Context, Error, Output, Tool, tools};
//!
//! /// Greets someone by name.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! impl Tool for Greet {
//!     const NAME: &'static str = "greet";
//!     fn call(self, _: &Context) -> Result<Output, Error> {
//!         Ok(format!("Hello, {}.", self.name).into())
//!     }
//! }
//!
//! tools!(Greet);
//! # fn main() {}
//! ```
//!
//! Hooks are written the same way, see [`hooks!`](crate::hooks!). A plugin may register tools and any number of hooks;
//! it exports exactly what it registers, and the host wires exactly what it exports.
//!
//! Every call runs in a fresh instance: statics do not outlive it, [`kv`] does. A panic ends the call; its message
//! goes to standard error, which the host keeps in its log.

// The expanded macros name this crate from inside and from outside.
extern crate self as astrarium_sdk;

#[allow(missing_docs, reason = "generated; the contract is documented in wit/")]
#[doc(hidden)]
pub mod bindings;
pub mod config;
mod context;
mod error;
pub mod hooks;
pub mod http;
pub mod kv;
pub mod log;
pub mod process;
mod schema;
pub mod segment;
pub mod tool;

pub use bindings::astrarium::host;
pub use bindings::astrarium::plugin::types::{AgentKind, CallContext as Context, FileRef, Image, Part};
pub use config::config;
pub use error::Error;
pub use schemars;
pub use segment::{Segment, Stability};
pub use serde;
pub use serde_json;
pub use tool::{Output, Tool};

#[doc(hidden)]
pub use wit_bindgen;

/// Reports progress of a long call; `fraction` goes from 0 to 1 where it is known.
pub fn progress(fraction: Option<f32>, message: &str) {
    host::progress::report(fraction, message);
}
