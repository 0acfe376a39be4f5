//! What changed on the shelf since a session last looked: told at the tail of the conversation, since the system prompt
//! stays as it is.

use super::{Entry, Listing, Mark, heading};
use crate::plain;
use crate::prompt::{Language, Texts, contained};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Changes that one reminder names; a folder that was restored is no news item by item.
const NAMED: usize = 10;

/// What a session knows of the shelf: versions of entries by slug. Empty and unfollowed until it has looked once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seen {
    known: Option<BTreeMap<String, String>>,
}

impl Seen {
    /// A session that begins now knows all that is there.
    pub fn all(listing: &Listing) -> Self {
        Self { known: Some(versions(listing.current.iter())) }
    }

    /// A session that was last written to at `time` knows what had been there then; what is newer will be news.
    pub fn as_of(listing: &Listing, time: Timestamp) -> Self {
        Self { known: Some(versions(listing.current.iter().filter(|entry| entry.updated <= time))) }
    }

    /// Notes a version that the session wrote or read itself, which is no news to it.
    pub fn note(&mut self, slug: &str, version: &str) {
        if let Some(known) = &mut self.known {
            known.insert(slug.to_owned(), version.to_owned());
        }
    }

    /// Notes that the session itself took an entry away.
    pub fn note_gone(&mut self, slug: &str) {
        if let Some(known) = &mut self.known {
            known.remove(slug);
        }
    }

    /// The text of a reminder on all that others changed since the last look, or none; after it, all is known.
    pub fn news(&mut self, listing: &Listing, texts: &Texts) -> Option<String> {
        let language = texts.language();
        let known = self.known.as_mut()?;
        let now = versions(listing.current.iter());
        let changed = listing.current.iter().filter(|entry| known.get(&entry.slug) != Some(&entry.version));
        let changed: Vec<(&Entry, bool)> = changed.map(|entry| (entry, known.contains_key(&entry.slug))).collect();
        let gone: Vec<String> = known.keys().filter(|slug| !now.contains_key(*slug)).cloned().collect();
        *known = now;
        let mut lines: Vec<String> = changed.iter().map(|(entry, was)| line(entry, *was, language)).collect();
        lines.extend(gone.iter().map(|slug| gone_line(slug, listing, language)));
        if lines.is_empty() {
            return None;
        }
        let more = lines.len().saturating_sub(NAMED);
        lines.truncate(NAMED);
        if more > 0 {
            lines.push(match language {
                Language::Zh => format!("- 另有 {more} 条"),
                Language::En => format!("- and {more} more"),
            });
        }
        Some(texts.fill("memory-news", &[("changes", &lines.join("\n"))]))
    }
}

fn versions<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<String, String> {
    entries.map(|entry| (entry.slug.clone(), entry.version.clone())).collect()
}

fn line(entry: &Entry, was_known: bool, language: Language) -> String {
    let word = match (was_known, language) {
        (true, Language::Zh) => "已修改",
        (false, Language::Zh) => "新增",
        (true, Language::En) => "changed",
        (false, Language::En) => "new",
    };
    format!("- {word} {}", heading(entry, &Mark::Holds, language))
}

fn gone_line(slug: &str, listing: &Listing, language: Language) -> String {
    let successor = listing.replaced(slug).map(|entry| listing.mark(entry));
    let slug = contained(&plain::one_line(slug, 64));
    match (successor, language) {
        (Some(Mark::Updated(Some(by))), Language::Zh) => format!("- 已更新 {slug}→{by}"),
        (Some(Mark::Updated(Some(by))), Language::En) => format!("- updated {slug}→{by}"),
        (_, Language::Zh) => format!("- 已删除 {slug}"),
        (_, Language::En) => format!("- forgotten {slug}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::sample;
    use super::*;
    use expect_test::expect;

    fn of(entries: &[(&str, i64)]) -> Listing {
        Listing::new(entries.iter().map(|(slug, at)| sample(slug, *at)).collect(), Vec::new())
    }

    #[test]
    fn others_changes_are_told_once() {
        let mut seen = Seen::all(&of(&[("a", 1), ("b", 1), ("c", 1)]));
        let mut listing = of(&[("a", 1), ("b", 2), ("d", 3)]);
        let old = Entry { archived: Some(1), superseded_by: Some("d".into()), ..sample("c", 1) };
        listing.archived.push(old);
        expect![[r#"
            [Memory changed] Outside of this session:
            - new [project] d: about d
            - changed [project] b: about b
            - updated c→d
            Read one whole with memory_read; check it before you rely on it."#]]
        .assert_eq(&seen.news(&listing, &Texts::built_in(Language::En)).unwrap());
        assert_eq!(seen.news(&listing, &Texts::built_in(Language::En)), None);
        let told = seen.news(&of(&[("a", 1), ("b", 2)]), &Texts::built_in(Language::Zh)).unwrap();
        assert!(told.contains("- 已删除 d"), "{told}");
    }

    #[test]
    fn what_the_session_did_itself_is_no_news() {
        let mut seen = Seen::all(&of(&[("a", 1), ("b", 1)]));
        seen.note("a", "a@2");
        seen.note_gone("b");
        assert_eq!(seen.news(&of(&[("a", 2)]), &Texts::built_in(Language::En)), None);
    }

    #[test]
    fn a_session_that_goes_on_hears_what_happened_meanwhile() {
        let listing = of(&[("a", 1), ("b", 5)]);
        let mut seen = Seen::as_of(&listing, sample("x", 3).updated);
        let told = seen.news(&listing, &Texts::built_in(Language::En)).unwrap();
        assert!(told.contains("b: about b") && !told.contains("a: about a"), "{told}");
    }

    #[test]
    fn many_changes_are_counted_and_an_unfollowed_shelf_is_silent() {
        let names: Vec<String> = (0..30).map(|n| format!("m{n}")).collect();
        let many = of(&names.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>());
        let told = Seen::all(&of(&[])).news(&many, &Texts::built_in(Language::En)).unwrap();
        assert_eq!(told.lines().count(), 13);
        assert!(told.contains("- and 20 more"), "{told}");
        assert_eq!(Seen::default().news(&many, &Texts::built_in(Language::En)), None);
    }
}
