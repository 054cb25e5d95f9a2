//! What a record may be, wherever it is kept: how large, for how long, and how it looks outside.

use std::time::Duration;

use bytes::Bytes;

use crate::Key;

/// Four mebibytes: hundreds of times what a turn leaves behind, and still written in one go.
pub(crate) const LARGEST: usize = 4 << 20;

/// A day without a request, and a conversation is over.
pub(crate) const IDLE: Duration = Duration::from_hours(24);

/// In front of each record that leaves the process: two letters that are ours, and the version of what
/// follows. A later version changes the last byte, and this one then reads its records as absent.
const HEADER: [u8; 3] = *b"tc\x01";

pub(crate) fn encode(value: &[u8]) -> Vec<u8> {
    [&HEADER, value].concat()
}

/// `None` for whatever this version did not write.
pub(crate) fn decode(stored: &Bytes) -> Option<Bytes> {
    stored.starts_with(&HEADER).then(|| stored.slice(HEADER.len()..))
}

/// Parts the records that may be kept from those too large, which are named in the log and left out: losing
/// one is no failure of the request that made it. Returns how many were left out, too.
pub(crate) fn within(limit: usize, records: Vec<(Key, Bytes)>) -> (Vec<(Key, Bytes)>, usize) {
    let (kept, refused): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|(_, value)| value.len() <= limit);
    for (key, value) in &refused {
        tracing::warn!(?key, bytes = value.len(), limit, "a record is too large and is not kept");
    }
    (kept, refused.len())
}

/// An expiry that every back end can count with; none of them takes nothing, or centuries.
pub(crate) fn expiry(idle: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);
    idle.clamp(Duration::from_millis(1), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_went_out() {
        for value in [&b""[..], b"tc\x01", b"\0\xff anything"] {
            assert_eq!(decode(&encode(value).into()).as_deref(), Some(value));
        }
    }

    #[test]
    fn what_this_version_did_not_write_is_absent() {
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
