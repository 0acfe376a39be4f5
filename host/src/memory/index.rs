//! `MEMORY.md`: the index for people, at most 200 lines and 25 KB; the newest are kept, what was dropped is said.

use super::render::called;
use super::{Entry, Listing};
use std::fmt::Write as _;

/// Lines of the index (SPEC 3.2).
pub const LINES: usize = 200;

/// Bytes of the index (SPEC 3.2).
pub const BYTES: usize = 25_000;

/// Bytes of a description there: a line that fits a screen.
const DESCRIPTION: usize = 240;

const HEAD: &str = "# Memory\n\n\
    Written anew with each change; edit the files it names, not this one.\n\n";

/// The text of the index.
pub fn index(listing: &Listing) -> String {
    let lines: Vec<String> = listing.current.iter().map(line).collect();
    let head_lines = HEAD.lines().count();
    let all: usize = lines.iter().map(String::len).sum();
    if head_lines + lines.len() <= LINES && HEAD.len() + all <= BYTES {
        return HEAD.to_owned() + &lines.concat();
    }
    // Room for the closing line, however large its number.
    let (mut lines_left, mut bytes_left) = (LINES - head_lines - 1, BYTES - HEAD.len() - dropped(usize::MAX).len());
    let mut text = HEAD.to_owned();
    let mut kept = 0;
    for line in &lines {
        if lines_left == 0 || line.len() > bytes_left {
            break;
        }
        (lines_left, bytes_left) = (lines_left - 1, bytes_left - line.len());
        text.push_str(line);
        kept += 1;
    }
    text + &dropped(lines.len() - kept)
}

fn line(entry: &Entry) -> String {
    let mut text = String::new();
    let day = entry.updated.strftime("%Y-%m-%d");
    let description = crate::plain::one_line(&entry.description, DESCRIPTION);
    let _ = writeln!(text, "- [{}]({}) [{}] {description} ({day})", called(entry), entry.file, entry.kind.word());
    text
}

fn dropped(count: usize) -> String {
    format!("- … and {count} older ones, which are in this folder and are found by searching\n")
}

#[cfg(test)]
mod tests {
    use super::super::entry::sample;
    use super::*;

    fn of(count: usize, description: &str) -> String {
        let entries =
            (0..count).map(|n| Entry { description: description.into(), ..sample(&format!("m{n}"), n as i64) });
        index(&Listing::new(entries.collect(), Vec::new()))
    }

    #[test]
    fn the_newest_stand_first() {
        let text = of(2, "about it");
        assert!(
            text.ends_with(
                "- [m1](m1.md) [project] about it (2026-01-02)\n- [m0](m0.md) [project] about it (2026-01-01)\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn too_many_lines_are_cut_and_said() {
        let text = of(196, "x");
        assert_eq!((text.lines().count(), text.contains("older ones")), (200, false));
        let text = of(500, "x");
        assert_eq!(text.lines().count(), 200);
        assert!(text.contains("[m499]") && !text.contains("[m0]"), "{text}");
        assert!(
            text.ends_with("- … and 305 older ones, which are in this folder and are found by searching\n"),
            "{text}"
        );
    }

    #[test]
    fn too_many_bytes_are_cut_between_lines_and_said() {
        let text = of(190, &"星".repeat(200));
        assert!(text.len() <= BYTES && text.len() > BYTES - 400, "{}", text.len());
        assert!(text.lines().last().unwrap().contains("older ones"), "{text}");
    }
}
