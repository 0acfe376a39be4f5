//! Memories: what is worth knowing beyond one session, and which of them a question brings to mind. Pure and total.
//!
//! A memory is one Markdown file that a person can read and edit; the door `shelf` keeps the files, this room says what
//! they mean: the text of a file, its name, the index, marks of what was replaced, the order for a question, and the words
//! that the model reads. Time comes in from outside, so equal inputs give equal bytes.

mod entry;
mod index;
mod news;
mod rank;
mod render;
mod slug;

pub use entry::{Entry, Kind};
pub use index::index;
pub use news::Seen;
pub use rank::{ranked, search};
pub use render::{SHOWN, age_note, heading, render, segment};
pub use slug::{archive_name, are_one, is_slug, placed, slug};

use std::collections::BTreeSet;

/// All that lies on the shelf.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Entries that hold, newest first.
    pub current: Vec<Entry>,
    /// Older versions, entries that others replaced, and forgotten ones, newest first.
    pub archived: Vec<Entry>,
    /// Files that do not read; they hide no other.
    pub broken: Vec<Broken>,
}

/// A file that does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its name in the folder.
    pub file: String,
    /// What is wrong, where in it, and what to do.
    pub reason: String,
}

/// Whether an entry still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// It does.
    Holds,
    /// Another took its place: the one that holds now, when there still is one.
    Updated(Option<String>),
    /// It was forgotten on purpose, or what took its place was.
    Forgotten,
}

impl Listing {
    /// Puts the files in their order. Called by whoever has read them.
    pub fn new(entries: Vec<Entry>, mut broken: Vec<Broken>) -> Self {
        let (mut current, mut archived): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.archived.is_none());
        let newest = |a: &Entry, b: &Entry| b.updated.cmp(&a.updated).then_with(|| a.file.cmp(&b.file));
        current.sort_by(newest);
        archived.sort_by(newest);
        broken.sort_by(|a, b| a.file.cmp(&b.file));
        Self { current, archived, broken }
    }

    /// The entry of this name that holds.
    pub fn get(&self, slug: &str) -> Option<&Entry> {
        self.current.iter().find(|entry| entry.slug == slug)
    }

    /// The newest version in the archive of an entry that others replaced; not of one that was forgotten.
    pub fn replaced(&self, slug: &str) -> Option<&Entry> {
        self.newest_archived(slug).filter(|entry| entry.superseded_by.is_some() && !entry.forgotten)
    }

    fn newest_archived(&self, slug: &str) -> Option<&Entry> {
        self.archived.iter().filter(|entry| entry.slug == slug).max_by_key(|entry| entry.archived)
    }

    /// Entries that may come to mind: those that hold, and the newest version of each one that another replaced. What was
    /// forgotten stays so, with all that it had replaced.
    pub fn candidates(&self) -> Vec<(&Entry, Mark)> {
        let mut names: BTreeSet<&str> = self.current.iter().map(|entry| entry.slug.as_str()).collect();
        let mut found: Vec<_> = self.current.iter().map(|entry| (entry, self.mark(entry))).collect();
        for slug in self.archived.iter().map(|entry| entry.slug.as_str()) {
            if names.insert(slug)
                && let Some(entry) = self.replaced(slug)
            {
                found.push((entry, self.mark(entry)));
            }
        }
        found.retain(|(_, mark)| *mark != Mark::Forgotten);
        found
    }

    /// Whether an entry holds, and what holds in its place, however often it was replaced.
    pub fn mark(&self, entry: &Entry) -> Mark {
        if entry.forgotten {
            return Mark::Forgotten;
        }
        let Some(mut next) = self.successor(entry) else { return Mark::Holds };
        // A hand-edited chain may run in a circle.
        let mut seen = BTreeSet::new();
        while seen.insert(next) {
            match self.get(next).or_else(|| self.newest_archived(next)) {
                Some(here) if here.forgotten => return Mark::Forgotten,
                Some(here) => match self.successor(here) {
                    Some(further) => next = further,
                    None if here.archived.is_none() => return Mark::Updated(Some(here.slug.clone())),
                    None => break,
                },
                None => break,
            }
        }
        Mark::Updated(None)
    }

    /// Who says that it took the place of `entry`: the entry itself, or a newer one. Either alone is enough, since a
    /// process may have died between the two files.
    fn successor<'a>(&'a self, entry: &'a Entry) -> Option<&'a str> {
        let newer = |other: &&Entry| {
            other.supersedes.as_deref() == Some(entry.slug.as_str())
                && other.slug != entry.slug
                && other.updated >= entry.updated
        };
        entry.superseded_by.as_deref().or_else(|| self.current.iter().find(newer).map(|other| other.slug.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::entry::sample;
    use super::*;

    fn replaced(name: &str, by: &str, at: i64) -> Entry {
        Entry { archived: Some(1), superseded_by: Some(by.into()), ..sample(name, at) }
    }

    #[test]
    fn a_chain_of_replacements_leads_to_what_holds_now() {
        let listing = Listing::new(vec![replaced("a", "b", 1), replaced("b", "c", 2), sample("c", 3)], Vec::new());
        let marks: Vec<_> = listing.candidates().into_iter().map(|(entry, mark)| (entry.slug.as_str(), mark)).collect();
        let to_c = Mark::Updated(Some("c".into()));
        assert_eq!(marks, [("c", Mark::Holds), ("b", to_c.clone()), ("a", to_c)]);
    }

    #[test]
    fn a_circle_and_a_successor_that_is_gone_are_marked_without_a_name() {
        let listing =
            Listing::new(vec![replaced("a", "b", 1), replaced("b", "a", 2), replaced("c", "gone", 3)], Vec::new());
        for (entry, mark) in listing.candidates() {
            assert_eq!(mark, Mark::Updated(None), "{}", entry.slug);
        }
    }

    #[test]
    fn what_a_newer_entry_says_of_an_older_one_is_enough_and_not_the_other_way_round() {
        let newer = Entry { supersedes: Some("a".into()), ..sample("b", 5) };
        let listing = Listing::new(vec![sample("a", 1), newer.clone()], Vec::new());
        assert_eq!(listing.mark(&listing.current[1]), Mark::Updated(Some("b".into())));
        let written_again = Listing::new(vec![sample("a", 9), newer], Vec::new());
        assert_eq!(written_again.mark(&written_again.current[0]), Mark::Holds);
    }

    #[test]
    fn what_was_forgotten_stays_so_with_all_that_it_had_replaced() {
        let forgotten = Entry { archived: Some(2), forgotten: true, ..sample("a", 3) };
        let listing = Listing::new(vec![replaced("a", "a", 1), forgotten, replaced("b", "a", 1)], Vec::new());
        assert_eq!(listing.candidates(), []);
        assert_eq!(listing.replaced("a"), None);
    }

    #[test]
    fn an_older_version_of_what_holds_is_no_candidate() {
        let listing = Listing::new(vec![sample("a", 3), replaced("a", "a", 1)], Vec::new());
        assert_eq!(listing.candidates().len(), 1);
    }
}
