//! From bytes to text, and from text to frontmatter and body.

use super::Finding;
use super::lines::key_line;

/// A text, taken apart. Frontmatter and bodies borrow from it.
pub(super) struct Split<'a> {
    /// What stands between the two rules; none where the file does not begin with one.
    pub front: Option<Front<'a>>,
    /// What follows.
    pub body: &'a str,
    /// All of the file, for when the frontmatter turns out to be none.
    pub whole: &'a str,
    /// What is wrong with the frame.
    pub findings: Vec<Finding>,
}

/// Lines of frontmatter.
pub(super) struct Front<'a> {
    /// The lines between the rules.
    pub text: &'a str,
    /// Line of the file that the first of them is, from 1.
    pub line: usize,
}

/// The text of a file, with `\n` line ends and without a byte-order mark. What is not UTF-8 is read as Latin-1, or as
/// UTF-16 where the mark says so.
pub(super) fn decode(bytes: &[u8]) -> (String, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes, &mut findings),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes, &mut findings),
        _ => utf8(bytes, &mut findings),
    };
    if text.contains('\r') {
        text = text.replace("\r\n", "\n").replace('\r', "\n");
    }
    (text, findings)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, findings: &mut Vec<Finding>) -> String {
    findings.push(Finding::warning(1, "the file is UTF-16; save it as UTF-8"));
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn utf8(bytes: &[u8], findings: &mut Vec<Finding>) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut first = None;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            first.get_or_insert_with(|| text.matches('\n').count() + 1);
        }
        text.extend(chunk.invalid().iter().map(|byte| char::from(*byte)));
    }
    let line = first.unwrap_or(1);
    findings.push(Finding::warning(line, "the file is not UTF-8, and was read as Latin-1 from here; save it as UTF-8"));
    text
}

/// Whether a line opens or closes frontmatter.
fn is_rule(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Finds the frontmatter. A missing closing rule is put where the keys end.
pub(super) fn split(text: &str) -> Split<'_> {
    let none =
        |finding: &str| Split { front: None, body: text, whole: text, findings: vec![Finding::warning(1, finding)] };
    let mut lines = Lines { rest: text, at: 0, number: 0 };
    let opening = loop {
        match lines.next() {
            None => return none("the file is empty; write a frontmatter and instructions"),
            Some((_, _, line)) if line.trim().is_empty() => {}
            Some(found) => break found,
        }
    };
    let (number, _, line) = opening;
    if !is_rule(line) {
        return none(
            "there is no frontmatter; begin the file with --- and name: and description:, and close it with ---",
        );
    }
    let start = lines.at;
    let closing = lines.clone().find(|(_, _, line)| is_rule(line) || line.trim_end() == "...");
    if let Some((_, at, line)) = closing {
        let front = Front { text: &text[start..at], line: number + 1 };
        return Split { front: Some(front), body: &text[at + line.len()..], whole: text, findings: Vec::new() };
    }
    let ends = |line: &str| line.trim().is_empty() || !(line.starts_with([' ', '\t', '-']) || key_line(line).is_some());
    let end = lines.find(|(_, _, line)| ends(line)).map_or(text.len(), |(_, at, _)| at);
    if text[start..end].lines().all(|line| key_line(line).is_none()) {
        return none(
            "there is no frontmatter; begin the file with --- and name: and description:, and close it with ---",
        );
    }
    let finding = Finding::warning(number, "the frontmatter is not closed; put a line --- below its last key");
    let front = Front { text: &text[start..end], line: number + 1 };
    Split { front: Some(front), body: &text[end..], whole: text, findings: vec![finding] }
}

/// Lines with their number from 1, their place, and their line end.
#[derive(Clone)]
struct Lines<'a> {
    rest: &'a str,
    at: usize,
    number: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.find('\n').map_or(self.rest.len(), |end| end + 1);
        let (line, rest) = self.rest.split_at(end);
        let at = self.at;
        (self.rest, self.at, self.number) = (rest, at + end, self.number + 1);
        Some((self.number, at, line))
    }
}
