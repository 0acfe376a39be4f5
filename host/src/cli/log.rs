//! Where log lines go: warnings to standard error, everything from `info` up to a file of the home folder.
//!
//! `ASTRARIUM_LOG` sets what standard error shows, in the usual filter syntax (`debug`, `plugin=info,warn`).

use std::fs::{self, File, OpenOptions};
use std::io::IsTerminal as _;
use std::path::Path;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

/// Bytes after which the log file is put aside for a new one.
const LARGE: u64 = 8 << 20;

/// Starts logging; a file that cannot be written to is left out.
pub(super) fn start(home: &Path) {
    // A memory that does not read is shown by the commands themselves, once.
    let shown =
        EnvFilter::try_from_env("ASTRARIUM_LOG").unwrap_or_else(|_| EnvFilter::new("warn,astrarium::shelf=error"));
    let terminal = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .with_target(false)
        // Else a line that cannot be written is told of by `eprintln!`, which panics where standard error is closed.
        .log_internal_errors(false)
        .compact()
        .with_filter(shown);
    let file = open(home).map(|file| {
        fmt::layer()
            .with_writer(std::sync::Mutex::new(file))
            .with_ansi(false)
            .log_internal_errors(false)
            .with_filter(EnvFilter::new("info"))
    });
    let _ = tracing_subscriber::registry().with(terminal).with(file).try_init();
}

fn open(home: &Path) -> Option<File> {
    let path = home.join("astrarium.log");
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > LARGE) {
        let _ = fs::rename(&path, home.join("astrarium.log.1"));
    }
    OpenOptions::new().create(true).append(true).open(path).ok()
}
