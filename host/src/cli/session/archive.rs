//! `session export`, `import`, `fork` and `remove`.

use super::super::show::{note_line, print_line};
use crate::archive::{self, Travelled};
use crate::host::Host;
use anyhow::{Context as _, Result};
use std::fs;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// Writes a session to a file that is not there yet, or to standard output.
pub(super) fn export(host: &Host, id: &str, file: Option<&Path>) -> Result<()> {
    let id = host.store.session(id)?.id;
    let folder = |id: &str| host.options.session_folder(id);
    let Some(path) = file else {
        let mut out = io::BufWriter::new(io::stdout().lock());
        archive::export(&host.store, &folder, &id, &mut out)?;
        return Ok(out.flush()?);
    };
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    // All that was said and read is in it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = options.open(path).with_context(|| {
        format!("cannot make {}; name a file that is not there yet, in a folder that can be written to", path.display())
    })?;
    let mut out = io::BufWriter::new(made);
    let written = archive::export(&host.store, &folder, &id, &mut out).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })?;
    note_line(&format!("{} holds session {}: {}", path.display(), written.id, counts(&written)));
    Ok(())
}

/// Takes in a session from a file; `-` reads standard input.
pub(super) fn import(host: &Host, file: &Path, copy: bool) -> Result<()> {
    let folder = |id: &str| host.options.session_folder(id);
    let from = |input: &mut dyn io::BufRead| archive::import(&host.store, &folder, input, copy);
    let taken = if file.as_os_str() == "-" {
        from(&mut io::stdin().lock())
    } else {
        let opened = fs::File::open(file).with_context(|| format!("{} does not open", file.display()))?;
        from(&mut BufReader::with_capacity(1 << 20, opened))
    };
    let taken = taken.with_context(|| format!("nothing was taken in from {}", file.display()))?;
    print_line(&taken.id);
    note_line(&format!("{}; go on with --session {}", counts(&taken), taken.id));
    Ok(())
}

/// Begins a session that is another one, up to a message.
pub(super) fn fork(host: &Host, id: &str, at: Option<u64>) -> Result<()> {
    let id = host.store.session(id)?.id;
    let folder = |id: &str| -> PathBuf { host.options.session_folder(id) };
    let new = archive::fork(&host.store, &folder, &id, at)?;
    print_line(&new);
    note_line(&format!("go on with --session {new}; its tasks are those that session {id} has now"));
    Ok(())
}

/// Removes a session that no process has open.
pub(super) fn remove(host: &Host, id: &str) -> Result<()> {
    let id = host.store.session(id)?.id;
    let _lock = host.lock(&id)?;
    for removed in host.store.remove_session(&id)? {
        let folder = host.options.session_folder(&removed);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error)
                    .with_context(|| format!("the session is removed, but not its files in {}", folder.display()))?;
            }
            _ => {}
        }
    }
    note_line(&format!(
        "session {id} is removed, with its messages, calls and kept results; the audit keeps what it did"
    ));
    Ok(())
}

fn counts(travelled: &Travelled) -> String {
    let agents = match travelled.agents {
        0 => String::new(),
        agents => format!(", {agents} agents that worked for it"),
    };
    format!("{} rows, {} kept results{agents}", travelled.rows, travelled.files)
}
