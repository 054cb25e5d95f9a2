//! How large a record may be and how long it is kept, in every store.

use std::time::Duration;

use bytes::Bytes;

use crate::Key;

/// Default maximum size of a record, in bytes: hundreds of times what one turn stores, but still small enough for a
/// single write.
pub(crate) const DEFAULT_MAX_BYTES: usize = 4 << 20;

/// Default time after which a record that is not read expires. A conversation without a request for a day is over.
pub(crate) const DEFAULT_IDLE_EXPIRY: Duration = Duration::from_hours(24);

/// Splits off the records larger than `limit` and logs them. A request does not fail if its record is left out.
/// Returns the records to store, and how many are too large.
pub(crate) fn without_oversized(
    limit: usize,
    records: Vec<(Key, Bytes)>,
) -> (Vec<(Key, Bytes)>, usize) {
    let (stored, oversized): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|(_, value)| value.len() <= limit);
    for (key, value) in &oversized {
        tracing::warn!(?key, bytes = value.len(), limit, "a record is too large and is not stored");
    }
    (stored, oversized.len())
}

/// Clamps an expiry to a range that every store accepts. Stores do not accept zero or centuries.
pub(crate) fn clamp_expiry(idle: Duration) -> Duration {
    const MAX_EXPIRY: Duration = Duration::from_hours(100 * 365 * 24);
    idle.clamp(Duration::from_millis(1), MAX_EXPIRY)
}
