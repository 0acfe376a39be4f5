//! grep_files: a regex over the files of a folder.

use std::fs::File;
use std::io::{self, Read};

use astrarium_sdk::{Context, Error, Output, Tool};
use globset::GlobMatcher;
use regex::bytes::{Regex, RegexBuilder};

use crate::glob;
use crate::paths::{Place, Workspace};
use crate::search::Sink;
use crate::text::{BUDGET, binary_kind, count, plural};
use crate::walk::{MAX_FILES, Walked, walk};

/// Files are searched in windows of this many bytes; nearly all fit one.
const WINDOW: usize = 8 << 20;
/// Bytes of one read.
const CHUNK: usize = 64 << 10;
/// Room for the closing line, in bytes.
const NOTE: usize = 1024;
/// The most matching lines of one answer.
const MAX_LIMIT: usize = 2_000;

/// Searches files for a regular expression, by the rules of .gitignore, and answers with `file:line:text` lines.
///
/// The syntax is that of Rust and ripgrep: `fn \w+\(`, `(?i)error|warning`. A match lies within one line.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepFiles {
    /// The regular expression.
    pub pattern: String,
    /// Folder or file to search, relative to the workspace, or a kept result, `/session/NAME`; the workspace by default.
    pub path: Option<String>,
    /// Only files that fit this glob: `*.rs` by name in any folder, `src/**/*.rs` by path.
    pub glob: Option<String>,
    /// Lines to show before and after each match, at most 20.
    #[schemars(range(max = 20))]
    pub context: Option<u32>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// The most matching lines to answer with, 200 by default and at most 2,000.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
}

impl Tool for GrepFiles {
    const NAME: &'static str = "grep_files";
    const SUMMARY: Option<&'static str> = Some("Searches files for a regular expression");
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let workspace = Workspace::around(ctx, self.path.as_deref().unwrap_or_default());
        Ok(workspace.output(self.run(&workspace)?))
    }
}

/// Counts for the closing line.
#[derive(Default)]
struct Tally {
    searched: usize,
    matched: usize,
    binary: usize,
    unreadable: usize,
}

impl GrepFiles {
    /// The answer, for a workspace.
    pub fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        let regex = compile(&self.pattern, self.ignore_case)?;
        let filter = self.glob.as_deref().map(filter).transpose()?;
        let start = workspace.seen(self.path.as_deref().unwrap_or("."))?;
        let limit = self.limit.map_or(200, |limit| limit.clamp(1, MAX_LIMIT as u64) as usize);
        let mut sink = Sink::new(self.context.unwrap_or(0).min(20) as usize, limit, BUDGET - NOTE);
        let mut search = Search { regex, buffer: Vec::new(), tally: Tally::default() };
        let walked = if start.metadata()?.is_dir() {
            walk(workspace, start, |found| {
                let wanted = filter.as_ref().is_none_or(|glob| glob.is_match(&found.place.shown));
                if wanted && !found.is_symlink && search.file(&found.place, &mut sink) {
                    workspace.touch(&found.place.shown);
                }
                !sink.is_full()
            })?
        } else {
            search.file(&start, &mut sink);
            workspace.touch(&start.shown);
            Walked::default()
        };
        let closing = closing(&search.tally, &sink, &walked, limit);
        Ok(sink.text + &closing)
    }
}

/// The regex of a pattern: `^` and `$` are the ends of a line, and the carriage return belongs to the line end.
///
/// # Errors
///
/// Says why the pattern is none.
pub fn compile(pattern: &str, ignore_case: bool) -> Result<Regex, Error> {
    let built = RegexBuilder::new(pattern).multi_line(true).crlf(true).case_insensitive(ignore_case).build();
    built.map_err(|error| {
        Error::invalid(format!(
            "the pattern is no regular expression of Rust's syntax: {}; escape special characters with a backslash",
            last_line(&error)
        ))
    })
}

/// The glob of a filter; one without a slash is about the name in any folder, as in ripgrep.
fn filter(pattern: &str) -> Result<GlobMatcher, Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.contains('/') { glob::matcher(pattern) } else { glob::matcher(&format!("**/{pattern}")) }
}

struct Search {
    regex: Regex,
    /// One buffer for all files, so that memory is taken once.
    buffer: Vec<u8>,
    tally: Tally,
}

impl Search {
    /// Searches one file, and says whether something in it matched. One that cannot be read is counted: the search goes on
    /// without it.
    fn file(&mut self, place: &Place, sink: &mut Sink) -> bool {
        let Ok(mut file) = File::open(&place.guest) else {
            self.tally.unreadable += 1;
            return false;
        };
        self.buffer.clear();
        let (mut first, mut matches) = (1, 0);
        loop {
            let carried = self.buffer.len();
            let Ok(is_last) = fill(&mut file, &mut self.buffer) else {
                self.tally.unreadable += 1;
                return false;
            };
            if first == 1 && carried == 0 && binary_kind(&self.buffer).is_some() {
                self.tally.binary += 1;
                return false;
            }
            // Whole lines only, unless the file is over or one line fills the window.
            let end = if is_last { None } else { memchr::memrchr(b'\n', &self.buffer).map(|at| at + 1) };
            let end = end.unwrap_or(self.buffer.len());
            matches += sink.search(&self.regex, &place.shown, &self.buffer[..end], first);
            if is_last || sink.is_full() {
                break;
            }
            first += memchr::memchr_iter(b'\n', &self.buffer[..end]).count();
            self.buffer.drain(..end);
        }
        self.tally.searched += 1;
        self.tally.matched += usize::from(matches > 0);
        matches > 0
    }
}

/// Reads until the window is full; true at the end of the file. Each read is a call to the host, so they are few: a
/// chunk is what the host hands over at once, and `read_to_end` would begin with small ones.
fn fill(file: &mut File, buffer: &mut Vec<u8>) -> io::Result<bool> {
    while buffer.len() < WINDOW {
        let from = buffer.len();
        buffer.resize((from + CHUNK).min(WINDOW), 0);
        let read = file.read(&mut buffer[from..]);
        buffer.truncate(from + read.as_ref().copied().unwrap_or(0));
        if read? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn closing(tally: &Tally, sink: &Sink, walked: &Walked, limit: usize) -> String {
    let mut notes = vec![format!(
        "{} in {}, {} searched",
        plural(sink.matches, "matching line", "matching lines"),
        plural(tally.matched, "file", "files"),
        plural(tally.searched, "file", "files")
    )];
    if tally.binary > 0 {
        notes.push(format!("{} skipped", plural(tally.binary, "binary file", "binary files")));
    }
    if tally.unreadable + walked.unreadable > 0 {
        notes.push(format!("{} not readable", count(tally.unreadable + walked.unreadable)));
    }
    if sink.cut {
        notes.push("long lines were cut at …".into());
    }
    if sink.matches >= limit {
        notes.push(format!("stopped at the limit of {}: narrow the pattern, path or glob, or raise it", count(limit)));
    } else if sink.is_full() {
        notes.push(format!("stopped at {} KiB: narrow the pattern, path or glob", BUDGET / 1024));
    }
    if walked.too_many {
        notes.push(format!("stopped after {} files: name a path", count(MAX_FILES)));
    }
    format!("[{}]\n", notes.join("; "))
}

/// The parser draws the place over several lines; its last one says what is wrong.
fn last_line(error: &dyn std::fmt::Display) -> String {
    let message = error.to_string();
    let line = message.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::tests::tree;

    fn grep(workspace: &Workspace, arguments: &str) -> String {
        let tool: GrepFiles = astrarium_sdk::serde_json::from_str(arguments).unwrap();
        tool.run(workspace).unwrap_or_else(|error| format!("error: {error}"))
    }

    #[test]
    fn files_are_searched_by_glob_path_and_rules() {
        let (_folder, workspace) = tree(&[
            ("a.rs", "fn main() {}\n"),
            ("src/b.rs", "// main\n"),
            ("src/c.txt", "main\n"),
            ("bin", "main\0"),
            (".gitignore", "out\n"),
            ("out/d.rs", "main\n"),
        ]);
        assert_eq!(
            grep(&workspace, r#"{"pattern":"main"}"#),
            "a.rs:1:fn main() {}\nsrc/b.rs:1:// main\nsrc/c.txt:1:main\n\
             [3 matching lines in 3 files, 4 files searched; 1 binary file skipped]\n"
        );
        let only_src = "src/b.rs:1:// main\n[1 matching line in 1 file, 1 file searched]\n";
        assert_eq!(grep(&workspace, r#"{"pattern":"main","path":"src","glob":"*.rs"}"#), only_src);
        assert_eq!(grep(&workspace, r#"{"pattern":"MAIN","ignore_case":true,"glob":"src/**/*.rs"}"#), only_src);
        assert_eq!(grep(&workspace, r#"{"pattern":"main","path":"src/b.rs"}"#), only_src);
        assert_eq!(
            grep(&workspace, r#"{"pattern":"main","path":"out"}"#),
            "out/d.rs:1:main\n[1 matching line in 1 file, 1 file searched]\n",
            "an ignored folder is searched when it is named"
        );
    }

    #[test]
    fn the_limit_is_said() {
        let (_folder, workspace) = tree(&[("a", "x\nx\nx\n")]);
        assert!(grep(&workspace, r#"{"pattern":"x","limit":2}"#).ends_with(
            "a:2:x\n[2 matching lines in 1 file, 1 file searched; stopped at the limit of 2: narrow the pattern, path or glob, or raise it]\n"
        ));
        let (_folder, workspace) = tree(&[("a", &format!("{}\n", "x".repeat(400)).repeat(2_000))]);
        let answer = grep(&workspace, r#"{"pattern":"x","limit":2000}"#);
        assert!(answer.len() <= BUDGET && answer.contains("stopped at 96 KiB"), "{}", answer.len());
    }

    #[test]
    fn bad_arguments_are_refused_with_the_reason() {
        let (_folder, workspace) = tree(&[]);
        assert!(grep(&workspace, r#"{"pattern":"a("}"#).contains("unclosed group"));
        assert!(grep(&workspace, r#"{"pattern":"a","glob":"{a"}"#).contains("unclosed alternate group"));
        assert!(grep(&workspace, r#"{"pattern":"a","path":"none"}"#).contains("there is no none"));
    }

    #[test]
    fn a_file_larger_than_the_window_keeps_its_line_numbers() {
        let mut text = "filler line\n".repeat(WINDOW / 12 + 5);
        text.push_str("needle\n");
        let number = crate::text::lines(text.as_bytes());
        let (_folder, workspace) = tree(&[("big", &text)]);
        assert!(grep(&workspace, r#"{"pattern":"needle"}"#).starts_with(&format!("big:{number}:needle\n")));
    }
}
