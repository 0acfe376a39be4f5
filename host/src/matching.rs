//! How well texts fit a question, by n-grams: pairs of characters in Chinese, Japanese and Korean, which put no spaces
//! between words, and triples within words elsewhere, so that `galaxies` finds `galaxy`.
//!
//! A term counts the more the fewer entries have it, so the common words of any language weigh little and need no list.

use std::collections::{BTreeMap, BTreeSet};

/// What a term is worth in the body, against one in the name or the description: those were chosen with care.
const BODY: f64 = 0.5;

/// What a term that no entry has takes off a fit, against one that some have: many pairs of characters are the end of one
/// word and the beginning of the next.
const UNKNOWN: f64 = 0.25;

/// Characters of a body that are looked at: past a few pages a text fits everything.
const LOOKED_AT: usize = 8_000;

/// English words that say nothing of what is meant. Few, since rare terms outweigh the rest anyway.
const EMPTY: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "has", "have", "how",
    "i", "in", "is", "it", "me", "my", "not", "of", "on", "or", "our", "please", "should", "so", "that", "the", "this",
    "to", "us", "was", "we", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// For each of some texts, given as what was written to be found by and the body behind it, how well it fits `question`,
/// from 0 to 1.
pub fn fits(question: &str, texts: &[(String, &str)]) -> Vec<f64> {
    let asked = terms(question);
    if asked.is_empty() {
        return vec![0.0; texts.len()];
    }
    let texts: Vec<(BTreeSet<String>, BTreeSet<String>)> =
        texts.iter().map(|(head, body)| terms_of(head, body)).collect();
    let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
    for term in &asked {
        let having = texts.iter().filter(|(head, body)| head.contains(term) || body.contains(term)).count();
        let weight = (1.0 + texts.len() as f64 / (having as f64 + 0.5)).ln();
        weights.insert(term, if having == 0 { weight * UNKNOWN } else { weight });
    }
    let whole: f64 = weights.values().sum();
    let fit = |(head, body): &(BTreeSet<String>, BTreeSet<String>)| {
        let found = weights.iter().map(|(term, weight)| {
            if head.contains(*term) {
                *weight
            } else if body.contains(*term) {
                weight * BODY
            } else {
                0.0
            }
        });
        found.sum::<f64>() / whole
    };
    texts.iter().map(fit).collect()
}

fn terms_of(head: &str, body: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let end = body.char_indices().nth(LOOKED_AT).map_or(body.len(), |(at, _)| at);
    (terms(head), terms(&body[..end]))
}

/// The terms of a text.
fn terms(text: &str) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    let mut run = String::new();
    let mut wide = false;
    // A separator at the end closes the last run.
    for c in text.to_lowercase().chars().chain([' ']) {
        let kind = if is_separator(c) { None } else { Some(is_wide(c)) };
        if kind != Some(wide) || run.is_empty() {
            close(&run, wide, &mut terms);
            run.clear();
        }
        if let Some(kind) = kind {
            wide = kind;
            run.push(c);
        }
    }
    terms
}

fn close(run: &str, wide: bool, terms: &mut BTreeSet<String>) {
    let length = if wide { 2 } else { 3 };
    let chars: Vec<char> = run.chars().collect();
    if chars.is_empty() || (!wide && EMPTY.contains(&run)) {
        return;
    }
    if chars.len() <= length {
        terms.insert(run.to_owned());
    } else {
        terms.extend(chars.windows(length).map(|gram| gram.iter().collect::<String>()));
    }
}

/// Besides what is no letter, the particles that stand between any two Chinese words.
fn is_separator(c: char) -> bool {
    !c.is_alphanumeric() || matches!(c, '的' | '了' | '吗' | '呢' | '吧' | '啊')
}

/// Scripts that put no spaces between words: Han, Kana, Hangul.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_pairs_in_chinese_and_triples_within_words() {
        let of = |text: &str| terms(text).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(of("星系的红移"), "星系 红移");
        assert_eq!(of("测光 NGC1275 z"), "127 275 c12 gc1 ngc z 测光");
        assert_eq!(of("What is the galaxy?"), "ala axy gal lax");
        assert_eq!(of("。 — !"), "");
    }

    fn best(question: &str, descriptions: &[&str]) -> (usize, Vec<f64>) {
        let texts: Vec<(String, &str)> = descriptions.iter().map(|text| ((*text).to_owned(), "")).collect();
        let fits = fits(question, &texts);
        let best = (0..fits.len()).max_by(|a, b| fits[*a].total_cmp(&fits[*b])).unwrap();
        (best, fits)
    }

    #[test]
    fn a_question_finds_its_entry_in_each_language() {
        let texts = [
            "用户偏好 AB 星等",
            "NGC 1275 的距离采用 70 Mpc",
            "galaxy cluster catalogues live in data/clusters",
            "図は PDF で保存する",
        ];
        for (question, wanted) in [
            ("这个源的星等怎么算？", 0),
            ("NGC 1275 有多远，距离是多少", 1),
            ("which catalogue lists the galaxies of a cluster?", 2),
            ("図の保存形式は？", 3),
        ] {
            let (found, fits) = best(question, &texts);
            assert_eq!(found, wanted, "{question}: {fits:?}");
        }
    }

    #[test]
    fn nothing_fits_an_empty_question_and_common_words_weigh_little() {
        assert_eq!(best("？！", &["a b", "c"]).1, [0.0, 0.0]);
        let (_, fits) = best("分析红移数据", &["分析计划", "分析测光", "分析方法", "红移"]);
        assert!(fits[3] > 1.5 * fits[0], "{fits:?}");
    }
}
