//! What the model reads of a response: where it came from, what it is, the text within its bound, and what was cut.

use astrarium_sdk::http::Response;

use crate::{charset, page};

/// Characters of an error page that are shown: enough for the sentence that says what is wrong.
const ERROR_CHARS: usize = 1_000;
/// Bytes of HTML that are made into Markdown; the tree of a page takes some ten times its bytes.
const HTML: usize = 4 << 20;

/// A response, made readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// Lines before the text.
    head: String,
    /// The text.
    body: String,
    /// What must be known beside its length.
    notes: Vec<String>,
    /// Whether it is an error page.
    failed: bool,
}

/// What a body is, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Binary,
}

impl Shown {
    /// Reads a response; `raw` leaves HTML as it is.
    pub fn of(response: &Response, raw: bool) -> Self {
        let content_type = response.header("content-type").unwrap_or_default();
        let failed = !(200..300).contains(&response.status);
        let mut head = response.url.clone();
        if failed {
            head.push_str(&format!(" answered with status {}", response.status));
        }
        let mut notes = Vec::new();
        if response.truncated {
            notes.push("the page is longer than the host takes in, and its end is missing".to_owned());
        }
        let encoding = response.header("content-encoding").unwrap_or("identity");
        let kind = if encoding == "identity" { kind(content_type, &response.body) } else { Kind::Binary };
        let body = match kind {
            Kind::Binary => {
                let size = response.body.len();
                let what = if content_type.is_empty() { "something unnamed" } else { content_type };
                let packed = if encoding == "identity" { String::new() } else { format!(", compressed by {encoding}") };
                format!("[{what}{packed}, {size} bytes; web_fetch shows text only]")
            }
            Kind::Html if !raw => {
                let size = response.body.len().min(HTML);
                if size < response.body.len() {
                    notes.push(format!("only the first {HTML} bytes of the page were read"));
                }
                let page = page::read(&charset::decode(&response.body[..size], content_type), &response.url);
                if !page.title.is_empty() {
                    head.push_str(&format!("\nTitle: {}", page.title));
                }
                page.markdown
            }
            Kind::Html | Kind::Text => charset::decode(&response.body, content_type),
        };
        Self { head, body, notes, failed }
    }

    /// The answer with at most `most` characters of the text.
    pub fn text(&self, most: usize) -> String {
        let most = if self.failed { most.min(ERROR_CHARS) } else { most };
        let count = self.body.chars().count();
        let end = self.body.char_indices().nth(most).map_or(self.body.len(), |(at, _)| at);
        let mut notes = self.notes.clone();
        if end < self.body.len() {
            let cure = if self.failed { "" } else { "; ask with a larger max_chars for more" };
            notes.insert(0, format!("the first {most} of {count} characters are shown{cure}"));
        }
        let body = if self.body.trim().is_empty() { "[the page has no text]" } else { &self.body[..end] };
        let notes = if notes.is_empty() { String::new() } else { format!("\n[{}]", notes.join("; ")) };
        format!("{}\n\n{body}{notes}", self.head)
    }
}

fn kind(content_type: &str, body: &[u8]) -> Kind {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let looks_binary = body[..body.len().min(1_024)].contains(&0);
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        _ if looks_binary && !essence.starts_with("text/") => Kind::Binary,
        "" | "application/octet-stream" if begins_as_html(body) => Kind::Html,
        "" | "application/octet-stream" => {
            if std::str::from_utf8(body).is_ok() {
                Kind::Text
            } else {
                Kind::Binary
            }
        }
        _ if essence.starts_with("text/") || essence.ends_with("+json") || essence.ends_with("+xml") => Kind::Text,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-tex"
        | "application/x-ndjson"
        | "application/x-bibtex" => Kind::Text,
        _ => Kind::Binary,
    }
}

fn begins_as_html(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(256)]).trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, content_type: &str, body: &[u8]) -> Response {
        Response {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            body: body.to_vec(),
            truncated: false,
            url: "https://example.org/a".into(),
        }
    }

    fn text(response: &Response, most: usize) -> String {
        Shown::of(response, false).text(most)
    }

    #[test]
    fn a_page_a_text_and_a_picture() {
        let page = response(200, "text/html; charset=utf-8", b"<title>T</title><p>One <b>two</b>.");
        assert_eq!(text(&page, 100), "https://example.org/a\nTitle: T\n\nOne **two**.");
        assert_eq!(Shown::of(&page, true).text(100), "https://example.org/a\n\n<title>T</title><p>One <b>two</b>.");
        assert_eq!(text(&response(200, "application/json", b"{\"a\":1}"), 100), "https://example.org/a\n\n{\"a\":1}");
        assert_eq!(text(&response(200, "", b"<!DOCTYPE html><p>x"), 100), "https://example.org/a\n\nx");
        let picture = response(200, "image/png", b"\x89PNG\r\n\x1a\n\0\0");
        assert_eq!(text(&picture, 100), "https://example.org/a\n\n[image/png, 10 bytes; web_fetch shows text only]");
        let mut packed = response(200, "text/html", b"\x1f\x8b\0");
        packed.headers.push(("content-encoding".into(), "gzip".into()));
        assert!(text(&packed, 100).contains("compressed by gzip"));
    }

    #[test]
    fn what_is_cut_is_said() {
        let mut long = response(200, "text/plain", "星".repeat(50).as_bytes());
        assert_eq!(
            text(&long, 3),
            "https://example.org/a\n\n星星星\n[the first 3 of 50 characters are shown; ask with a larger max_chars for more]"
        );
        long.truncated = true;
        assert!(text(&long, 100).ends_with("\n[the page is longer than the host takes in, and its end is missing]"));
        assert!(text(&response(200, "text/html", b"<script>x</script>"), 9).ends_with("[the page has no text]"));
    }

    #[test]
    fn an_error_page_is_short_and_says_its_status() {
        let lost = response(404, "text/plain", "x".repeat(5_000).as_bytes());
        let shown = text(&lost, 40_000);
        assert!(shown.starts_with("https://example.org/a answered with status 404\n\nxxx"), "{shown}");
        assert!(shown.len() < 1_200 && shown.ends_with("[the first 1000 of 5000 characters are shown]"), "{shown}");
    }
}
