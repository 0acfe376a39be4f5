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
    if let Some((_, breach)) = line.split_once("budget breached: ") {
        return match breach.split([' ', '{']).next().unwrap_or_default() {
            "Anchors" => "it has too many anchors; write the values out",
            "Aliases" => "it has too many aliases; write the values out",
            "Depth" => DEEP,
            _ => "it holds too much; take out what is not needed",
        }
        .to_owned();
    }
    if let Some(kind) = line.strip_prefix("invalid type: ").or(line.strip_prefix("invalid value: "))
        && let Some((found, wanted)) = kind.rsplit_once(", expected ")
    {
        let found = found.strip_prefix("integer ").or(found.strip_prefix("floating point ")).unwrap_or(found);
        let found = if found.starts_with('`') { found.trim_matches('`') } else { found };
        let wanted = match wanted {
            "u8" | "u16" | "u32" | "u64" | "usize" => "whole number from 0 up",
            "i8" | "i16" | "i32" | "i64" | "isize" => "whole number",
            "f32" | "f64" => "number",
            "a sequence" => "list",
            "a map" => "table",
            "a boolean" => return format!("{found} is neither true nor false"),
            "a string" => "text",
            other => return format!("{found} is not what is expected here: {other}"),
        };
        return format!("{found} is no {wanted}");
    }
    line.replace(", set DuplicateKeyPolicy in Options if acceptable", "; write it once")
        .replace("recursion limit exceeded", DEEP)
        .replace("expected string scalar", "a single value is expected here, and this is a list or a table")
        .replace("invalid u64", "this must be a whole number from 0 up")
        .replace("invalid u32", "this must be a whole number from 0 up")
        .replace("invalid i32", "this must be a whole number")
        .replace("invalid bool", "this must be true or false")
        .replace("invalid floating point", "this must be a number")
        .replace("use from_str_multiple or from_str_multiple_with_options", "keep the first and take out the rest")
        .replace("expected mapping start", "a table is expected here; write KEY: VALUE lines, or { KEY: VALUE }")
        .replace("tabs disallowed within this context", "a tab stands here; indent with spaces")
}

/// Said of what is nested beyond the parser's bound.
const DEEP: &str = "it is nested too deep; write it flatter";

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
    fn what_is_too_much_is_told_with_its_cure() {
        let deep = format!("a: {}", "[".repeat(1_000_000));
        let anchors: String = (0..60_000).map(|n| format!("a{n}: &a{n} 1\n")).collect();
        let aliases = format!("a: &a [1, 2, 3]\nb:\n{}", "- *a\n".repeat(100_000));
        let many = format!("a: [{}]\n", "1, ".repeat(600_000));
        for (text, words) in [
            (deep, "it is nested too deep; write it flatter"),
            (anchors, "it has too many anchors; write the values out"),
            (aliases, "it has too many aliases; write the values out"),
            (many, "it holds too much; take out what is not needed"),
        ] {
            let error = super::from_str::<Value>(&text).unwrap_err();
            assert!(error.starts_with("line ") && error.ends_with(words), "{error}");
        }
    }

    #[test]
    fn a_value_of_another_kind_is_told_in_words_of_the_file() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(untagged)]
        enum Tagged {
            #[allow(dead_code)]
            Whole { a: u64 },
        }
        let said = |text: &str| super::from_str::<std::collections::BTreeMap<String, u64>>(text).unwrap_err();
        for text in ["a: -1", "a: 1.5", "a: b", "a: 99999999999999999999999"] {
            assert!(said(text).ends_with("this must be a whole number from 0 up"), "{}", said(text));
        }
        assert!(said("a: [1]").ends_with("a single value is expected here, and this is a list or a table"));
        assert!(super::from_str::<Tagged>("a: -1").is_err());
        assert_eq!(super::plain("invalid value: integer `-1`, expected u64"), "-1 is no whole number from 0 up");
        assert_eq!(
            super::plain("invalid type: string \"x\", expected u32"),
            "string \"x\" is no whole number from 0 up"
        );
        assert_eq!(super::plain("invalid type: integer `1`, expected a sequence"), "1 is no list");
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
