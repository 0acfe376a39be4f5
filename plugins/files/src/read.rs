//! read_file: a window of numbered lines, streamed, so that the size of the file does not matter.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use astrarium_sdk::{Context, Error, Output, Tool};

use crate::paths::{Place, Workspace};
use crate::text::{BUDGET, HEAD, binary_kind, clip, count, trim_end};

/// The most lines of one answer.
const MAX_LINES: usize = 2_000;
/// The most characters of one line.
const MAX_CHARS: usize = 2_000;
/// A character takes four bytes at the most, so this much of a line is enough to show [`MAX_CHARS`] of it.
const KEPT: usize = MAX_CHARS * 4 + 4;
/// Room for the line number and the note, in bytes.
const NOTE: usize = 512;
/// Counting the lines of a file means reading all of it; that is worth it up to here, in bytes.
const COUNTED: u64 = 16 << 20;

/// Reads a text file and answers with numbered lines, at most 2,000 lines and 96 KiB a call.
///
/// To read a part of a large file, give `offset` and `limit`; the answer says what was cut and how to go on.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Path of the file, relative to the workspace; or of a kept result, `/session/NAME`.
    pub path: String,
    /// First line to read, from 1.
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// How many lines to read, at most 2,000.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const SUMMARY: Option<&'static str> = Some("Reads a text file as numbered lines");
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let workspace = Workspace::around(ctx, &self.path);
        Ok(workspace.output(self.run(&workspace)?))
    }
}

/// What was shown, for the note below it.
#[derive(Default)]
struct Shown {
    first: u64,
    next: u64,
    cut: bool,
    lossy: bool,
    /// The file goes on after the last line shown.
    more: bool,
}

impl ReadFile {
    /// The answer, for a workspace.
    pub fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        let place = workspace.seen(&self.path)?;
        let size = place.file_metadata()?.len();
        let file = File::open(&place.guest).map_err(|error| place.explain("open", &error))?;
        workspace.touch(&place.shown);
        self.window(BufReader::with_capacity(64 * 1024, file), &place, size)
    }

    fn window(&self, mut reader: impl BufRead, place: &Place, size: u64) -> Result<String, Error> {
        let failed = |error: io::Error| place.explain("read", &error);
        let head = reader.fill_buf().map_err(failed)?;
        if head.is_empty() {
            return Ok(format!("[{} is empty]", place.shown));
        }
        if let Some(kind) = binary_kind(&head[..head.len().min(HEAD)]) {
            return Ok(format!(
                "[{} is {kind}, {} bytes; read_file shows text only]",
                place.shown,
                count(size as usize)
            ));
        }
        if head.starts_with("\u{feff}".as_bytes()) {
            reader.consume("\u{feff}".len());
        }
        let first = self.offset.unwrap_or(1).max(1);
        let limit = self.limit.unwrap_or(MAX_LINES as u64).clamp(1, MAX_LINES as u64);
        let mut skipped = 0;
        while skipped + 1 < first {
            if skip_line(&mut reader).map_err(failed)? == 0 {
                return Err(Error::invalid(format!(
                    "{} has {} lines, so there is no line {}; use a smaller offset",
                    place.shown,
                    count(skipped as usize),
                    count(first as usize)
                )));
            }
            skipped += 1;
        }
        let mut text = String::new();
        let mut shown = Shown { first, next: first, ..Shown::default() };
        let mut line = Vec::new();
        while shown.next < first + limit && text.len() + KEPT + NOTE < BUDGET {
            line.clear();
            let long = take_line(&mut reader, &mut line).map_err(failed)?;
            if line.is_empty() {
                break;
            }
            let clipped = clip(trim_end(&line), MAX_CHARS);
            shown.cut |= clipped.cut || long;
            shown.lossy |= clipped.lossy;
            let mark = if clipped.cut || long { "…" } else { "" };
            let _ = writeln!(text, "{:>6}\t{}{mark}", shown.next, clipped.text);
            shown.next += 1;
        }
        if shown.next == first {
            return Err(Error::invalid(format!(
                "{} has {} lines, so there is no line {}; use a smaller offset",
                place.shown,
                count(skipped as usize),
                count(first as usize)
            )));
        }
        shown.more = !reader.fill_buf().map_err(failed)?.is_empty();
        let rest = if shown.more && size <= COUNTED { Some(count_lines(&mut reader).map_err(failed)?) } else { None };
        text.push_str(&note(&shown, rest, size));
        Ok(text)
    }
}

/// What the model must know about the lines above; empty when they are the whole file, as it is.
fn note(shown: &Shown, rest: Option<u64>, size: u64) -> String {
    let mut notes = Vec::new();
    let last = shown.next - 1;
    if shown.more {
        let of = match rest {
            Some(rest) => format!("of {}", count((last + rest) as usize)),
            None => format!("of a file of {} bytes", count(size as usize)),
        };
        notes.push(format!(
            "lines {} to {} {of}; go on with offset {}",
            count(shown.first as usize),
            count(last as usize),
            shown.next
        ));
    }
    if shown.cut {
        notes.push(format!("lines longer than {} characters were cut and end in …", count(MAX_CHARS)));
    }
    if shown.lossy {
        notes.push("bytes that are not UTF-8 are shown as \u{fffd}".into());
    }
    if notes.is_empty() { String::new() } else { format!("[{}]\n", notes.join("; ")) }
}

/// Reads a line into `line`, of which only the first [`KEPT`] bytes are kept; true when there were more.
fn take_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut long = false;
    loop {
        let buffer = reader.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.map_or(buffer.len(), |at| at + 1);
        let room = KEPT.saturating_sub(line.len()).min(taken);
        line.extend_from_slice(&buffer[..room]);
        long |= room < taken;
        reader.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok(long);
        }
    }
}

/// Passes over a line and answers with its length; 0 at the end of the file.
fn skip_line(reader: &mut impl BufRead) -> io::Result<usize> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.map_or(buffer.len(), |at| at + 1);
        reader.consume(taken);
        skipped += taken;
        if end.is_some() || taken == 0 {
            return Ok(skipped);
        }
    }
}

/// Counts the lines that are left.
fn count_lines(reader: &mut impl BufRead) -> io::Result<u64> {
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let buffer = reader.fill_buf()?;
        let Some(end) = buffer.last() else {
            return Ok(lines + u64::from(last != b'\n'));
        };
        last = *end;
        lines += memchr::memchr_iter(b'\n', buffer).count() as u64;
        let taken = buffer.len();
        reader.consume(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8], offset: Option<u64>, limit: Option<u64>) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), content).unwrap();
        let answer = ReadFile { path: "f".into(), offset, limit }.run(&Workspace::at(folder.path()));
        answer.unwrap_or_else(|error| format!("error: {error}"))
    }

    #[test]
    fn a_whole_file_needs_no_note() {
        assert_eq!(read(b"one\ntwo\r\nthree", None, None), "     1\tone\n     2\ttwo\n     3\tthree\n");
        assert_eq!(read("\u{feff}a\n".as_bytes(), None, None), "     1\ta\n");
        assert_eq!(read(b"", None, None), "[f is empty]");
    }

    #[test]
    fn a_part_says_how_to_go_on() {
        assert_eq!(
            read(b"1\n2\n3\n4\n5", Some(2), Some(2)),
            "     2\t2\n     3\t3\n[lines 2 to 3 of 5; go on with offset 4]\n"
        );
        assert_eq!(read(b"1\n2\n", Some(2), Some(9)), "     2\t2\n");
        let many = "x\n".repeat(2_001);
        assert!(
            read(many.as_bytes(), None, Some(9_999)).ends_with("[lines 1 to 2,000 of 2,001; go on with offset 2001]\n")
        );
    }

    #[test]
    fn an_offset_past_the_end_is_refused_with_the_count() {
        let expected = "error: f has 2 lines, so there is no line 9; use a smaller offset";
        assert_eq!(read(b"1\n2\n", Some(9), None), expected);
        assert_eq!(read(b"1\n2\n", Some(3), None), expected.replace('9', "3"));
    }

    #[test]
    fn long_lines_and_long_answers_are_cut() {
        let answer = read("星".repeat(3_000).as_bytes(), None, None);
        assert_eq!(answer.chars().filter(|c| *c == '星').count(), 2_000);
        assert!(answer.ends_with("…\n[lines longer than 2,000 characters were cut and end in …]\n"), "{answer}");
        let wide = format!("{}\n", "y".repeat(1_999)).repeat(500);
        let answer = read(wide.as_bytes(), None, None);
        assert!(answer.len() < BUDGET && answer.contains("of 500; go on with offset 46"), "{}", answer.len());
    }

    #[test]
    fn what_is_not_text_is_named() {
        assert_eq!(
            read(b"\x89PNG\r\n\x1a\n\0\0", None, None),
            "[f is a PNG image, 10 bytes; read_file shows text only]"
        );
        assert!(
            read(b"caf\xe9\n", None, None).ends_with("caf\u{fffd}\n[bytes that are not UTF-8 are shown as \u{fffd}]\n")
        );
    }

    #[test]
    fn folders_missing_files_and_special_files_are_refused_with_a_cure() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let read = |path: &str| {
            ReadFile { path: path.into(), offset: None, limit: None }
                .run(&Workspace::at(folder.path()))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(read("sub"), "sub is a folder; list what is in it with glob_files, pattern \"sub/*\"");
        assert!(read("sub/none.txt").contains("find the right path with glob_files, such as \"**/none.txt\""));
        #[cfg(unix)]
        {
            let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
            assert!(read("socket").contains("is a pipe, a socket or a device"));
        }
    }
}
