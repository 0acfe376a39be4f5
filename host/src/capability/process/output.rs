//! What a program prints: the beginning and the end are kept, the middle is counted.

use std::collections::VecDeque;

/// A program that prints this many times what is kept does nothing else any more.
const FLOOD: usize = 256;

/// One stream.
pub(super) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes kept at each end.
    half: usize,
    total: usize,
}

impl Output {
    pub(super) fn new(keep: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: keep.div_ceil(2), total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len());
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(&rest[rest.len().saturating_sub(self.half)..]);
        self.tail.drain(..self.tail.len().saturating_sub(self.half));
    }

    pub(super) fn is_flood(&self) -> bool {
        self.total > self.half.saturating_mul(FLOOD)
    }

    /// The kept bytes, a line in place of what was cut, and whether there is one.
    pub(super) fn finish(self) -> (Vec<u8>, bool) {
        let (mut bytes, cut) = (self.head, self.total - self.tail.len());
        let cut = cut - bytes.len();
        if cut > 0 {
            bytes.extend_from_slice(format!("\n[… {cut} bytes cut …]\n").as_bytes());
        }
        bytes.extend(self.tail);
        (bytes, cut > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Output;
    use proptest::prelude::*;

    fn kept(keep: usize, parts: &[&str]) -> (String, bool) {
        let mut output = Output::new(keep);
        parts.iter().for_each(|part| output.push(part.as_bytes()));
        let (bytes, cut) = output.finish();
        (String::from_utf8(bytes).unwrap(), cut)
    }

    #[test]
    fn both_ends_are_kept() {
        assert_eq!(kept(10, &["0123456789"]), ("0123456789".into(), false));
        assert_eq!(kept(10, &["012345", "6789ab"]), ("01234\n[… 2 bytes cut …]\n789ab".into(), true));
        assert_eq!(kept(4, &["", "abc", "", "defghi"]), ("ab\n[… 5 bytes cut …]\nhi".into(), true));
        assert_eq!(kept(4, &[]), (String::new(), false));
    }

    proptest! {
        #[test]
        fn however_it_comes_in_parts(text in "[a-z]{0,60}", at in 0usize..60, keep in 1usize..30) {
            let at = at.min(text.len());
            prop_assert_eq!(kept(keep, &[&text]), kept(keep, &[&text[..at], &text[at..]]));
        }
    }
}
