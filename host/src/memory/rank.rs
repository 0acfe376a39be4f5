//! Which memories a question brings to mind: match × decay, ties by newest (SPEC 3.1).

use super::{Entry, Listing, Mark};
use crate::matching::fits;
use jiff::Timestamp;

/// Days after which a match counts half. Preferences and places of data outlive a week's work, and not a year's.
const HALF_LIFE_DAYS: f64 = 30.0;

/// A match below this is chance: a shared everyday word.
const FLOOR: f64 = 0.12;

/// What an entry that another replaced is worth against one that holds.
const REPLACED: f64 = 0.5;

/// The candidates for a question, best first. Entries without a match follow by age, newest first; those that another
/// replaced come to mind only when they match.
pub fn ranked<'a>(listing: &'a Listing, question: &str, now: Timestamp) -> Vec<(&'a Entry, Mark)> {
    let score = |entry: &Entry, fit| if fit < FLOOR { 0.0 } else { fit * decay(entry.updated, now) };
    let found = sorted(listing, question, score).into_iter();
    found
        .filter(|(score, _, mark)| *score > 0.0 || *mark == Mark::Holds)
        .map(|(_, entry, mark)| (entry, mark))
        .collect()
}

/// What matches a query, best first, however old it is.
pub fn search<'a>(listing: &'a Listing, query: &str, limit: usize) -> Vec<(&'a Entry, Mark)> {
    let found = sorted(listing, query, |_, fit| fit).into_iter();
    found.filter(|(score, ..)| *score > 0.0).map(|(_, entry, mark)| (entry, mark)).take(limit).collect()
}

type Scored<'a> = (f64, &'a Entry, Mark);

fn sorted<'a>(listing: &'a Listing, question: &str, score: impl Fn(&Entry, f64) -> f64) -> Vec<Scored<'a>> {
    let candidates = listing.candidates();
    let texts = candidates.iter().map(|(entry, _)| {
        let name = entry.name.as_deref().unwrap_or_default();
        (format!("{} {name} {}", entry.slug, entry.description), entry.content.as_str())
    });
    let fits = fits(question, &texts.collect::<Vec<_>>());
    let scored = candidates.into_iter().zip(fits).map(|((entry, mark), fit)| {
        let worth = if mark == Mark::Holds { 1.0 } else { REPLACED };
        (score(entry, fit) * worth, entry, mark)
    });
    let mut scored: Vec<Scored<'a>> = scored.collect();
    scored.sort_by(|(a, one, _), (b, other, _)| {
        b.total_cmp(a).then_with(|| other.updated.cmp(&one.updated)).then_with(|| one.slug.cmp(&other.slug))
    });
    scored
}

/// From 1 for what was written now towards 0. A clock that was set back makes nothing worth more than that.
fn decay(updated: Timestamp, now: Timestamp) -> f64 {
    let days = now.duration_since(updated).as_secs_f64() / 86_400.0;
    0.5_f64.powf(days.max(0.0) / HALF_LIFE_DAYS)
}

#[cfg(test)]
mod tests {
    use super::super::entry::sample;
    use super::*;

    fn now() -> Timestamp {
        "2026-04-01T00:00:00Z".parse().unwrap()
    }

    fn about(slug: &str, description: &str, at: i64) -> Entry {
        Entry { description: description.into(), content: String::new(), ..sample(slug, at) }
    }

    fn order(entries: Vec<Entry>, question: &str) -> Vec<String> {
        let listing = Listing::new(entries, Vec::new());
        ranked(&listing, question, now()).into_iter().map(|(entry, _)| entry.slug.clone()).collect()
    }

    #[test]
    fn without_a_match_the_newest_come_first() {
        let entries = vec![about("a", "x", 1), about("c", "y", 3), about("b", "z", 2)];
        assert_eq!(order(entries.clone(), ""), ["c", "b", "a"]);
        assert_eq!(order(entries, "红移"), ["c", "b", "a"]);
    }

    #[test]
    fn a_match_beats_age_and_age_decides_between_equal_matches() {
        let entries = vec![about("old", "红移 测量", 0), about("new", "红移 测量", 60), about("other", "作图", 89)];
        assert_eq!(order(entries, "红移测量怎么做"), ["new", "old", "other"]);
    }

    #[test]
    fn a_far_better_match_beats_a_newer_weak_one() {
        let entries = vec![about("strong", "测光零点 校准", 60), about("weak", "测光 以及许多别的事情", 89)];
        assert_eq!(order(entries, "测光零点校准")[0], "strong");
    }

    #[test]
    fn what_was_replaced_comes_to_mind_only_when_it_matches() {
        let replaced =
            Entry { archived: Some(1), superseded_by: Some("new".into()), ..about("gone", "红移目录", 80) };
        let entries = vec![replaced, about("new", "目录", 81), about("other", "作图", 89)];
        assert_eq!(order(entries.clone(), "作图"), ["other", "new"]);
        assert!(order(entries, "红移目录").contains(&"gone".to_owned()));
    }

    #[test]
    fn a_search_answers_with_what_matches_only() {
        let listing = Listing::new(vec![about("a", "红移", 1), about("b", "作图", 2)], Vec::new());
        let found: Vec<&str> = search(&listing, "红移", 5).into_iter().map(|(entry, _)| entry.slug.as_str()).collect();
        assert_eq!(found, ["a"]);
        assert!(search(&listing, "", 5).is_empty());
    }

    #[test]
    fn an_entry_from_the_future_is_worth_no_more_than_a_new_one() {
        assert_eq!(decay("2030-01-01T00:00:00Z".parse().unwrap(), now()), 1.0);
    }
}
