//! The search of grep_files in one buffer: matching lines, their neighbours, line numbers. Pure, on bytes.
//!
//! The regex runs over the whole buffer, not over line after line, which is what makes it fast; a match that spans
//! lines is then asked again for its first line alone.

use regex::bytes::Regex;

use crate::text::{clip, trim_end};

/// The most characters of a line that are shown.
const MAX_CHARS: usize = 500;
/// Where the match is far to the right, this many bytes before it are shown.
const LEAD: usize = 100;

/// Collects lines for the answer, file after file.
pub struct Sink {
    /// `file:line:text` for a match, `file-line-text` for a neighbour, `--` between groups.
    pub text: String,
    /// Matching lines so far.
    pub matches: usize,
    /// Whether a line was cut.
    pub cut: bool,
    /// Neighbours to show on each side.
    context: usize,
    /// Matching lines to show in all.
    limit: usize,
    /// Bytes to show in all.
    budget: usize,
}

impl Sink {
    /// An empty answer.
    pub fn new(context: usize, limit: usize, budget: usize) -> Self {
        Self { text: String::new(), matches: 0, cut: false, context, limit, budget }
    }

    /// Whether no further match has room.
    pub fn is_full(&self) -> bool {
        self.matches >= self.limit || self.text.len() >= self.budget
    }

    /// Searches one buffer, whose first line has the number `first`, and answers with the number of matching lines.
    pub fn search(&mut self, regex: &Regex, file: &str, buffer: &[u8], first: usize) -> usize {
        let before = self.matches;
        // The line after the last one shown: its offset and its number.
        let mut shown = Cursor { at: 0, line: first };
        let mut cursor = shown;
        let mut last_match = None;
        while cursor.at < buffer.len() && !self.is_full() {
            let Some(found) = regex.find_at(buffer, cursor.at) else { break };
            let start = memchr::memrchr(b'\n', &buffer[..found.start()]).map_or(0, |at| at + 1);
            if start >= buffer.len() {
                break;
            }
            cursor.advance(buffer, start);
            let end = line_end(buffer, start);
            let line = trim_end(&buffer[start..end]);
            if found.end() > start + line.len() && !regex.is_match(line) {
                cursor.advance(buffer, end);
                continue;
            }
            if self.context > 0 {
                self.neighbours(file, buffer, &mut shown, Some(cursor), last_match.is_some());
            }
            self.line(file, ':', cursor.line, line, found.start() - start);
            self.matches += 1;
            cursor.advance(buffer, end);
            shown = cursor;
            last_match = Some(cursor);
        }
        if last_match.is_some() && self.context > 0 {
            self.neighbours(file, buffer, &mut shown, None, true);
        }
        self.matches - before
    }

    /// Lines between two matches: up to `context` after the one before, then up to `context` before the next one.
    fn neighbours(&mut self, file: &str, buffer: &[u8], shown: &mut Cursor, next: Option<Cursor>, after: bool) {
        let end = next.map_or(buffer.len(), |next| next.at);
        for _ in 0..if after { self.context } else { 0 } {
            if shown.at < end {
                self.neighbour(file, buffer, shown);
            }
        }
        let Some(next) = next else { return };
        let mut lead = next;
        for _ in 0..self.context {
            if lead.at > shown.at {
                lead.at = memchr::memrchr(b'\n', &buffer[..lead.at - 1]).map_or(0, |at| at + 1);
                lead.line -= 1;
            }
        }
        if lead.at > shown.at || !after {
            if !self.text.is_empty() {
                self.text.push_str("--\n");
            }
            *shown = lead;
        }
        while shown.at < next.at {
            self.neighbour(file, buffer, shown);
        }
    }

    fn neighbour(&mut self, file: &str, buffer: &[u8], shown: &mut Cursor) {
        let end = line_end(buffer, shown.at);
        self.line(file, '-', shown.line, trim_end(&buffer[shown.at..end]), 0);
        *shown = Cursor { at: end, line: shown.line + 1 };
    }

    fn line(&mut self, file: &str, mark: char, number: usize, line: &[u8], column: usize) {
        // A match far to the right would be cut away; the excerpt starts shortly before it.
        let from = if column > MAX_CHARS - LEAD { column - LEAD } else { 0 };
        let from = (from..line.len()).find(|at| line[*at] & 0xc0 != 0x80).unwrap_or(line.len());
        let clipped = clip(&line[from..line.len().min(from + MAX_CHARS * 4 + 4)], MAX_CHARS);
        self.cut |= clipped.cut || from > 0;
        let (lead, tail) = (if from > 0 { "…" } else { "" }, if clipped.cut { "…" } else { "" });
        self.text.push_str(&format!("{file}{mark}{number}{mark}{lead}{}{tail}\n", clipped.text));
    }
}

/// The start of a line and its number.
#[derive(Clone, Copy)]
struct Cursor {
    at: usize,
    line: usize,
}

impl Cursor {
    fn advance(&mut self, buffer: &[u8], to: usize) {
        self.line += memchr::memchr_iter(b'\n', &buffer[self.at..to]).count();
        self.at = to;
    }
}

/// The offset after the line that starts at `start`.
fn line_end(buffer: &[u8], start: usize) -> usize {
    memchr::memchr(b'\n', &buffer[start..]).map_or(buffer.len(), |at| start + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grep(pattern: &str, text: &str, context: usize) -> String {
        let regex = crate::grep::compile(pattern, false).unwrap();
        let mut sink = Sink::new(context, 100, 1 << 20);
        sink.search(&regex, "f", text.as_bytes(), 1);
        sink.text
    }

    #[test]
    fn each_matching_line_is_shown_once_with_its_number() {
        assert_eq!(grep("a", "a a\nb\nca\r\n", 0), "f:1:a a\nf:3:ca\n");
        assert_eq!(grep("^b$", "ab\nb\r\nb", 0), "f:2:b\nf:3:b\n");
        assert_eq!(grep("x*", "a\n\nb", 0), "f:1:a\nf:2:\nf:3:b\n");
        assert_eq!(grep("x", "", 0), "");
    }

    #[test]
    fn a_match_never_spans_lines() {
        assert_eq!(grep(r"a\s+b", "a\nb\na b\n", 0), "f:3:a b\n");
        assert_eq!(grep(r"a[^x]*", "a\nb\na\n", 0), "f:1:a\nf:3:a\n");
        assert_eq!(grep(r"\n", "a\nb\n", 0), "");
    }

    #[test]
    fn neighbours_join_where_they_touch() {
        let text = "1\n2\nx3\n4\n5\n6\n7\n8\nx9\n10\nx11\n12\n13\n";
        assert_eq!(grep("x", text, 1), "f-2-2\nf:3:x3\nf-4-4\n--\nf-8-8\nf:9:x9\nf-10-10\nf:11:x11\nf-12-12\n");
        assert_eq!(grep("x", "x1\nx2\n", 2), "f:1:x1\nf:2:x2\n");
        assert_eq!(grep("x", "a\nx", 3), "f-1-a\nf:2:x\n");
    }

    #[test]
    fn every_line_agrees_with_a_search_line_by_line() {
        let text = "ab\n\ncd ab\nxx\n ab\nzab\n\n\nab";
        for pattern in ["ab", "^ab", "ab$", "^$", r"\bab\b", "a|x", "[^z]", r"\s", r"(?s)b.*a"] {
            let regex = crate::grep::compile(pattern, false).unwrap();
            let lines = text.lines().enumerate().filter(|(_, line)| regex.is_match(line.as_bytes()));
            let expected: String = lines.map(|(at, line)| format!("f:{}:{line}\n", at + 1)).collect();
            assert_eq!(grep(pattern, text, 0), expected, "{pattern}");
        }
    }

    #[test]
    fn a_match_far_to_the_right_is_still_seen() {
        let line = format!("{}needle{}", "星".repeat(400), "y".repeat(900));
        let shown = grep("needle", &line, 0);
        assert!(shown.starts_with("f:1:…星") && shown.contains("needle") && shown.ends_with("y…\n"), "{shown}");
    }
}
