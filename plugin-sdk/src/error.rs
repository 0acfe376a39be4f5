//! The one error type of guests, and how it maps onto those of the contract.

use std::fmt;

use crate::bindings::tools::ToolError;
use crate::host::types::Error as HostError;

/// Why a call could not be answered. The model reads the text, so it says what was wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The arguments fit the schema and still make no sense: what, and what would.
    InvalidInput(String),
    /// A capability was missing: which.
    Denied(String),
    /// It was tried and failed.
    Failed(String),
}

impl Error {
    /// The arguments make no sense.
    pub fn invalid(reason: impl fmt::Display) -> Self {
        Self::InvalidInput(reason.to_string())
    }

    /// A capability was missing.
    pub fn denied(reason: impl fmt::Display) -> Self {
        Self::Denied(reason.to_string())
    }

    /// It was tried and failed.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::InvalidInput(reason) | Self::Denied(reason) | Self::Failed(reason)) = self;
        f.write_str(reason)
    }
}

impl std::error::Error for Error {}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidInput(reason) => Self::InvalidInput(reason),
            Error::Denied(reason) => Self::Denied(reason),
            Error::Failed(reason) => Self::Failed(reason),
        }
    }
}

/// Keeps the host's words; only `denied` and `invalid` have a case of their own on this side.
impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Denied(reason) => Self::Denied(reason),
            HostError::Invalid(reason) => Self::InvalidInput(reason),
            HostError::NotFound(reason) | HostError::LimitExceeded(reason) | HostError::Failed(reason) => {
                Self::Failed(reason)
            }
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error)
    }
}
