//! Taking injected secrets out of whatever comes back, in the spellings that servers echo.
//!
//! A server that turns a secret into something else altogether (its hash, its reverse) is beyond this; an operator who
//! injects a secret trusts its origin that far. The scrubbing guards against echoes, in bodies, headers and errors.

use crate::digest::hex;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use regex::bytes::{Captures, Regex};

/// Bytes that one byte of a secret takes at most in any spelling: `&quot;`.
const WIDEST: usize = 6;

/// The secrets that one call has seen go out.
#[derive(Default)]
pub struct Scrub {
    secrets: Vec<(String, String)>,
    /// One group for each secret, in order.
    finder: Option<Regex>,
}

impl Scrub {
    /// Takes `secret` out from now on; its place says `[secret NAME]`.
    pub fn add(&mut self, name: &str, secret: &str) {
        let added = (name.to_owned(), secret.to_owned());
        if self.secrets.contains(&added) {
            return;
        }
        self.secrets.push(added);
        // Of two secrets of which one begins with the other, the longer one is taken out whole.
        self.secrets.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
        let groups: Vec<String> = self.secrets.iter().map(|(_, secret)| format!("({})", pattern(secret))).collect();
        // A pattern of a few hundred bytes compiles; if it ever did not, nothing could be shown at all.
        let finder = Regex::new(&format!("(?-u){}", groups.join("|")));
        self.finder = Some(finder.unwrap_or_else(|_| Regex::new("(?s-u)(.+)").expect("it is a pattern")));
    }

    /// Whether there is nothing to take out.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Bytes of the longest spelling: so much must be read past a cut for none to be cut in two.
    pub fn longest(&self) -> usize {
        self.secrets.iter().map(|(_, secret)| secret.len() * WIDEST).max().unwrap_or(0)
    }

    /// Bytes without the secrets.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let Some(finder) = &self.finder else { return bytes.to_vec() };
        let shown = |found: &Captures<'_>| {
            let which = (0..self.secrets.len()).find(|which| found.get(which + 1).is_some()).unwrap_or(0);
            format!("[secret {}]", self.secrets[which].0).into_bytes()
        };
        finder.replace_all(bytes, shown).into_owned()
    }

    /// A text without the secrets.
    pub fn text(&self, text: &str) -> String {
        // What is found and what is put in its place is text, so what is left is text too.
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Whether a text holds a secret.
    pub fn finds(&self, text: &str) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(text.as_bytes()))
    }
}

/// The secret as it is, each of its bytes also as URLs, JSON and HTML write it, and all of it in hex and base64.
fn pattern(secret: &str) -> String {
    let bytes = secret.as_bytes();
    let spelt: String = bytes.iter().map(|byte| spellings(*byte)).collect();
    let hex = hex(bytes);
    let mut all = vec![spelt, format!("(?i:{hex})")];
    // Within a longer base64 text a secret has three spellings, by where it begins among groups of three bytes. What
    // depends on its neighbours is left out.
    for before in 0..3 {
        let padded = [&[0; 2][..before], bytes].concat();
        let whole = padded.len() / 3 * 4;
        let first = [0, 2, 3][before];
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            // One this short would take ordinary words out.
            if let Some(inner) = text.get(first..whole.min(text.len())).filter(|inner| inner.len() >= 6) {
                all.push(regex::escape(inner));
            }
        }
    }
    all.join("|")
}

/// One byte in every spelling.
fn spellings(byte: u8) -> String {
    let own = regex::escape(&char::from(byte).to_string());
    let mut all = vec![own.clone(), format!("(?i:%{byte:02x}|\\\\u00{byte:02x}|&#x{byte:02x};)"), format!("&#{byte};")];
    match byte {
        b'"' => all.extend(["\\\\\"".into(), "&quot;".into()]),
        b'\\' | b'/' => all.push(format!("\\\\{own}")),
        b'\'' => all.extend(["\\\\'".into(), "&apos;".into()]),
        b'&' => all.push("&amp;".into()),
        b'<' => all.push("&lt;".into()),
        b'>' => all.push("&gt;".into()),
        b' ' => all.push("\\+".into()),
        _ => {}
    }
    format!("(?:{})", all.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    #[test]
    fn every_usual_spelling_is_taken_out() {
        let mut scrub = Scrub::default();
        scrub.add("token", "s3cr+t/\"k\"ey");
        scrub.add("other", "another-one");
        for text in [
            "s3cr+t/\"k\"ey",
            "s3cr+t/\\\"k\\\"ey",
            "s3cr%2Bt%2F%22k%22ey",
            "s3cr%2bt/%22k\"ey",
            "s3cr+t\\/\\u0022k\\u0022ey",
            "s3cr+t/&quot;k&#34;ey",
            "733363722b742f226b226579",
            "733363722B742F226B226579",
        ] {
            assert_eq!(scrub.text(&format!("a {text} b another-one")), "a [secret token] b [secret other]", "{text}");
        }
        assert_eq!(scrub.text("plain"), "plain");
        assert!(scrub.finds("x=another-one") && !scrub.finds("x=anotherone"));
    }

    #[test]
    fn of_two_secrets_the_longer_one_is_taken_out_whole() {
        let mut scrub = Scrub::default();
        scrub.add("short", "abcdefgh");
        scrub.add("long", "abcdefgh-ijkl");
        scrub.add("long", "abcdefgh-ijkl");
        assert_eq!(scrub.text("abcdefgh-ijkl abcdefgh"), "[secret long] [secret short]");
    }

    #[test]
    fn an_empty_scrub_changes_nothing() {
        assert_eq!(Scrub::default().text("s3cret"), "s3cret");
        assert_eq!(Scrub::default().bytes(b"\xff"), b"\xff");
        assert!(!Scrub::default().finds(""));
    }

    proptest! {
        #[test]
        fn no_secret_comes_back_wherever_it_begins(secret in "[!-~]{8,40}", before in "[!-~]{0,5}", after in "[!-~]{0,5}") {
            let mut scrub = Scrub::default();
            scrub.add("t", &secret);
            let whole = format!("{before}{secret}{after}");
            let json = serde_json::Value::from(whole.as_str()).to_string();
            let url: String = url::form_urlencoded::byte_serialize(whole.as_bytes()).collect();
            for text in [STANDARD.encode(&whole), json, url, whole] {
                prop_assert!(scrub.text(&text).contains("[secret t]"), "{}", text);
                prop_assert!(scrub.longest() >= secret.len());
            }
        }
    }
}
