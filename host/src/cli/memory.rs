//! `memory`: what is known beyond one session; lists, shows, edits and forgets entries.

use super::show::{note_line, notice, print_line};
use super::{Exit, usage};
use crate::host::Host;
use crate::memory::{Entry, Listing, Mark, age_note, heading, placed, slug};
use crate::plain;
use crate::prompt::Texts;
use crate::shelf::{Shelf, ShelfError};
use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

#[derive(Subcommand)]
pub(super) enum MemoryCommand {
    /// Lists the entries, newest first, and the files that do not read
    List {
        /// Also older versions, entries that others replaced, and forgotten ones
        #[arg(long)]
        all: bool,
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Shows an entry
    Show {
        /// Its name, or that of an older version such as NAME_v1
        name: String,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
    /// Opens an entry in VISUAL or EDITOR; the version before is kept
    Edit {
        /// Its name
        name: String,
    },
    /// Puts an entry into the archive, where no session reads it
    Forget {
        /// Its name
        name: String,
    },
}

pub(super) fn memory(host: &Host, command: &MemoryCommand) -> Result<Exit> {
    let shelf = &host.registry.services().shelf;
    match command {
        MemoryCommand::List { all, json } => list(host, shelf, *all, *json)?,
        MemoryCommand::Show { name, json } => show(host, shelf, name, *json)?,
        MemoryCommand::Edit { name } => edit(shelf, name)?,
        MemoryCommand::Forget { name } => {
            let file = shelf.forget(name).map_err(told)?;
            print_line(&format!("forgotten; it is kept as {}", shelf.folder().join(file).display()));
        }
    }
    Ok(Exit::Done)
}

/// A mistake of the user is one of the command line; the rest failed.
fn told(error: ShelfError) -> anyhow::Error {
    match error {
        ShelfError::Invalid(reason) | ShelfError::NotFound(reason) => usage(reason),
        other => other.into(),
    }
}

/// Says what of the memory does not read, before a session relies on it.
pub(super) fn warn(host: &Host) {
    let shelf = &host.registry.services().shelf;
    match shelf.list() {
        Ok(listing) => {
            for broken in &listing.broken {
                let path = shelf.folder().join(&broken.file);
                note_line(&notice(&format!("the memory {} is left out: {}", path.display(), broken.reason)));
            }
        }
        Err(error) => note_line(&notice(&format!("no memory in this session: {error}"))),
    }
}

fn list(host: &Host, shelf: &Shelf, all: bool, json: bool) -> Result<()> {
    let listing = shelf.list().map_err(told)?;
    let archived = listing.archived.iter().filter(|_| all);
    let entries: Vec<&Entry> = listing.current.iter().chain(archived).collect();
    if json {
        let mut items: Vec<Value> = entries.iter().map(|entry| document(&listing, entry)).collect();
        items.extend(listing.broken.iter().map(|broken| {
            let slug = placed(&broken.file).map(|(slug, _)| slug);
            json!({ "slug": slug, "file": broken.file, "error": broken.reason })
        }));
        print_line(&serde_json::to_string_pretty(&items)?);
        return Ok(());
    }
    if entries.is_empty() && listing.broken.is_empty() {
        note_line(&format!("no memories yet; they will be in {}", shelf.folder().display()));
    }
    for entry in entries {
        let day = entry.updated.strftime("%Y-%m-%d");
        print_line(&format!("{day}  {}", heading(entry, &listing.mark(entry), host.language())));
    }
    for broken in &listing.broken {
        let line = format!("{} does not read: {}", broken.file, broken.reason);
        note_line(&notice(&line));
    }
    Ok(())
}

fn show(host: &Host, shelf: &Shelf, name: &str, json: bool) -> Result<()> {
    let old = shelf.list().map_err(told)?;
    let file = format!("{name}.md");
    let entry = match old.archived.iter().find(|entry| entry.file == file) {
        Some(entry) => entry.clone(),
        None => shelf.read(name).map_err(told)?.0,
    };
    if json {
        let mut document = document(&old, &entry);
        document["content"] = entry.content.clone().into();
        print_line(&serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    print_line(&heading(&entry, &old.mark(&entry), host.language()));
    if let Some(note) = age_note(&entry, jiff::Timestamp::now(), &Texts::built_in(host.language())) {
        print_line(&note);
    }
    print_line(&format!("\n{}", plain::lines(&entry.content)));
    note_line(&format!("\n{}", shelf.folder().join(&entry.file).display()));
    Ok(())
}

/// An entry as scripts read it.
fn document(listing: &Listing, entry: &Entry) -> Value {
    let (holds, by) = match listing.mark(entry) {
        Mark::Holds => (true, None),
        Mark::Updated(by) => (false, by),
        Mark::Forgotten => (false, None),
    };
    json!({
        "slug": entry.slug,
        "name": entry.name,
        "type": entry.kind,
        "description": entry.description,
        "updated": format!("{:.3}", entry.updated),
        "file": entry.file,
        "holds": holds,
        "forgotten": entry.forgotten,
        "supersedes": entry.supersedes,
        "superseded_by": by,
        "error": null,
    })
}

/// Edits a copy, so that a half-saved file is never read by a session; also mends one that does not read.
fn edit(shelf: &Shelf, name: &str) -> Result<()> {
    let slug = slug(name).ok_or_else(|| usage(format!("{name:?} names no memory")))?;
    let file = format!("{slug}.md");
    let there = shelf.list().map_err(told)?;
    let broken = there.broken.iter().any(|broken| broken.file == file);
    if !broken && there.get(&slug).is_none() {
        return Err(match shelf.read(&slug) {
            Ok((entry, _)) => usage(format!("{slug} is in the archive as {}; only what holds is edited", entry.file)),
            Err(error) => told(error),
        });
    }
    let before = shelf.raw(&file).map_err(told)?;
    let folder =
        tempfile::Builder::new().prefix("astrarium-memory-").tempdir().context("cannot make a folder to edit in")?;
    let copy = folder.path().join(&file);
    std::fs::write(&copy, &before).with_context(|| format!("cannot write {}", copy.display()))?;
    open_editor(&copy)?;
    let text = std::fs::read(&copy).with_context(|| format!("cannot read {}", copy.display()))?;
    if text == before {
        note_line("nothing was changed");
        return Ok(());
    }
    let kept = |folder: tempfile::TempDir| folder.keep().join(&file).display().to_string();
    let Ok(text) = String::from_utf8(text) else {
        return Err(usage(format!("the edited text is no UTF-8; it is kept in {}", kept(folder))));
    };
    match shelf.replace(&file, &before, &text) {
        Ok(entry) => print_line(&format!("{} is written", entry.slug)),
        Err(error) => {
            return Err(told(error).context(format!("nothing was changed; your text is kept in {}", kept(folder))));
        }
    }
    Ok(())
}

/// The user's editor, by a shell as `git` and `crontab` do, since the variable may hold arguments.
fn open_editor(file: &Path) -> Result<()> {
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let Some(editor) = editor else {
        return Err(usage("no editor is named; set EDITOR, or edit the file itself: `memory show` names it"));
    };
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file).status();
    let status = status.with_context(|| format!("the editor {editor} does not start"))?;
    anyhow::ensure!(status.success(), "the editor {editor} ended with {status}; nothing was changed");
    Ok(())
}
