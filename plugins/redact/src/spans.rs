//! Where secrets stand in a text, and the text without them.

use crate::{names, shapes};

/// A piece of the text that is a secret, in bytes, and of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: &'static str,
}

/// The text with every secret replaced by its kind; none when there is nothing to hide.
pub(crate) fn hide(text: &str, also_names: &[String], keep: &[String]) -> Option<String> {
    let mut spans = shapes::find(text);
    spans.extend(names::find(text, also_names));
    spans.retain(|span| !keep.iter().any(|kept| kept == &text[span.start..span.end]));
    spans.sort();
    let mut hidden = String::with_capacity(text.len());
    let mut at = 0;
    for Span { start, end, kind } in spans {
        // Of two that overlap the first counts, and the rest of the other is hidden with it.
        if start >= at {
            hidden.push_str(&text[at..start]);
            hidden.push_str("[redacted: ");
            hidden.push_str(kind);
            hidden.push(']');
        }
        at = at.max(end);
    }
    if at == 0 {
        return None;
    }
    hidden.push_str(&text[at..]);
    Some(hidden)
}

#[cfg(test)]
mod tests {
    use super::hide;

    fn check(text: &str, expected: &str) {
        let hidden = hide(text, &[], &[]).unwrap_or_else(|| text.to_owned());
        assert_eq!(hidden, expected);
        assert_eq!(hide(&hidden, &[], &[]), None, "what was hidden once is left alone: {hidden}");
    }

    #[test]
    fn tokens_are_known_by_their_shape() {
        let filler = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5";
        check(&format!("key ghp_{filler}."), "key [redacted: github token].");
        check(&format!("sk-ant-api03-{filler}-x"), "[redacted: anthropic key]");
        check(&format!("(sk-proj-{filler})"), "([redacted: openai key])");
        check("id AKIAIOSFODNN7EXAMPLE, next", "id [redacted: aws key id], next");
        check(&format!("x eyJhbGciOi.eyJzdWIiOi.{filler} y"), "x [redacted: jwt] y");
        check("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted: bearer token]");
        check("git clone https://me:s3cr3t-pw@host.org/x", "git clone https://me:[redacted: password]@host.org/x");
        check(
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted: private key]\nb",
        );
    }

    #[test]
    fn values_are_known_by_their_names() {
        check("DB_PASSWORD=correct-horse\nX=1", "DB_PASSWORD=[redacted: password]\nX=1");
        check("a.env:3:API_KEY=0123456789abcdef", "a.env:3:API_KEY=[redacted: key]");
        check(r#"{"client_secret": "q8w7e6r5t4"}"#, r#"{"client_secret": "[redacted: secret]"}"#);
        check("token = 'abcd1234efgh'", "token = '[redacted: token]'");
        check(r#"{\"password\": \"abcd1234efgh\"}"#, r#"{\"password\": \"[redacted: password]\"}"#);
    }

    #[test]
    fn what_only_looks_like_a_secret_is_left_alone() {
        for text in [
            "max_tokens: 4096",
            "let token = next_token();",
            "password: str",
            "token: \"\"",
            "API_KEY=${API_KEY}",
            "password = \"<your password>\"",
            "PASSWORD=changeme",
            "a task-0123456789abcdefghijklmnop of sk-",
            "https://host:8080/a@b",
            "https://example.org/user:name",
            "Bearer of news",
            "the password is long",
            "SECRET_SANTA_LIST=x",
            "星系 token：长",
        ] {
            assert_eq!(hide(text, &[], &[]), None, "{text}");
        }
    }

    #[test]
    fn operators_add_names_and_take_texts_out() {
        let also = ["license".to_owned()];
        assert_eq!(hide("license: \"AAAA-BBBB-CC12\"", &also, &[]).unwrap(), "license: \"[redacted: secret]\"");
        let keep = ["AKIAIOSFODNN7EXAMPLE".to_owned()];
        assert_eq!(hide("AKIAIOSFODNN7EXAMPLE", &[], &keep), None);
    }

    #[test]
    fn any_text_is_gone_through_and_cut_at_edges_of_characters() {
        for text in [
            "ghp_",
            "-----BEGIN",
            "-----BEGIN PRIVATE KEY-----",
            "://",
            "://é:é@",
            "password=\"é",
            "=é",
            "Bearer é",
            "eyJ.",
            "é=é:é",
        ] {
            let _ = hide(text, &[], &[]);
        }
        let long = "a=\"b\" : Bearer :// eyJ ghp_ -----BEGIN ".repeat(5_000);
        assert_eq!(hide(&long, &[], &[]), None);
    }
}
