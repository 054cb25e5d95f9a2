//! How much memory a JSON text takes once it is parsed, estimated from the text.
//!
//! A limit on the text alone is not enough: an object with one short entry is seven bytes of text and an allocation
//! of several hundred bytes, so a message of 8 MiB could take half a gigabyte. The estimate is made before anything
//! is parsed. It counts the characters that begin or separate values, outside of strings, in one pass.

use serde_json::Value;

/// Memory of an object with up to three entries, in bytes, as measured. It consists of the object's index and its first
/// block of entries.
const OBJECT_BYTES: usize = 400;

/// Maximum memory of a message, as a multiple of the limit on its text. Ordinary messages are mostly text and take
/// little more memory than their text. Lists of small records take up to twelve times their text.
const MAX_FACTOR: usize = 16;

/// Texts up to this size, in bytes, are not checked, because they cannot take more than a few megabytes of memory.
const MIN_CHECKED_BYTES: usize = 64 << 10;

/// The error for a server's message whose text is within the limit, but which would take too much memory once it is
/// parsed.
pub(crate) const TOO_MANY_VALUES: &str = "the server's answer has too many values for its size";

/// Estimates how much memory a JSON text takes once it is parsed, in bytes.
pub(crate) fn parsed_bytes(text: &[u8]) -> usize {
    let mut memory = text.len();
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' => memory += OBJECT_BYTES,
            b'[' | b',' => memory += size_of::<Value>(),
            _ => {}
        }
    }
    memory
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// Whether a text would take too much memory once it is parsed. `limit` is the maximum size of a text, in bytes.
pub(crate) fn takes_too_much_memory(text: &[u8], limit: usize) -> bool {
    text.len() > MIN_CHECKED_BYTES && parsed_bytes(text) > limit.saturating_mul(MAX_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;

    fn filled(piece: &str) -> String {
        format!("[{}0]", piece.repeat(LIMIT / piece.len() - 1))
    }

    #[test]
    fn many_small_values_take_too_much_memory_and_ordinary_messages_do_not() {
        for (piece, expected) in [
            (r#"{"":0},"#, true),
            (r#"{"a":{"b":{}}},"#, true),
            ("0,", true),
            (r#"{"id":1234,"name":"A customer","city":"Paris"},"#, false),
            (r#""{[,{[,{[,{[,{[,{[,{[,{[,{[,\"{[,{[,","#, false),
            (r#""a line of text, as long as lines are","#, false),
        ] {
            let text = filled(piece);
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{piece}");
            assert_eq!(takes_too_much_memory(text.as_bytes(), LIMIT), expected, "{piece}");
        }
    }

    #[test]
    fn text_that_is_not_json_has_an_estimate_too() {
        assert_eq!(parsed_bytes(br#""no end \"#), 9);
        assert_eq!(parsed_bytes(b"}}]]::"), 6);
        assert_eq!(parsed_bytes(b"{["), 2 + OBJECT_BYTES + size_of::<Value>());
    }
}
