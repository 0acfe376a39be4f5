//! YAML as all of our files are read: version 1.2, so that `n`, `y`, `on` and `off` are words, bounded by the parser's own
//! budget for depth, aliases and size, and errors on one line with their place.

pub mod tree;

pub use serde_saphyr::Spanned;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// Reads a value. The error says what is wrong and where.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.to_string();
        let line = message.lines().next().unwrap_or_default().trim();
        let Some(place) = error.location() else { return plain(line) };
        let (number, column) = (place.line(), place.column());
        let line = line.strip_suffix(&format!(" at line {number}, column {column}")).unwrap_or(line);
        format!("line {number}, column {column}: {}", plain(line))
    })
}

/// Frontmatter with the number of lines before it, if there is any, and the body.
pub type Split<'a> = (Option<(usize, &'a str)>, &'a str);

/// Parts a Markdown file of ours into frontmatter and body. The error says which line opens what is never closed. Skills are
/// read more leniently, by a reader of their own.
pub fn frontmatter(text: &str) -> Result<Split<'_>, String> {
    let start = text.len() - text.trim_start().len();
    let Some(rest) =
        text[start..].strip_prefix("---").filter(|rest| rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n'))
    else {
        return Ok((None, text));
    };
    let line_end = rest.find('\n').map_or(rest.len(), |at| at + 1);
    let first = start + 3 + line_end;
    let mut at = first;
    for line in text[first..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            let before = text[..first].matches('\n').count();
            return Ok((Some((before, &text[first..at])), &text[at + line.len()..]));
        }
        at += line.len();
    }
    Err(format!(
        "line {}: the head that begins with --- has no closing ---; write one before the text",
        text[..start].matches('\n').count() + 1
    ))
}

/// Where the value at `path` stands, as the beginning of an error: `line 3, column 5: `. Empty where it is not found.
pub fn place(text: &str, path: &[&str]) -> String {
    let found = serde_saphyr::with_deserializer_from_str(text, |deserializer| Walk(path).deserialize(deserializer));
    found.ok().flatten().map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default()
}

/// Goes down a path of keys, and answers with the place of what it leads to.
struct Walk<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<(u64, u64)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        use serde::Deserialize as _;
        if self.0.is_empty() {
            let value = Spanned::<IgnoredAny>::deserialize(deserializer)?;
            return Ok(Some((value.referenced.line(), value.referenced.column())));
        }
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<(u64, u64)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if self.0.first() == Some(&key.as_str()) {
                found = map.next_value_seed(Walk(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// The parser's words for people: its advice is for programmers who call it, its types are Rust's.
fn plain(line: &str) -> String {
    line.replace(", set DuplicateKeyPolicy in Options if acceptable", "; write it once")
        .replace("invalid u64", "this must be a whole number from 0 up")
        .replace("invalid u32", "this must be a whole number from 0 up")
        .replace("invalid i32", "this must be a whole number")
        .replace("invalid bool", "this must be true or false")
        .replace("invalid floating point", "this must be a number")
        .replace("use from_str_multiple or from_str_multiple_with_options", "keep the first and take out the rest")
        .replace("expected mapping start", "a table is expected here; write KEY: VALUE lines, or { KEY: VALUE }")
        .replace("tabs disallowed within this context", "a tab stands here; indent with spaces")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn y_and_no_are_words_and_true_is_not() {
        let value: Value = super::from_str("{ a: y, b: no, c: on, d: true }").unwrap();
        assert_eq!(value, json!({ "a": "y", "b": "no", "c": "on", "d": true }));
    }

    #[test]
    fn errors_say_what_to_write() {
        let said = |text: &str| super::from_str::<std::collections::BTreeMap<String, f64>>(text).unwrap_err();
        for (text, words) in [
            ("[]", "a table is expected here"),
            ("a: b", "this must be a number"),
            ("a: 1\n---\nb: 2\n", "keep the first and take out the rest"),
        ] {
            assert!(said(text).contains(words) && said(text).starts_with("line "), "{}", said(text));
        }
    }

    #[test]
    fn a_place_is_found_by_its_path() {
        let text = "model: x\nlimits:\n  tool_ms: 0 # none\n  handles: 3\nlist: [1]\n";
        assert_eq!(super::place(text, &["limits", "tool_ms"]), "line 3, column 12: ");
        assert_eq!(super::place(text, &["list"]), "line 5, column 7: ");
        assert_eq!(super::place(text, &["limits", "absent"]), "");
        assert_eq!(super::place(text, &["model", "x"]), "");
    }

    #[test]
    fn an_anchor_a_thousand_deep_is_refused_on_one_line() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let error = super::from_str::<Value>(&deep).unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    #[test]
    fn frontmatter_is_parted_from_the_body() {
        use super::frontmatter;
        assert_eq!(frontmatter("---\na: 1\n---\nDig.\n"), Ok((Some((1, "a: 1\n")), "Dig.\n")));
        assert_eq!(frontmatter("\n--- \r\na: 1\r\n---\r\nDig."), Ok((Some((2, "a: 1\r\n")), "Dig.")));
        assert_eq!(frontmatter("Dig.\n---\nmore"), Ok((None, "Dig.\n---\nmore")));
        assert_eq!(frontmatter("--- x\n---\n"), Ok((None, "--- x\n---\n")));
        assert!(frontmatter("\n---\nno end").unwrap_err().starts_with("line 2: "));
    }
}
