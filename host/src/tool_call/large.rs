//! Results within their budget: what is too large goes to a file, and the model reads its beginning, a pointer to the
//! file, and its end.
//!
//! Decides and lays out; keeping a file is the caller's. Where none can be kept, the result is cut, and both is said.

use crate::outputs::Kept;
use crate::runtime::ToolAnswer;
use crate::transcript::Part;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// Bytes that a part costs beside its text: its frame in the transcript and on the wire.
const FRAME: usize = 64;
/// Bytes of a result's two ends beside a pointer: enough to know what it is, and to find the error at its end.
const ENDS: usize = 12 << 10;
/// Bytes that a pointer takes.
const POINTER: usize = 512;
/// Pictures of one result that are kept in files.
const PICTURES: usize = 16;
/// Characters of a line that readers of files show, and of a longer line's pieces.
const LONG: usize = 2_000;

/// Keeps bytes in a file whose name ends in the first argument; an error says why not.
pub(super) type Keep<'a> = dyn Fn(&str, &[u8]) -> Result<Kept, String> + 'a;

/// The result in at most `budget` bytes, but for a short pointer to each picture that is kept, and the files that were kept of it.
pub(super) fn bounded(answer: ToolAnswer, budget: usize, keep: &Keep<'_>) -> (ToolAnswer, Vec<Kept>) {
    if answer.parts.iter().map(size).sum::<usize>() <= budget {
        return (answer, Vec::new());
    }
    let ToolAnswer { parts, is_error } = answer;
    let mut kept = Vec::new();
    let texts: usize = parts.iter().filter(|part| !is_picture(part)).map(size).sum();
    let parts = if texts <= budget {
        pictures(parts, budget - texts, keep, &mut kept)
    } else {
        let (pictures_of, texts): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(is_picture);
        let mut shown = match pointed(&texts, budget, keep) {
            Ok((shown, file)) => {
                kept.push(file);
                shown
            }
            Err(reason) => cut(texts, budget, &reason),
        };
        let left = budget.saturating_sub(shown.iter().map(size).sum());
        shown.extend(pictures(pictures_of, left, keep, &mut kept));
        shown
    };
    (ToolAnswer { parts, is_error }, kept)
}

/// Whether a result names this path.
pub(super) fn names(answer: &ToolAnswer, path: &str) -> bool {
    answer.parts.iter().any(|part| part.as_text().contains(path))
}

fn is_picture(part: &Part) -> bool {
    matches!(part, Part::Image { .. })
}

fn size(part: &Part) -> usize {
    let own = match part {
        Part::Text { text } => text.len(),
        Part::Json { value } => value.as_str().len(),
        Part::Image { data, .. } => data.len(),
        Part::File { path, note } => path.len() + note.as_ref().map_or(0, String::len),
    };
    FRAME + own
}

/// Texts stay; pictures stay while they fit in `left`, and the others go to files.
fn pictures(parts: Vec<Part>, mut left: usize, keep: &Keep<'_>, kept: &mut Vec<Kept>) -> Vec<Part> {
    let mut dropped = 0;
    let mut shown: Vec<Part> = Vec::new();
    for part in parts {
        let Part::Image { media_type, data } = &part else {
            shown.push(part);
            continue;
        };
        if size(&part) <= left {
            left -= size(&part);
            shown.push(part);
            continue;
        }
        let file = BASE64.decode(data).map_err(|error| error.to_string()).and_then(|bytes| {
            if kept.len() >= PICTURES {
                return Err("there are too many".to_owned());
            }
            keep(ending(media_type), &bytes)
        });
        match file {
            Ok(file) => {
                let note = format!("{media_type}, {} bytes, too large to be shown here", file.bytes);
                let pointer = Part::File { path: file.path(), note: Some(note) };
                left = left.saturating_sub(size(&pointer));
                shown.push(pointer);
                kept.push(file);
            }
            Err(_) => dropped += 1,
        }
    }
    if dropped > 0 {
        let text = format!("[{dropped} pictures left out: they are too large (limits: output_bytes)]");
        shown.push(Part::Text { text });
    }
    shown
}

fn ending(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "bin",
    }
}

/// The two ends of texts that are kept in a file, with the pointer between them.
fn pointed(texts: &[Part], budget: usize, keep: &Keep<'_>) -> Result<(Vec<Part>, Kept), String> {
    let ends = budget.saturating_sub(3 * FRAME + POINTER).min(ENDS);
    let (kind, whole) = match texts {
        [Part::Json { value }] => ("json", Cow::Borrowed(value.as_str())),
        [Part::Text { text }] => ("txt", Cow::Borrowed(text.as_str())),
        many => ("txt", Cow::Owned(many.iter().map(Part::as_text).collect::<Vec<_>>().join("\n"))),
    };
    let (file, broken) = in_lines(&whole);
    let kept = keep(kind, file.as_bytes())?;
    let lines = file.lines().count();
    let head = end_of_head(&file, ends / 3 * 2);
    let tail = start_of_tail(&file, ends / 3).max(head);
    let (head, tail) = (&file[..head], &file[tail..]);
    let laid = if broken { ", laid out in shorter lines" } else { "" };
    let note = format!(
        "all that the tool answered{laid}: {} bytes in {lines} lines, of which the first {} and the last {} bytes stand here; open \
         this path like any file, a part at a time by lines, or search it",
        kept.bytes,
        head.len(),
        tail.len()
    );
    let text = |text: &str| (!text.trim().is_empty()).then(|| Part::Text { text: text.to_owned() });
    let pointer = Part::File { path: kept.path(), note: Some(note) };
    Ok((text(head).into_iter().chain([pointer]).chain(text(tail)).collect(), kept))
}

/// Where the head ends: at a line's end, if one is near.
fn end_of_head(text: &str, most: usize) -> usize {
    let most = text.floor_char_boundary(most.min(text.len()));
    match text[..most].rfind('\n') {
        Some(line) if line >= most / 2 => line + 1,
        _ => most,
    }
}

/// Where the tail starts: at a line's start, if one is near.
fn start_of_tail(text: &str, most: usize) -> usize {
    let start = text.ceil_char_boundary(text.len() - most.min(text.len()));
    match text[start..].find('\n') {
        Some(line) if line <= most / 2 => start + line + 1,
        _ => start,
    }
}

/// A text whose lines can be read one by one, and whether it was changed for that: JSON is laid out, and any line that is
/// still too long is broken.
fn in_lines(text: &str) -> (Cow<'_, str>, bool) {
    let long = |text: &str| text.lines().any(|line| line.len() > LONG);
    if !long(text) {
        return (Cow::Borrowed(text), false);
    }
    let text = match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Cow::Owned(laid_out(text)),
        Err(_) => Cow::Borrowed(text),
    };
    if !long(&text) {
        return (text, true);
    }
    let mut broken = String::with_capacity(text.len() + text.len() / LONG + 1);
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while rest.trim_end().len() > LONG {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LONG));
            broken.push_str(piece);
            broken.push('\n');
            rest = after;
        }
        broken.push_str(rest);
    }
    (Cow::Owned(broken), true)
}

/// JSON with a line for each value, its tokens as they were.
fn laid_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        // Deeper values are not moved further in, so that the file stays of the size of its text.
        out.extend(std::iter::repeat_n(' ', 2 * depth.min(16)));
    };
    let blank = |c: &char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            _ if in_string => {
                in_string = escaped || c != '"';
                escaped = !escaped && c == '\\';
                out.push(c);
            }
            _ if blank(&c) => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if(blank).is_some() {}
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// Keeps the parts within the budget; the first that does not fit is cut, the rest is left out, and both are said.
fn cut(parts: Vec<Part>, budget: usize, reason: &str) -> Vec<Part> {
    let mut left = budget;
    let mut kept = Vec::new();
    let count = parts.len();
    for part in parts {
        let size = size(&part);
        if size <= left {
            left -= size;
            kept.push(part);
            continue;
        }
        let text = part.as_text();
        let shown = &text[..text.floor_char_boundary(left.min(text.len()))];
        let rest = count - kept.len() - 1;
        let more = if rest > 0 { format!(", and {rest} more parts left out") } else { String::new() };
        let note = format!(
            "[cut: {} of {} bytes shown{more} (limits: output_bytes); the rest is lost, as {reason}; ask for less]",
            shown.len(),
            size - FRAME
        );
        kept.push(Part::Text { text: if shown.is_empty() { note } else { format!("{shown}\n{note}") } });
        break;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Json;
    use proptest::prelude::*;
    use std::cell::RefCell;

    fn text(text: impl Into<String>) -> Part {
        Part::Text { text: text.into() }
    }

    fn nowhere(_: &str, _: &[u8]) -> Result<Kept, String> {
        Err("there is no session to keep it in".into())
    }

    /// What the model sees, and the files that were kept.
    fn check(parts: Vec<Part>, budget: usize) -> (Vec<Part>, Vec<(String, Vec<u8>)>) {
        let files = RefCell::new(Vec::new());
        let keep = |kind: &str, bytes: &[u8]| {
            files.borrow_mut().push((kind.to_owned(), bytes.to_vec()));
            Ok(Kept { name: format!("c.{kind}"), bytes: bytes.len() as u64 })
        };
        let (answer, kept) = bounded(ToolAnswer { parts, is_error: false }, budget, &keep);
        let files = files.into_inner();
        assert_eq!(kept.len(), files.len());
        (answer.parts, files)
    }

    #[test]
    fn without_a_file_what_is_cut_and_left_out_is_said_once() {
        let parts = vec![text("first"), text("星".repeat(100)), text("third"), text("fourth")];
        let cut = bounded(ToolAnswer { parts, is_error: false }, 200, &nowhere).0;
        assert_eq!(cut.parts.len(), 2);
        let shown = cut.parts[1].as_text();
        assert!(shown.starts_with("星") && shown.contains("of 300 bytes shown, and 2 more parts left out"), "{shown}");
        let many = ToolAnswer { parts: vec![text("x"); 100_000], is_error: false };
        let shown: usize = bounded(many, 10_000, &nowhere).0.parts.iter().map(|part| part.as_text().len()).sum();
        assert!(shown < 10_000);
    }

    #[test]
    fn a_large_text_stands_in_a_file_with_both_its_ends_and_a_pointer_between_them() {
        let lines: String = (1..=20_000).map(|line| format!("line {line}\n")).collect();
        let (parts, files) = check(vec![text(lines.clone())], 100_000);
        assert_eq!(files, [("txt".to_owned(), lines.clone().into_bytes())]);
        let [Part::Text { text: head }, Part::File { path, note }, Part::Text { text: tail }] = &parts[..] else {
            panic!("{parts:?}")
        };
        assert!(lines.starts_with(head.as_str()) && head.ends_with('\n') && head.len() > 4_000);
        assert!(lines.ends_with(tail.as_str()) && tail.starts_with("line ") && tail.len() > 2_000);
        assert_eq!(path, "/session/c.txt");
        assert!(note.as_deref().is_some_and(|note| note.contains("in 20000 lines")), "{note:?}");
    }

    #[test]
    fn json_without_line_ends_is_laid_out_and_says_the_same() {
        let rows: Vec<String> =
            (0..5_000).map(|n| format!("{{\"n\":{n}.50,\"s\":\"a, b: [c] \\\" \",\"e\":[ ]}}")).collect();
        let value = format!("[{}]", rows.join(","));
        let (parts, files) = check(vec![Part::Json { value: Json::parse(value.clone()).unwrap() }], 50_000);
        let (kind, bytes) = &files[0];
        let file = std::str::from_utf8(bytes).unwrap();
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!((kind.as_str(), read(file)), ("json", read(&value)));
        assert!(file.contains("0.50,") && file.lines().all(|line| line.len() < 100), "{}", &file[..200]);
        assert!(parts[1].as_text().contains("laid out in shorter lines"));
    }

    #[test]
    fn pictures_that_do_not_fit_are_files_and_texts_beside_them_stay() {
        let picture =
            |bytes: usize| Part::Image { media_type: "image/png".into(), data: BASE64.encode(vec![7; bytes]) };
        let (parts, files) = check(vec![text("two plots"), picture(600), picture(90_000)], 5_000);
        assert_eq!((&parts[..2], files.len()), (&[text("two plots"), picture(600)][..], 1));
        assert_eq!(files[0], ("png".to_owned(), vec![7; 90_000]));
        assert!(parts[2].as_text().starts_with("[file /session/c.png: image/png, 90000 bytes"), "{parts:?}");
    }

    proptest! {
        #[test]
        fn whatever_comes_fits_the_budget_and_nothing_is_lost(
            parts in proptest::collection::vec(("\\PC{0,40}", 0usize..400, 0u8..3), 1..8),
            budget in 2_000usize..20_000,
        ) {
            let parts: Vec<Part> = parts.into_iter().map(|(unit, times, kind)| match kind {
                0 => Part::Json { value: Json::from(serde_json::Value::from(unit.repeat(times))) },
                1 => Part::Image { media_type: "image/png".into(), data: BASE64.encode(unit.repeat(times)) },
                _ => text(unit.repeat(times)),
            }).collect();
            let (shown, files) = check(parts.clone(), budget);
            prop_assert!(shown.iter().map(size).sum::<usize>() <= budget + POINTER * files.len().max(1));
            if shown != parts {
                prop_assert!(!files.is_empty());
            }
            let whole: String = files.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).replace('\n', "")).collect();
            for part in parts.iter().filter(|part| !is_picture(part) && !shown.contains(part)) {
                prop_assert!(whole.contains(&part.as_text().replace('\n', "")));
            }
        }
    }
}
