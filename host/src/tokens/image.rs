//! Tokens of a picture, from its size in pixels as its own header tells it.
//!
//! The rules are the vendors': Anthropic shrinks a picture to 1,568 pixels and bills width × height / 750; OpenAI shrinks it
//! to 2,048, then its shorter side to 768, and bills 85 tokens and 170 for each tile of 512. A header that does not read
//! counts as the largest picture, since too many tokens compact early and too few overflow.

use super::Tokenizer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Base64 characters that are decoded to find the size; a JPEG may carry a preview of 64 KiB before it.
const HEAD: usize = 128 << 10;

/// Tokens of a picture given as base64.
pub(super) fn tokens(data: &str, tokenizer: Tokenizer) -> u64 {
    let head = &data.as_bytes()[..data.len().min(HEAD) / 4 * 4];
    let size = STANDARD.decode(head).ok().and_then(|bytes| pixels(&bytes));
    let (width, height) = size.unwrap_or((4_096, 4_096));
    match tokenizer {
        Tokenizer::Claude => {
            let (width, height) = shrunk(width, height, width.max(height), 1_568);
            (width * height).div_ceil(750).clamp(1, 1_600)
        }
        Tokenizer::O200k => {
            let (width, height) = shrunk(width, height, width.max(height), 2_048);
            let (width, height) = shrunk(width, height, width.min(height), 768);
            85 + 170 * width.div_ceil(512) * height.div_ceil(512)
        }
    }
}

/// Both sides, scaled so that `side` is at most `most`.
fn shrunk(width: u64, height: u64, side: u64, most: u64) -> (u64, u64) {
    if side <= most { (width, height) } else { ((width * most / side).max(1), (height * most / side).max(1)) }
}

/// Width and height of a PNG, GIF, WebP or JPEG.
pub fn pixels(bytes: &[u8]) -> Option<(u64, u64)> {
    let le16 = |at: usize| Some(u64::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let be32 = |at: usize| Some(u64::from(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)));
    let le24 = |at: usize| {
        let b = bytes.get(at..at + 3)?;
        Some(u64::from(b[0]) | u64::from(b[1]) << 8 | u64::from(b[2]) << 16)
    };
    let found = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        (be32(16)?, be32(20)?)
    } else if bytes.starts_with(b"GIF8") {
        (le16(6)?, le16(8)?)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        match bytes.get(12..16)? {
            b"VP8X" => (le24(24)? + 1, le24(27)? + 1),
            b"VP8L" => {
                let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
                (u64::from(bits & 0x3fff) + 1, u64::from(bits >> 14 & 0x3fff) + 1)
            }
            _ => (le16(26)? & 0x3fff, le16(28)? & 0x3fff),
        }
    } else {
        jpeg(bytes)?
    };
    // No decoder takes more, and products stay far from overflow.
    (found.0 > 0 && found.1 > 0 && found.0 <= 1 << 20 && found.1 <= 1 << 20).then_some(found)
}

/// Walks the segments of a JPEG to its frame header.
fn jpeg(bytes: &[u8]) -> Option<(u64, u64)> {
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return None;
    }
    let be16 = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    while *bytes.get(at)? == 0xff {
        match *bytes.get(at + 1)? {
            // Frame headers; c4, c8 and cc among them are tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((be16(at + 7)?.into(), be16(at + 5)?.into()));
            }
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + usize::from(be16(at + 2)?.max(2)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_read_from_every_kind_of_header() {
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0, 0, 3, 0x20, 0, 0, 2, 0x58]].concat();
        assert_eq!(pixels(&png), Some((800, 600)));
        assert_eq!(pixels(b"GIF89a\x20\x03\x58\x02"), Some((800, 600)));
        let vp8x = [b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".as_slice(), &[0x1f, 3, 0, 0x57, 2, 0]].concat();
        assert_eq!(pixels(&vp8x), Some((800, 600)));
        let bits = (799u32 | 599 << 14).to_le_bytes();
        assert_eq!(pixels(&[b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f".as_slice(), &bits].concat()), Some((800, 600)));
        let vp8 = [b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a".as_slice(), &[0x20, 3, 0x58, 2]].concat();
        assert_eq!(pixels(&vp8), Some((800, 600)));
        let app = [&[0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2], [0xff, 0xc2, 0, 8, 8, 2, 0x58, 3].as_slice(), &[0x20]];
        assert_eq!(pixels(&app.concat()), Some((800, 600)));
    }

    #[test]
    fn a_header_that_does_not_read_counts_as_the_largest() {
        for data in ["", "AAAA", "not base64!", "iVBORw0KGgo=", "/9j/"] {
            assert_eq!(tokens(data, Tokenizer::Claude), 1_600, "{data}");
            assert_eq!(tokens(data, Tokenizer::O200k), 85 + 170 * 4, "{data}");
        }
    }

    #[test]
    fn a_small_picture_is_cheap_and_a_huge_one_bounded() {
        let png = |width: u32, height: u32| {
            let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
            STANDARD.encode([head, &width.to_be_bytes(), &height.to_be_bytes(), &[0; 3]].concat())
        };
        assert_eq!(tokens(&png(300, 200), Tokenizer::Claude), 80);
        assert_eq!(tokens(&png(300, 200), Tokenizer::O200k), 255);
        assert_eq!(tokens(&png(40_000, 1), Tokenizer::Claude), 3);
        assert!(tokens(&png(u32::MAX, u32::MAX), Tokenizer::Claude) <= 1_600);
    }
}
