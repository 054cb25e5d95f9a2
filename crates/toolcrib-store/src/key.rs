//! The name of a record.

use std::fmt;

/// A hash of whatever a record is found by. Two records with one key are the same record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Key {
    /// The key made of a hash. The bytes must be spread evenly, as those of a cryptographic hash are.
    pub const fn new(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// `prefix` and all of the hash in lower-case hex: the key's name in Redis.
    pub(crate) fn named(&self, prefix: &str) -> String {
        format!("{prefix}{}", hex(&self.0))
    }
}

impl From<[u8; 32]> for Key {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

/// Only the beginning: enough to follow a record through a log, too little to ask for it.
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
    fn in_redis_a_key_is_its_prefix_and_all_of_its_hash() {
        assert_eq!(
            key().named("toolcrib:"),
            "toolcrib:070f171f272f373f474f575f676f777f878f979fa7afb7bfc7cfd7dfe7eff7ff"
        );
    }

    #[test]
    fn in_a_log_a_key_is_short() {
        assert_eq!(format!("{:?}", key()), "Key(070f171f…)");
    }
}
