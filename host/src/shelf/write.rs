//! Writing: under the lock, archive first, then the new file, then the index.

use super::{ENTRIES, FILE_BYTES, INDEX, Shelf, ShelfError, failed, lock, read};
use crate::memory::{Entry, Kind, Listing, Mark, archive_name, are_one, index, is_slug, placed, slug};
use crate::plain::one_line;
use crate::yaml;
use serde_json::Map;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Bytes of a description: one line.
const DESCRIPTION: usize = 600;

/// What is to be written.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// Which entry: its slug, or a name that the slug is made of.
    pub slug: &'a str,
    /// The name that people read, where it says more than the slug; the one before stays when it is left out.
    pub name: Option<&'a str>,
    /// What it is about.
    pub kind: Kind,
    /// One line; line ends become spaces.
    pub description: &'a str,
    /// Markdown.
    pub content: &'a str,
    /// Name of the entry whose place it takes.
    pub supersedes: Option<&'a str>,
    /// The version that it was made from; another one on the shelf refuses it.
    pub made_from: Option<&'a str>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its slug.
    pub slug: String,
    /// Fingerprint of the new file.
    pub version: String,
    /// The file that the older version went to, if there was one.
    pub archived: Option<String>,
    /// The entry that it replaced.
    pub replaced: Option<String>,
}

impl Shelf {
    /// Writes an entry; one of the same name, and the one it supersedes, go to the archive.
    pub fn write(&self, draft: &Draft<'_>) -> Result<Written, ShelfError> {
        let slug = slug_of(draft.slug)?;
        let description = draft.description.split_whitespace().collect::<Vec<_>>().join(" ");
        if description.is_empty() || description.len() > DESCRIPTION {
            return Err(ShelfError::Invalid(format!(
                "the description of {slug} must be one line of 1 to {DESCRIPTION} bytes; put the rest into the content"
            )));
        }
        let supersedes = draft.supersedes.map(slug_of).transpose()?.filter(|old| *old != slug);
        self.changing(|shelf, listing| {
            let before = listing.get(&slug);
            if draft.made_from.is_some_and(|version| before.is_none_or(|entry| entry.version != version)) {
                return Err(ShelfError::Changed(slug.clone()));
            }
            let replaced =
                supersedes.as_deref().map(|old| listing.get(old).ok_or_else(|| unknown(listing, old, old))).transpose()?;
            if let Some(other) = before.and_then(|entry| another(entry, draft.slug)) {
                return Err(ShelfError::Invalid(format!(
                    "{:?} would take the place of the memory {slug}, which is {other:?}; write to {slug} if that is meant, \
                     or choose a name that differs in letters or digits",
                    draft.slug
                )));
            }
            let before_name = before.and_then(|entry| entry.name.as_deref());
            let name =
                draft.name.or(before_name).unwrap_or(draft.slug).split_whitespace().collect::<Vec<_>>().join(" ");
            let entry = Entry {
                slug: slug.clone(),
                name: Some(name).filter(|name| *name != slug && !name.is_empty()),
                kind: draft.kind,
                description: description.clone(),
                content: draft.content.replace("\r\n", "\n").trim().to_owned(),
                supersedes: supersedes.clone(),
                superseded_by: None,
                archived: None,
                forgotten: false,
                own: before.map_or_else(Map::new, |entry| entry.own.clone()),
                updated: jiff::Timestamp::default(),
                version: String::new(),
                file: format!("{slug}.md"),
            };
            let text = entry.to_text();
            let version = read::fingerprint(text.as_bytes());
            if before.is_none() && replaced.is_none() && listing.current.len() >= ENTRIES {
                return Err(ShelfError::Limit(format!(
                    "there are {ENTRIES} memories; forget some, or write over one that no longer holds"
                )));
            }
            check_size(&slug, &text)?;
            let archived = shelf.put(&slug, &text)?;
            if let Some(old) = replaced {
                shelf.archive(&Entry { superseded_by: Some(slug.clone()), ..old.clone() })?;
                shelf.remove(&old.file)?;
            }
            Ok(Written { slug: slug.clone(), version, archived, replaced: replaced.map(|old| old.slug.clone()) })
        })
    }

    /// Puts an entry into the archive.
    pub fn forget(&self, name: &str) -> Result<String, ShelfError> {
        let slug = slug_of(name)?;
        self.changing(|shelf, listing| {
            let entry = listing.get(&slug).ok_or_else(|| unknown(listing, &slug, name))?;
            if let Some(other) = another(entry, name) {
                return Err(stranger(name, entry, other));
            }
            let file = shelf.archive(&Entry { forgotten: true, ..entry.clone() })?;
            shelf.remove(&entry.file)?;
            Ok(file)
        })
    }

    /// The bytes of an entry's file, also of one that does not read, for an editor.
    pub fn raw(&self, file: &str) -> Result<Vec<u8>, ShelfError> {
        let path = self.file(file)?;
        fs::read(&path).map_err(failed(&path))
    }

    /// Puts an edited file in place of the one with the bytes `before`; the text must read.
    pub fn replace(&self, file: &str, before: &[u8], text: &str) -> Result<Entry, ShelfError> {
        let path = self.file(file)?;
        let Some((slug, None)) = placed(file) else {
            return Err(ShelfError::Invalid(format!("{file} is no entry that holds; only those are edited")));
        };
        let entry = Entry::parse(slug, text).map_err(|reason| ShelfError::Invalid(format!("{file}: {reason}")))?;
        check_size(slug, text)?;
        // What an edit takes away unseen: without its type an entry would be read as one about the project.
        if has_type(&String::from_utf8_lossy(before)) && !has_type(text) {
            return Err(ShelfError::Invalid(format!(
                "{file}: its head no longer has a type; write type: user, feedback, project or reference between two lines \
                 of ---"
            )));
        }
        self.changing(|shelf, _| {
            if fs::read(&path).map_err(failed(&path))? != before {
                return Err(ShelfError::Changed(slug.to_owned()));
            }
            shelf.put(slug, text)?;
            Ok(entry.clone())
        })
    }

    fn file(&self, file: &str) -> Result<PathBuf, ShelfError> {
        match placed(file) {
            Some(_) => Ok(self.folder.join(file)),
            None => Err(ShelfError::Invalid(format!("{file} is no file of a memory"))),
        }
    }

    /// Runs `change` as the only writer, then makes the index anew, whatever came of it.
    fn changing<T>(&self, change: impl Fn(&Self, &Listing) -> Result<T, ShelfError>) -> Result<T, ShelfError> {
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        let _exclusive = lock::exclusive(&self.folder)?;
        let listing = self.list_locked()?;
        let done = change(self, &listing);
        // An index that could not be written is made by the next change; the entries are what counts.
        let indexed = self.list_locked().and_then(|listing| self.place(INDEX, index(&listing).as_bytes(), None));
        if let Err(error) = indexed {
            tracing::error!("the index of memories is out of date: {error}");
        }
        done
    }

    /// Puts a text in place, and what was there into the archive; answers with the archive's file.
    fn put(&self, slug: &str, text: &str) -> Result<Option<String>, ShelfError> {
        let file = format!("{slug}.md");
        let path = self.folder.join(&file);
        let before = match fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path)(error)),
        };
        let changed = before.as_deref().is_some_and(|bytes| bytes != text.as_bytes());
        let archived = match before.filter(|_| changed) {
            // One that reads is marked as replaced by its own next version; one that does not is kept as it is.
            Some(bytes) => Some(match read::entry(&self.folder, &file) {
                Ok(entry) => self.archive(&Entry { superseded_by: Some(slug.to_owned()), ..entry })?,
                Err(_) => self.keep(slug, &bytes, None)?,
            }),
            None => None,
        };
        self.place(&file, text.as_bytes(), None)?;
        Ok(archived)
    }

    fn archive(&self, entry: &Entry) -> Result<String, ShelfError> {
        let time = SystemTime::from(entry.updated);
        self.keep(&entry.slug, entry.to_text().as_bytes(), Some(time))
    }

    /// Writes bytes to the next free place of the archive.
    fn keep(&self, slug: &str, bytes: &[u8], time: Option<SystemTime>) -> Result<String, ShelfError> {
        let names = fs::read_dir(&self.folder).map_err(failed(&self.folder))?;
        let versions = names.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            placed(&name).filter(|(owner, _)| *owner == slug).and_then(|(_, version)| version)
        });
        let file = archive_name(slug, versions.max().unwrap_or(0).saturating_add(1));
        self.place(&file, bytes, time)?;
        Ok(file)
    }

    fn remove(&self, file: &str) -> Result<(), ShelfError> {
        let path = self.folder.join(file);
        fs::remove_file(&path).map_err(failed(&path))
    }

    /// Writes a file beside its place, puts it on the disk, and renames it over what was there. A file that takes the
    /// place of another is never older than it, even where the clock was set back.
    fn place(&self, file: &str, bytes: &[u8], time: Option<SystemTime>) -> Result<(), ShelfError> {
        let path = self.folder.join(file);
        let failed = failed(&path);
        let mut fresh = tempfile::Builder::new().prefix(".write-").tempfile_in(&self.folder).map_err(&failed)?;
        fresh.write_all(bytes).map_err(&failed)?;
        let before = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
        let now = SystemTime::now();
        let after = before.map(|before| before + Duration::from_millis(1)).filter(|after| *after > now);
        if let Some(time) = time.or(after) {
            fresh.as_file().set_modified(time).map_err(&failed)?;
        }
        fresh.as_file().sync_all().map_err(&failed)?;
        fresh.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

pub(super) fn slug_of(name: &str) -> Result<String, ShelfError> {
    slug(name).ok_or_else(|| {
        ShelfError::Invalid(format!(
            "{name:?} names no memory; use a few words with letters or digits, and not `memory`"
        ))
    })
}

/// Whether the head of a file says of what type it is.
fn has_type(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    matches!(yaml::frontmatter(&text), Ok((Some((_, head)), _)) if head.lines().any(|line| line.starts_with("type:")))
}

fn check_size(slug: &str, text: &str) -> Result<(), ShelfError> {
    match text.len() as u64 > FILE_BYTES {
        true => Err(ShelfError::Limit(format!(
            "the memory {slug} would have {} bytes, more than {FILE_BYTES}; keep the text in a file and point to it",
            text.len()
        ))),
        false => Ok(()),
    }
}

/// The name of an entry that was found by the slug of `name`, where it is another one's. Whoever writes the slug itself
/// means that entry.
pub(super) fn another<'a>(entry: &'a Entry, name: &str) -> Option<&'a str> {
    let own = entry.name.as_deref().unwrap_or(&entry.slug);
    (!is_slug(name.trim()) && !are_one(own, name)).then_some(own)
}

/// There is no entry of this name, only one whose name is alike.
pub(super) fn stranger(name: &str, entry: &Entry, own: &str) -> ShelfError {
    ShelfError::NotFound(format!("there is no memory {name:?}; {} is {own:?}", entry.slug))
}

/// Why there is no such entry, and which one may have been meant. `name` is what was asked for.
pub(super) fn unknown(listing: &Listing, slug: &str, name: &str) -> ShelfError {
    if let Some(broken) = listing.broken.iter().find(|broken| broken.file == format!("{slug}.md")) {
        return ShelfError::NotFound(format!("the memory {slug} does not read: {}", broken.reason));
    }
    if let Some(entry) = listing.archived.iter().find(|entry| entry.slug == slug) {
        return ShelfError::NotFound(match listing.mark(entry) {
            Mark::Updated(Some(by)) => format!("the memory {slug} was replaced by {by}; read that one"),
            _ => format!("the memory {slug} was forgotten; it is kept in {}", entry.file),
        });
    }
    let near = listing
        .current
        .iter()
        .map(|entry| (strsim::jaro_winkler(&entry.slug, slug), entry.slug.as_str()))
        .filter(|(near, _)| *near > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let hint = near.map_or_else(String::new, |(_, near)| format!("; did you mean {near}?"));
    ShelfError::NotFound(format!("there is no memory {}{hint}", one_line(name, 80)))
}
