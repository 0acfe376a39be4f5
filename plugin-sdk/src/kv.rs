//! A small store of the plugin's own, which outlives the call. Needs `kv: true` in the manifest and the grant.

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::host::kv::Scope;
use crate::{Error, host};

/// The bytes at a key, or none.
pub fn get(scope: Scope, key: &str) -> Result<Option<Vec<u8>>, Error> {
    Ok(host::kv::get(scope, key)?)
}

/// Sets the bytes at a key; over the quota it is refused and nothing changes.
pub fn set(scope: Scope, key: &str, value: &[u8]) -> Result<(), Error> {
    Ok(host::kv::set(scope, key, value)?)
}

/// The value at a key, read from JSON, or none.
pub fn get_json<T: DeserializeOwned>(scope: Scope, key: &str) -> Result<Option<T>, Error> {
    let value = get(scope, key)?.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    value.map_err(|error| Error::failed(format!("the stored value {key:?} does not fit: {error}")))
}

/// Sets a value, written as JSON.
pub fn set_json<T: Serialize + ?Sized>(scope: Scope, key: &str, value: &T) -> Result<(), Error> {
    set(scope, key, &serde_json::to_vec(value)?)
}

/// Removes a value; true when there was one.
pub fn delete(scope: Scope, key: &str) -> Result<bool, Error> {
    Ok(host::kv::delete(scope, key)?)
}

/// Keys that begin with `prefix`, in byte order, at most 1,000.
pub fn keys(scope: Scope, prefix: &str) -> Result<Vec<String>, Error> {
    Ok(host::kv::keys(scope, prefix)?)
}

/// Adds to a decimal number and answers with the sum; a missing value counts as 0. Calls side by side lose nothing.
pub fn increment(scope: Scope, key: &str, by: i64) -> Result<i64, Error> {
    Ok(host::kv::increment(scope, key, by)?)
}
