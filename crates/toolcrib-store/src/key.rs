//! The key of a record.

use std::fmt;

/// A hash of whatever identifies a record. Two records with the same key are the same record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Key {
    /// Makes a key of a hash. The bytes of the hash must be evenly distributed, as those of a cryptographic hash are.
    pub const fn new(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// Returns the key in Redis: `prefix`, then the complete hash in lower-case hex.
    pub(crate) fn redis_key(&self, prefix: &str) -> String {
        format!("{prefix}{}", hex(&self.0))
    }
}

/// Prints only the first bytes, which are enough to follow a record through a log, but too few to read the record from
/// Redis.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}…)", hex(&self.0[..4]))
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new(std::array::from_fn(|at| at as u8 * 8 + 7))
    }

    #[test]
    fn a_key_in_redis_is_the_prefix_and_the_complete_hash() {
        assert_eq!(
            key().redis_key("toolcrib:"),
            "toolcrib:070f171f272f373f474f575f676f777f878f979fa7afb7bfc7cfd7dfe7eff7ff"
        );
    }

    #[test]
    fn a_key_in_a_log_is_short() {
        assert_eq!(format!("{:?}", key()), "Key(070f171f…)");
    }
}
