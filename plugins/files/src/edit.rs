//! file_edit: an exact piece of a file for another one, shown as a unified diff.

use std::fs;
use std::time::Duration;

use astrarium_sdk::{Context, Error, Output, Tool};
use similar::TextDiff;

use crate::paths::{Place, Workspace};
use crate::replace::replace;
use crate::similarity::nearest;
use crate::text::{binary_kind, clip, count, listing, plural};

/// A file is edited in memory, as a whole; what is larger than this, in bytes, is data and not text.
const MAX_SIZE: u64 = 16 << 20;
/// The most of a diff that is shown, in bytes. The model knows what it wrote; it needs to see where it went.
const MAX_DIFF: usize = 32 * 1024;

/// Replaces an exact piece of text in a file and answers with a unified diff.
///
/// `old_text` must occur exactly once, white space included; read the file first and quote enough lines around it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEdit {
    /// Path of the file, relative to the workspace.
    pub path: String,
    /// The text to replace, exactly as it is in the file, without line numbers.
    pub old_text: String,
    /// The text to put in its place; empty removes it.
    pub new_text: String,
    /// Replaces every occurrence instead of the only one.
    #[serde(default)]
    pub replace_all: bool,
}

impl Tool for FileEdit {
    const NAME: &'static str = "file_edit";
    const SUMMARY: Option<&'static str> = Some("Replaces an exact piece of text in a file");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let workspace = Workspace::of(ctx);
        Ok(workspace.output(self.run(&workspace)?))
    }
}

impl FileEdit {
    /// The answer, for a workspace.
    pub fn run(&self, workspace: &Workspace) -> Result<String, Error> {
        if self.old_text.is_empty() {
            return Err(Error::invalid(
                "old_text is empty; quote the text to replace, or use file_write for a new file",
            ));
        }
        if self.old_text == self.new_text {
            return Err(Error::invalid("old_text and new_text are the same; nothing would change"));
        }
        let place = workspace.place_to_write(&self.path)?;
        let before = text_of(&place)?;
        let (after, replaced) = self.apply(&before, &place.shown)?;
        replace(&place, after.as_bytes())?;
        workspace.touch(&place.shown);
        let mut answer = diff(&before, &after, &place.shown);
        if replaced > 1 {
            answer.push_str(&format!("[{} occurrences replaced]\n", count(replaced)));
        }
        Ok(answer)
    }

    /// The new text of the file, and how many occurrences were replaced. Pure.
    fn apply(&self, text: &str, shown: &str) -> Result<(String, usize), Error> {
        let (old, new) = self.with_line_ends(text);
        let found: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
        match found.len() {
            0 => Err(absent(text, &old, shown)),
            1 => Ok((text.replacen(&old, &new, 1), 1)),
            n if self.replace_all => Ok((text.replace(&old, &new), n)),
            n => Err(Error::failed(format!(
                "old_text occurs {} times in {shown}, on lines {}; quote more lines around it so that it is the only \
                 one, or set replace_all",
                count(n),
                listing(&line_numbers(text, &found))
            ))),
        }
    }

    /// A model writes `\n`. In a file of `\r\n` lines both texts get those, and in one of both kinds when only that fits.
    fn with_line_ends(&self, text: &str) -> (String, String) {
        let crlf = text.matches("\r\n").count();
        let all = crlf > 0 && crlf == text.matches('\n').count();
        if all || (crlf > 0 && !text.contains(&self.old_text)) {
            (to_crlf(&self.old_text), to_crlf(&self.new_text))
        } else {
            (self.old_text.clone(), self.new_text.clone())
        }
    }
}

fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The file as text, or the plain reason why it is none.
fn text_of(place: &Place) -> Result<String, Error> {
    let size = place.file_metadata()?.len();
    if size > MAX_SIZE {
        return Err(Error::failed(format!(
            "{} has {} bytes, and file_edit edits files of at most {}; use a program for it",
            place.shown,
            count(size as usize),
            count(MAX_SIZE as usize)
        )));
    }
    let bytes = fs::read(&place.guest).map_err(|error| place.explain("read", &error))?;
    if let Some(kind) = binary_kind(&bytes) {
        return Err(Error::failed(format!("{} is {kind}; file_edit edits UTF-8 text only", place.shown)));
    }
    String::from_utf8(bytes).map_err(|error| {
        Error::failed(format!(
            "{} is not UTF-8 text, from byte {}; convert it to UTF-8 first",
            place.shown,
            count(error.utf8_error().valid_up_to() + 1)
        ))
    })
}

/// Says that the text is not there, and what is.
fn absent(text: &str, old: &str, shown: &str) -> Error {
    let near = nearest(text, old);
    let mut reason = format!("old_text does not occur in {shown}");
    match near.first() {
        None => reason.push_str(", and no line resembles it; read the file again"),
        Some(best) if best.only_space => reason.push_str("; its first line differs in white space only:"),
        Some(_) => reason.push_str("; the lines that resemble its first line most:"),
    }
    for near in &near {
        let line = clip(near.line.as_bytes(), 200);
        reason.push_str(&format!("\n{:>6}\t{}{}", near.number, line.text, if line.cut { "…" } else { "" }));
    }
    Error::failed(reason)
}

/// The lines on which the offsets lie.
fn line_numbers(text: &str, offsets: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let numbers = offsets.iter().map(|at| {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[from..*at]).count();
        from = *at;
        line
    });
    numbers.collect()
}

/// A unified diff, cut to [`MAX_DIFF`]; line ends are shown as `\n`.
fn diff(before: &str, after: &str, shown: &str) -> String {
    // Past the time-out the diff is still right, only longer than it need be.
    let diff = TextDiff::configure().timeout(Duration::from_millis(500)).diff_lines(before, after);
    let (old, new) = (format!("a/{shown}"), format!("b/{shown}"));
    let text = diff.unified_diff().context_radius(3).header(&old, &new).to_string().replace("\r\n", "\n");
    if text.len() <= MAX_DIFF {
        return text;
    }
    let end = (0..=MAX_DIFF).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    let rest = plural(text[end..].lines().count(), "line", "lines");
    format!("{}[{rest} of the diff not shown]\n", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), content).unwrap();
        let tool = FileEdit { path: "f".into(), old_text: old.into(), new_text: new.into(), replace_all };
        let answer = tool.run(&Workspace::at(folder.path()));
        let after = String::from_utf8_lossy(&fs::read(folder.path().join("f")).unwrap()).into_owned();
        (answer.unwrap_or_else(|error| format!("error: {error}")), after)
    }

    #[test]
    fn one_occurrence_is_replaced_and_shown() {
        let (answer, after) = edit(b"one\ntwo\nthree\n", "two", "2", false);
        assert_eq!(after, "one\n2\nthree\n");
        assert_eq!(answer, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    }

    #[test]
    fn several_occurrences_need_replace_all() {
        let (answer, after) = edit(b"x\ny x\nz\n", "x", "w", false);
        assert_eq!(after, "x\ny x\nz\n");
        assert!(answer.contains("occurs 2 times in f, on lines 1 and 2; quote more"), "{answer}");
        let (answer, after) = edit(b"x\ny x\nz\n", "x", "w", true);
        assert_eq!(after, "w\ny w\nz\n");
        assert!(answer.ends_with("[2 occurrences replaced]\n"), "{answer}");
    }

    #[test]
    fn an_absent_text_shows_what_resembles_it() {
        let (answer, _) = edit(b"fn a() {\n\tlet b = 1;\n}\n", "    let b = 1;", "", false);
        let expected =
            "error: old_text does not occur in f; its first line differs in white space only:\n     2\t\tlet b = 1;";
        assert_eq!(answer, expected);
        assert!(edit(b"abc\n", "12345", "", false).0.ends_with("no line resembles it; read the file again"));
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        let (answer, after) = edit(b"a\r\nb\r\nc\r\n", "a\nb", "a\nB\nB2", false);
        assert_eq!(after, "a\r\nB\r\nB2\r\nc\r\n");
        assert!(!answer.contains('\r'));
        assert_eq!(edit(b"a\r\nb\r\n", "a", "a\nb", false).1, "a\r\nb\r\nb\r\n");
        assert_eq!(edit(b"a\r\nb\nc\n", "b\nc", "x\ny", false).1, "a\r\nx\ny\n", "mixed, and it fits as it is");
        assert_eq!(edit(b"a\r\nb\r\nc\n", "a\nb", "x\ny", false).1, "x\r\ny\r\nc\n", "mixed, and it does not");
        assert_eq!(edit(b"a\nb\n", "a\nb", "x", false).1, "x\n");
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        assert!(edit(b"a", "", "b", false).0.contains("old_text is empty"));
        assert!(edit(b"a", "a", "a", false).0.contains("the same"));
        assert!(edit(b"a\0b", "a", "b", false).0.contains("f is a binary file"));
        assert!(edit(b"caf\xe9", "caf", "b", false).0.contains("not UTF-8 text, from byte 4"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_behind_a_link_is_not_edited() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/config"), "old").unwrap();
        std::os::unix::fs::symlink(".git", folder.path().join("docs")).unwrap();
        let tool =
            FileEdit { path: "docs/config".into(), old_text: "old".into(), new_text: "new".into(), replace_all: false };
        let error = tool.run(&Workspace::at(folder.path())).unwrap_err();
        assert_eq!(error.to_string(), "docs is a link to .git; write to .git/config itself");
        assert_eq!(fs::read(folder.path().join(".git/config")).unwrap(), b"old");
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line() {
        let content = "x\n".repeat(20_000);
        let (answer, _) = edit(content.as_bytes(), "x", "星", true);
        assert!(answer.len() < MAX_DIFF + 200, "{}", answer.len());
        assert!(answer.contains(" lines of the diff not shown]\n[20,000 occurrences replaced]"));
    }
}
