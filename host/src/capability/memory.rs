//! `memory`: the library's memory files, read and written through the shelf.

use crate::memory::{self as judge, Listing, Mark};
use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::memory;
use crate::runtime::contract::astrarium::host::types::Error;
use crate::shelf::{Draft, ShelfError};
use serde_json::{Value, json};

/// Entries that one search answers with at most: more is no search.
const FOUND: u32 = 50;

impl GuestState {
    fn granted_memory(&self) -> Result<(), Error> {
        self.may("memory", self.env.effective.memory)
    }
}

impl memory::Host for GuestState {
    async fn read(&mut self, slug: String) -> Result<memory::Entry, Error> {
        self.granted_memory()?;
        let (entry, listing) = self.services.shelf.read(&slug)?;
        Ok(told(&entry, &listing))
    }

    async fn write(&mut self, entry: memory::Entry) -> Result<String, Error> {
        self.granted_memory()?;
        let extra: Value = match entry.extra.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text)
                .map_err(|error| Error::Invalid(format!("extra is no JSON object: {error}")))?,
        };
        let written = self.services.shelf.write(&Draft {
            slug: &entry.slug,
            name: extra.get("name").and_then(Value::as_str),
            kind: entry.kind.into(),
            description: &entry.description,
            content: &entry.content,
            supersedes: entry.supersedes.as_deref().filter(|slug| !slug.trim().is_empty()),
            made_from: extra.get("version").and_then(Value::as_str),
        })?;
        let mut seen = self.services.desk.memory();
        seen.note(&written.slug, &written.version);
        if let Some(old) = &written.replaced {
            seen.note_gone(old);
        }
        Ok(written.slug)
    }

    async fn search(&mut self, query: String, limit: u32) -> Result<Vec<memory::Entry>, Error> {
        self.granted_memory()?;
        let listing = self.services.shelf.list()?;
        let found = judge::search(&listing, &query, limit.clamp(1, FOUND) as usize);
        Ok(found.into_iter().map(|(entry, _)| told(entry, &listing)).collect())
    }

    async fn all(&mut self) -> Result<Vec<memory::Entry>, Error> {
        self.granted_memory()?;
        let listing = self.services.shelf.list()?;
        Ok(listing.current.iter().map(|entry| told(entry, &listing)).collect())
    }

    async fn forget(&mut self, slug: String) -> Result<(), Error> {
        self.granted_memory()?;
        self.services.shelf.forget(&slug)?;
        if let Some(slug) = judge::slug(&slug) {
            self.services.desk.memory().note_gone(&slug);
        }
        Ok(())
    }
}

/// An entry as a guest sees it. `extra` has its name, its version, and what took its place.
fn told(entry: &judge::Entry, listing: &Listing) -> memory::Entry {
    let by = match listing.mark(entry) {
        Mark::Updated(by) => Value::from(by),
        Mark::Holds | Mark::Forgotten => Value::Null,
    };
    let extra = json!({
        "name": entry.name.as_deref().unwrap_or(&entry.slug),
        "version": entry.version,
        "file": entry.file,
        "holds": listing.mark(entry) == Mark::Holds,
        "superseded_by": by,
    });
    memory::Entry {
        slug: entry.slug.clone(),
        kind: entry.kind.into(),
        description: entry.description.clone(),
        content: entry.content.clone(),
        supersedes: entry.supersedes.clone(),
        updated: format!("{:.3}", entry.updated),
        extra: extra.to_string(),
    }
}

impl From<judge::Kind> for memory::Kind {
    fn from(kind: judge::Kind) -> Self {
        match kind {
            judge::Kind::User => Self::User,
            judge::Kind::Feedback => Self::Feedback,
            judge::Kind::Project => Self::Project,
            judge::Kind::Reference => Self::Reference,
        }
    }
}

impl From<memory::Kind> for judge::Kind {
    fn from(kind: memory::Kind) -> Self {
        match kind {
            memory::Kind::User => Self::User,
            memory::Kind::Feedback => Self::Feedback,
            memory::Kind::Project => Self::Project,
            memory::Kind::Reference => Self::Reference,
        }
    }
}

impl From<ShelfError> for Error {
    fn from(error: ShelfError) -> Self {
        let text = error.to_string();
        match error {
            ShelfError::Invalid(_) => Error::Invalid(text),
            ShelfError::NotFound(_) => Error::NotFound(text),
            ShelfError::Limit(_) => Error::LimitExceeded(text),
            ShelfError::Changed(_) | ShelfError::Busy(_) | ShelfError::Failed { .. } => Error::Failed(text),
        }
    }
}
