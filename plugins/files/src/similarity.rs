//! Which lines of a file resemble a text that was not found in it. Pure.

use std::collections::HashMap;

/// Lines that are compared. A file is rarely longer, and an error message may not take seconds.
const MAX_LINES: usize = 50_000;
/// Lines longer than this are not what anybody quotes, in bytes.
const MAX_BYTES: usize = 1_000;

/// A line that resembles the text.
#[derive(Debug, PartialEq, Eq)]
pub struct Near<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The line.
    pub line: &'a str,
    /// Whether only white space differs.
    pub only_space: bool,
}

/// Up to three lines of `text` that resemble the first line of `wanted` that says anything, the most alike first.
pub fn nearest<'a>(text: &'a str, wanted: &str) -> Vec<Near<'a>> {
    let Some(wanted) = wanted.lines().map(str::trim).find(|line| !line.is_empty()) else { return Vec::new() };
    let wanted_words = squeeze(wanted);
    let wanted = pairs(&wanted_words);
    let mut scored = Vec::new();
    for (at, line) in text.lines().take(MAX_LINES).enumerate() {
        if line.len() <= MAX_BYTES && !line.trim().is_empty() {
            let words = squeeze(line);
            let score = if words == wanted_words { 1000 } else { likeness(&wanted, &pairs(&words)) };
            scored.push((score, Near { number: at + 1, line, only_space: score == 1000 }));
        }
    }
    // Below a half, lines share letters and not meaning.
    scored.retain(|(score, _)| *score >= 500);
    scored.sort_by_key(|(score, near)| (std::cmp::Reverse(*score), near.number));
    scored.into_iter().take(3).map(|(_, near)| near).collect()
}

/// The text without white space.
fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// How often each pair of neighbouring characters occurs.
fn pairs(text: &str) -> HashMap<(char, char), usize> {
    let mut pairs = HashMap::new();
    for pair in text.chars().zip(text.chars().skip(1)) {
        *pairs.entry(pair).or_insert(0) += 1;
    }
    pairs
}

/// Dice's coefficient in thousandths: twice the pairs in common over the pairs of both; 999 at the most.
fn likeness(a: &HashMap<(char, char), usize>, b: &HashMap<(char, char), usize>) -> usize {
    let common: usize = a.iter().map(|(pair, n)| (*n).min(b.get(pair).copied().unwrap_or(0))).sum();
    let all: usize = a.values().sum::<usize>() + b.values().sum::<usize>();
    (2000 * common).checked_div(all).unwrap_or(0).min(999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_lines_come_first() {
        let text = "fn main() {\n\tlet total = 1;\n    let totals = 2;\n}\n";
        let near = nearest(text, "\n    let total = 1;\n}");
        assert_eq!(near[0], Near { number: 2, line: "\tlet total = 1;", only_space: true });
        assert_eq!(near[1].number, 3);
        assert_eq!(near.len(), 2);
    }

    #[test]
    fn nothing_alike_is_nothing() {
        assert_eq!(nearest("alpha\nbeta\n", "12345"), []);
        assert_eq!(nearest("", "x"), []);
        assert_eq!(nearest("x", " \n"), []);
    }
}
