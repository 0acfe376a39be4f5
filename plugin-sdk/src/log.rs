//! Lines for the host's log. They never reach the user's screen.

use crate::host::log::{Level, write};

/// A line for the plugin's author.
pub fn debug(message: impl AsRef<str>) {
    write(Level::Debug, message.as_ref());
}

/// A line worth keeping.
pub fn info(message: impl AsRef<str>) {
    write(Level::Info, message.as_ref());
}

/// Something is off.
pub fn warn(message: impl AsRef<str>) {
    write(Level::Warn, message.as_ref());
}

/// Something failed.
pub fn error(message: impl AsRef<str>) {
    write(Level::Error, message.as_ref());
}
