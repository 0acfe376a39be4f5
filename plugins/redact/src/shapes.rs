//! Secrets by their shape: prefixes that providers give to their tokens, keys in PEM, bearer tokens, passwords in addresses.

use crate::spans::Span;

/// A token with a prefix of its own.
struct Token {
    prefix: &'static str,
    kind: &'static str,
    /// Characters after the prefix.
    body: fn(u8) -> bool,
    /// How many of them at least.
    least: usize,
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn dashed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const fn token(prefix: &'static str, kind: &'static str, body: fn(u8) -> bool, least: usize) -> Token {
    Token { prefix, kind, body, least }
}

/// Longer prefixes before those they begin with.
const TOKENS: [Token; 31] = [
    token("ghp_", "github token", word, 30),
    token("gho_", "github token", word, 30),
    token("ghu_", "github token", word, 30),
    token("ghs_", "github token", word, 30),
    token("ghr_", "github token", word, 30),
    token("github_pat_", "github token", dashed, 40),
    token("glpat-", "gitlab token", dashed, 20),
    token("sk-ant-", "anthropic key", dashed, 20),
    token("sk-proj-", "openai key", dashed, 20),
    token("sk-svcacct-", "openai key", dashed, 20),
    token("sk-or-", "openrouter key", dashed, 20),
    token("sk-", "api key", word, 32),
    token("sk_live_", "stripe key", word, 16),
    token("sk_test_", "stripe key", word, 16),
    token("rk_live_", "stripe key", word, 16),
    token("xoxb-", "slack token", dashed, 10),
    token("xoxp-", "slack token", dashed, 10),
    token("xoxa-", "slack token", dashed, 10),
    token("xoxs-", "slack token", dashed, 10),
    token("xapp-", "slack token", dashed, 20),
    token("AKIA", "aws key id", capital, 16),
    token("ASIA", "aws key id", capital, 16),
    token("AIza", "google key", dashed, 35),
    token("ya29.", "google token", dotted, 30),
    token("npm_", "npm token", word, 36),
    token("pypi-", "pypi token", dashed, 50),
    token("hf_", "hugging face token", word, 30),
    token("dop_v1_", "digitalocean token", word, 60),
    token("SG.", "sendgrid key", dotted, 40),
    token("AGE-SECRET-KEY-1", "age key", capital, 50),
    token("eyJ", "jwt", dotted, 30),
];

/// Everything that is a secret by its shape.
pub(crate) fn find(text: &str) -> Vec<Span> {
    let mut spans = tokens(text);
    spans.extend(private_keys(text));
    spans.extend(bearers(text));
    spans.extend(passwords_in_addresses(text));
    spans
}

fn tokens(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        // A token begins where no other word goes on: `task-…` holds no `sk-…`.
        let begins = at == 0 || !(word(bytes[at - 1]) || bytes[at - 1] == b'_');
        let found = (begins && bytes[at].is_ascii_alphabetic()).then(|| token_at(bytes, at)).flatten();
        match found {
            Some((end, kind)) => {
                spans.push(Span { start: at, end, kind });
                at = end;
            }
            None => at += 1,
        }
    }
    spans
}

fn token_at(bytes: &[u8], at: usize) -> Option<(usize, &'static str)> {
    let token = TOKENS.iter().find(|token| bytes[at..].starts_with(token.prefix.as_bytes()))?;
    let body = at + token.prefix.len();
    let length = bytes[body..].iter().take_while(|byte| (token.body)(**byte)).count();
    // A full stop or a dash at the end belongs to the sentence.
    let end = body + length - bytes[body..body + length].iter().rev().take_while(|byte| **byte == b'.').count();
    let has_digit = || bytes[body..end].iter().any(u8::is_ascii_digit);
    let is_jwt = || bytes[at..end].iter().filter(|byte| **byte == b'.').count() == 2;
    let fits = match token.kind {
        "jwt" => is_jwt(),
        "aws key id" => end - body == token.least,
        _ => has_digit(),
    };
    (end >= body + token.least && fits).then_some((end, token.kind))
}

fn private_keys(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("-----BEGIN ").map(|at| from + at) {
        from = start + 1;
        let Some(line_end) = text[start + 11..].find("-----").map(|at| start + 11 + at) else { break };
        let label = &text[start + 11..line_end];
        if !label.ends_with("PRIVATE KEY") && !label.ends_with("PRIVATE KEY BLOCK") {
            continue;
        }
        // One that is cut off is hidden to the end.
        let last = format!("-----END {label}-----");
        let end = text[line_end..].find(&last).map_or(text.len(), |at| line_end + at + last.len());
        spans.push(Span { start, end, kind: "private key" });
        from = end;
    }
    spans
}

fn bearers(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let found = text.match_indices("earer ").filter(|(at, _)| *at > 0 && matches!(bytes[at - 1], b'B' | b'b'));
    let spans = found.filter_map(|(at, word)| {
        let start = at + word.len();
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
        let length = bytes[start..].iter().take_while(|byte| is_token(byte)).count();
        let token = &bytes[start..start + length];
        let is_secret = length >= 16 && token.iter().any(u8::is_ascii_digit);
        is_secret.then_some(Span { start, end: start + length, kind: "bearer token" })
    });
    spans.collect()
}

/// `scheme://user:password@host`: the password alone.
fn passwords_in_addresses(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let spans = text.match_indices("://").filter_map(|(at, scheme)| {
        let begin = at + scheme.len();
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>`\\".contains(byte);
        let length = bytes[begin..].iter().take_while(|byte| !ends(byte)).count();
        let authority = &text[begin..begin + length];
        let (user, _) = authority.rsplit_once('@')?;
        let (name, password) = user.split_once(':')?;
        let start = begin + name.len() + 1;
        let is_secret = !password.is_empty() && !super::names::is_placeholder(password);
        is_secret.then_some(Span { start, end: start + password.len(), kind: "password" })
    });
    spans.collect()
}
