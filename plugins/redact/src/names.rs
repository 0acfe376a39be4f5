//! Secrets by their names: `API_KEY=…` as in environments, and `"password": "…"` as in JSON, YAML and code.

use crate::spans::Span;

/// Ends of names, without `_`, `-` and `.`, and what their values are.
const NAMES: [(&str, &str); 13] = [
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("clientsecret", "secret"),
    ("secret", "secret"),
    ("apikey", "key"),
    ("accesskey", "key"),
    ("secretkey", "key"),
    ("privatekey", "key"),
    ("authtoken", "token"),
    ("accesstoken", "token"),
    ("refreshtoken", "token"),
    ("token", "token"),
];

/// Characters that a quoted value has at least: shorter ones are words.
const QUOTED: usize = 8;

/// Characters of a value in an environment, which stands there to be used.
const BARE: usize = 6;

/// No secret is longer, and what is longer is a text.
const MOST: usize = 512;

/// The values of all names that speak of secrets.
pub(crate) fn find(text: &str, also: &[String]) -> Vec<Span> {
    let bytes = text.as_bytes();
    let signs = bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'=' | b':'));
    signs.filter_map(|(sign, _)| value(text, sign, also)).collect()
}

fn value(text: &str, sign: usize, also: &[String]) -> Option<Span> {
    let bytes = text.as_bytes();
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    // The name before the sign, perhaps in quotes, which in a document within a document have a backslash.
    let mut end = sign - bytes[..sign].iter().rev().take_while(|byte| blank(byte)).count();
    end -= bytes[..end].iter().rev().take_while(|byte| quote(byte) || **byte == b'\\').count();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = bytes[..end].iter().rev().take_while(|byte| is_name(byte)).take(80).count();
    let name = &text[end - length..end];
    let kind = kind(name, also)?;
    // The value after it.
    let mut start = sign + 1 + bytes[sign + 1..].iter().take_while(|byte| blank(byte)).count();
    let escaped = usize::from(bytes.get(start) == Some(&b'\\'));
    let quoted = bytes.get(start + escaped).filter(|byte| quote(byte)).copied();
    if quoted.is_some() {
        start += escaped + 1;
    }
    let ends = |byte: &u8| match quoted {
        Some(quote) => *byte == quote || *byte == b'\\' || *byte == b'\n',
        None => byte.is_ascii_whitespace() || b";,\"'`)".contains(byte),
    };
    let length = bytes[start.min(bytes.len())..].iter().take(MOST + 1).take_while(|byte| !ends(byte)).count();
    // An environment's names are in capitals; elsewhere what is not in quotes is code.
    let is_variable = bytes[sign] == b'=' && !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let least = if quoted.is_some() { QUOTED } else { BARE };
    if (quoted.is_none() && !is_variable) || length < least || length > MOST {
        return None;
    }
    let value = text.get(start..start + length)?;
    let is_secret = !value.contains(char::is_whitespace) && !is_placeholder(value);
    is_secret.then_some(Span { start, end: start + length, kind })
}

fn kind(name: &str, also: &[String]) -> Option<&'static str> {
    if name.is_empty() {
        return None;
    }
    if also.iter().any(|other| other.eq_ignore_ascii_case(name)) {
        return Some("secret");
    }
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.iter().find(|(end, _)| plain.ends_with(end)).map(|(_, kind)| *kind)
}

/// Whether a value stands for one, rather than being one.
pub(crate) fn is_placeholder(value: &str) -> bool {
    const MARKS: [&str; 17] = [
        "${",
        "$(",
        "{{",
        "%(",
        "<",
        "***",
        "xxxx",
        "...",
        "[redacted",
        "changeme",
        "example",
        "your",
        "dummy",
        "placeholder",
        "environ",
        "getenv",
        "process.env",
    ];
    let lower = value.to_ascii_lowercase();
    let first = value.chars().next();
    MARKS.iter().any(|mark| lower.contains(mark)) || value.chars().all(|c| Some(c) == first)
}
