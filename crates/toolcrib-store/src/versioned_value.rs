//! The format of a record in Redis: a header with a version, then the value.

use bytes::Bytes;

/// Identifies a record as Toolcrib's and gives the version of its format. A later version will change the last byte,
/// and this version then treats such records as absent.
const HEADER: [u8; 3] = *b"tc\x01";

/// Prepends the header to the value.
pub(crate) fn encode(value: &[u8]) -> Vec<u8> {
    [&HEADER, value].concat()
}

/// Returns the value; `None` for anything that this version did not write.
pub(crate) fn decode(stored: &Bytes) -> Option<Bytes> {
    stored.starts_with(&HEADER).then(|| stored.slice(HEADER.len()..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_returns_what_was_encoded() {
        for value in [&b""[..], b"tc\x01", b"\0\xff anything"] {
            assert_eq!(decode(&encode(value).into()).as_deref(), Some(value));
        }
    }

    #[test]
    fn anything_else_reads_as_absent() {
        for stored in [
            &b""[..],
            b"t",
            b"tc",
            b"tc\x02of a newer version",
            b"tc\0",
            b"{\"other\": 1}",
            b"\xff\xfe\xfd\xfc",
        ] {
            assert_eq!(decode(&Bytes::from_static(stored)), None, "{stored:?}");
        }
    }
}
