//! Text of strangers made plain: what a guest, a model or a file wrote must not move the terminal's cursor, forge a line
//! or turn the reading order round. It prints nothing, and text that machines read (JSON, the transcript) stays as it is.

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

fn harmless(c: char) -> char {
    match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        c if c.is_control() => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::{lines, one_line};

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
}
