//! From bytes to text: the byte order mark, what the header says, what the page says of itself, and then a guess.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its own `<meta charset>` is looked for, as browsers do.
const HEAD: usize = 1_024;

/// The text. Bytes that fit no encoding become U+FFFD.
pub fn decode(bytes: &[u8], content_type: &str) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned();
    }
    let named = parameter(content_type, "charset").and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = named.or_else(|| in_page(bytes)).unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // A text cut in the middle of a character is still UTF-8, where something before says so.
        Err(error) if error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii() => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// A parameter of a media type: `text/html; charset="utf-8"`.
fn parameter<'a>(content_type: &'a str, name: &str) -> Option<&'a str> {
    content_type.split(';').skip(1).find_map(|part| {
        let (own, value) = part.split_once('=')?;
        own.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// `<meta charset=…>`, or the older form with `content="text/html; charset=…"`.
fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_ascii_lowercase();
    let mut rest = head.as_str();
    while let Some(at) = rest.find("<meta") {
        rest = &rest[at + "<meta".len()..];
        let tag = &rest[..rest.find('>').unwrap_or(rest.len())];
        if let Some((_, value)) = tag.split_once("charset=") {
            let value = value.trim_start_matches(['"', '\'', ' ']);
            let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(value.len());
            let found = Encoding::for_label(&value.as_bytes()[..end]);
            // A page that says UTF-16 of itself in ASCII is none.
            return found.map(|encoding| if encoding.name().starts_with("UTF-16") { UTF_8 } else { encoding });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn the_header_the_page_and_a_guess_in_this_order() {
        let (gbk, _, _) = encoding_rs::GBK.encode("星系");
        assert_eq!(decode(&gbk, "text/html; charset=GBK"), "星系");
        let page = [b"<html><head><META http-equiv=x content='text/html; charset=gb2312'>", gbk.as_ref()].concat();
        assert!(decode(&page, "text/html").ends_with("星系"));
        let page = [b"<meta name=a><meta charset=\"gbk\">", gbk.as_ref()].concat();
        assert!(decode(&page, "").ends_with("星系"));
        assert_eq!(decode("星系".as_bytes(), "text/html"), "星系");
        assert_eq!(decode(b"caf\xe9", "text/plain"), "café");
        assert_eq!(decode(b"\xef\xbb\xbfa", "text/plain; charset=latin1"), "a");
        assert_eq!(decode(b"\xff\xfea\0", ""), "a");
        assert_eq!(decode(&"星系".as_bytes()[..5], ""), "星\u{fffd}");
        assert_eq!(decode(b"<meta charset=utf-16>a", ""), "<meta charset=utf-16>a");
    }
}
