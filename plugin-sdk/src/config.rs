//! The plugin's configuration: the `config` of its manifest under the operator's values.

use serde::de::DeserializeOwned;

use crate::{Error, host};

/// The whole configuration as a type. Keys that may be missing need `#[serde(default)]`.
///
/// ```no_run
/// #[derive(serde::Deserialize)]
/// #[serde(default)]
/// struct Config {
///     limit: u32,
/// }
///
/// impl Default for Config {
///     fn default() -> Self {
///         Self { limit: 200 }
///     }
/// }
///
/// # fn main() -> Result<(), astrarium_sdk::Error> {
/// let config: Config = astrarium_sdk::config()?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// When a value does not fit the type; the text names it.
pub fn config<T: DeserializeOwned>() -> Result<T, Error> {
    parse(&host::config::all())
}

/// The value at a top-level key, or none.
///
/// # Errors
///
/// When the value does not fit the type.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    host::config::get(key).map(|value| parse(&value)).transpose()
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json)
        .map_err(|error| Error::failed(format!("the configuration of this plugin does not fit: {error}; correct it")))
}
