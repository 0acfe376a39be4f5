//! SHA-256 and how we write it: in lower-case hex, everywhere.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes, in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    /// The vector of FIPS 180-2.
    #[test]
    fn the_hash_of_abc_is_the_standards() {
        assert_eq!(super::sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
