//! Words about bytes: what kind of file it is, long lines, counts. Pure.

/// The most that one answer holds, in bytes: an eighth of a window of 200,000 tokens, which is where the host would keep it
/// in a file.
pub const BUDGET: usize = 96 * 1024;

/// How much of a file is looked at to tell text from binary. A NUL byte later than this is shown as it is.
pub const HEAD: usize = 8 * 1024;

/// First bytes of binary formats that are met in research folders.
const KINDS: [(&[u8], &str); 15] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\0asm", "a WebAssembly module or component"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SIMPLE  =", "a FITS file"),
    (b"\x93NUMPY", "a NumPy array"),
];

/// What the file is, in a few words, when its first bytes say that it is not UTF-8 text.
pub fn binary_kind(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(HEAD)];
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some("UTF-16 text, to be converted to UTF-8 first");
    }
    let known = KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| *kind);
    match known {
        Some(kind) => Some(kind),
        None if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") => Some("a WebP image"),
        None => memchr::memchr(0, head).map(|_| "a binary file"),
    }
}

/// The line without its end and, past `max` characters, cut; lossy where it is not UTF-8.
pub fn clip(line: &[u8], max: usize) -> Clipped {
    let lossy = String::from_utf8_lossy(line);
    let was_lossy = matches!(lossy, std::borrow::Cow::Owned(_));
    match lossy.char_indices().nth(max) {
        Some((end, _)) => Clipped { text: lossy[..end].into(), cut: true, lossy: was_lossy },
        None => Clipped { text: lossy.into_owned(), cut: false, lossy: was_lossy },
    }
}

/// A line as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Clipped {
    /// What is shown.
    pub text: String,
    /// Whether characters were left out.
    pub cut: bool,
    /// Whether bytes that are not UTF-8 were replaced.
    pub lossy: bool,
}

/// `line` without `\n` or `\r\n`.
pub fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// How many lines a text has; a last line without an end counts.
pub fn lines(text: &[u8]) -> usize {
    let ends = memchr::memchr_iter(b'\n', text).count();
    ends + usize::from(!text.is_empty() && !text.ends_with(b"\n"))
}

/// `1 match`, `1,234 matches`.
pub fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A number with its thousands set apart.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `4`, `4 and 9`, `4, 9 and 20`, and so on up to ten.
pub fn listing(numbers: &[usize]) -> String {
    let shown: Vec<String> = numbers.iter().take(10).map(|n| count(*n)).collect();
    match shown.split_last() {
        Some((last, rest)) if !rest.is_empty() && numbers.len() == shown.len() => {
            format!("{} and {last}", rest.join(", "))
        }
        _ if numbers.len() > shown.len() => format!("{}, …", shown.join(", ")),
        _ => shown.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_is_told_by_its_first_bytes() {
        assert_eq!(binary_kind(b"\x89PNG\r\n\x1a\n...."), Some("a PNG image"));
        assert_eq!(binary_kind(b"RIFF1234WEBPVP8 "), Some("a WebP image"));
        assert_eq!(binary_kind(b"RIFF"), None);
        assert_eq!(binary_kind(b"abc\0def"), Some("a binary file"));
        assert_eq!(binary_kind("naïve text, 文".as_bytes()), None);
        assert_eq!(binary_kind(b""), None);
    }

    #[test]
    fn clip_counts_characters_and_says_what_it_did() {
        assert_eq!(clip("星星星".as_bytes(), 2), Clipped { text: "星星".into(), cut: true, lossy: false });
        assert_eq!(clip(b"a\xffb", 9), Clipped { text: "a\u{fffd}b".into(), cut: false, lossy: true });
    }

    #[test]
    fn lines_and_numbers_read_well() {
        assert_eq!((lines(b""), lines(b"a"), lines(b"a\n"), lines(b"a\nb")), (0, 1, 1, 2));
        assert_eq!((trim_end(b"a\r\n"), trim_end(b"a\n"), trim_end(b"a")), (&b"a"[..], &b"a"[..], &b"a"[..]));
        assert_eq!((count(7), count(1234), count(1_234_567)), ("7".into(), "1,234".into(), "1,234,567".into()));
        assert_eq!(plural(1, "match", "matches"), "1 match");
        assert_eq!((listing(&[4]), listing(&[4, 9, 20])), ("4".into(), "4, 9 and 20".into()));
        assert_eq!(listing(&(1..=11).collect::<Vec<_>>()), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …");
    }
}
