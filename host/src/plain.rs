//! Text of strangers made plain: what a guest, a model or a file wrote must not move the terminal's cursor, forge a line
//! or turn the reading order round. It prints nothing, and text that machines read (JSON, the transcript) stays as it is.

use std::fmt::Write as _;

/// One line of at most `max_bytes` bytes, cut at a character's edge and then ended by `…`. Control characters become
/// spaces, bidirectional marks and overrides U+FFFD.
pub fn one_line(text: &str, max_bytes: usize) -> String {
    let cut = text.floor_char_boundary(max_bytes);
    let mut line: String = text[..cut].chars().map(harmless).collect();
    if cut < text.len() {
        line.push('…');
    }
    line
}

/// The same for text of several lines: line ends and tabs stay, and nothing is cut.
pub fn lines(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { harmless(c) }).collect()
}

/// One line of at most `max_bytes` bytes of the text, in which every character that could mislead stands as an escape such
/// as `\u{202e}` (and `\` as `\\`, so that none can be forged): for records, which must show what was written.
pub fn escaped(text: &str, max_bytes: usize) -> String {
    let cut = text.floor_char_boundary(max_bytes);
    let mut line = String::with_capacity(cut);
    for c in text[..cut].chars() {
        match c {
            '\\' => line.push_str("\\\\"),
            c if c.is_control() || turns_order(c) || is_unseen(c) => {
                let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    if cut < text.len() {
        line.push('…');
    }
    line
}

fn harmless(c: char) -> char {
    match c {
        c if turns_order(c) => '\u{fffd}',
        c if c.is_control() => ' ',
        c => c,
    }
}

/// Marks, embeddings, overrides and isolates of the bidirectional algorithm.
fn turns_order(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Characters without a shape of their own, which hide text or break lines: separators, joiners, fillers and tags.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{escaped, lines, one_line};

    #[test]
    fn a_line_cannot_forge_another_or_move_the_cursor() {
        assert_eq!(one_line("a\nERROR b\u{1b}[2J\u{202e}c", 100), "a ERROR b [2J\u{fffd}c");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(one_line("星系星系", 7), "星系…");
        assert_eq!(one_line("星系", 6), "星系");
    }

    #[test]
    fn lines_keep_their_ends_and_tabs_and_nothing_else() {
        assert_eq!(lines("a\tb\r\nc\u{9b}2J\u{2066}\u{7f}"), "a\tb \nc 2J\u{fffd} ");
    }

    #[test]
    fn an_escape_shows_what_was_written_and_cannot_be_forged() {
        assert_eq!(
            escaped("a\n\u{1b}[2J\u{202e}\u{9b}\u{200b}é星", 100),
            "a\\u{a}\\u{1b}[2J\\u{202e}\\u{9b}\\u{200b}é星"
        );
        assert_eq!(escaped("\\u{a}", 100), "\\\\u{a}");
        assert_eq!(escaped("星系星系", 7), "星系…");
    }
}
