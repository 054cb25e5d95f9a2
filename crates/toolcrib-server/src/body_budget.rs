//! A limit on the total size of the request bodies in memory, shared by all services of a listener.
//!
//! A limit for each body is not enough, because many clients can send large bodies at the same time. A byte counts
//! from when it is received until the service releases the body. Bytes that a client only announces do not count:
//! announcing costs nothing, so a client could lock out all others by announcing large bodies.

use axum::http::header;
use axum::response::Response;

use crate::error_response::RETRY_AFTER;
use crate::memory_budget::{MemoryBudget, MemoryShare};

/// The memory for all request bodies of one listener. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyBudget(MemoryBudget);

/// Why there is no memory for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyRejected {
    /// The bodies of other requests take up all of the memory.
    #[error(
        "the bodies of other requests in flight take up all memory for bodies: try again later (`body_bytes` of `[http]`)"
    )]
    Busy,
    /// The body is larger than the memory for all bodies together.
    #[error(
        "the body is larger than the total for all bodies, {0} bytes (`body_bytes` of `[http]`)"
    )]
    TooLarge(usize),
}

impl BodyRejected {
    /// Sets `Retry-After` on the response that reports this error, unless the body would be too large at any time.
    pub fn set_retry_after(self, response: &mut Response) {
        if self == Self::Busy {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
    }
}

impl BodyBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(MemoryBudget::new(limit))
    }

    /// Returns the permit for a body of which nothing has been received yet. `announced` is the length that the client
    /// announced, or 0 if it is unknown. If this many bytes are not available now, the body is rejected before the
    /// client sends it.
    pub fn begin(&self, announced: usize) -> Result<BodyPermit, BodyRejected> {
        let mut permit = BodyPermit { share: self.0.share(), limit: self.0.limit() };
        permit.grow(announced)?;
        permit.share.release();
        Ok(permit)
    }
}

/// The bytes that one body takes. Dropping the permit releases them.
#[derive(Debug)]
pub struct BodyPermit {
    share: MemoryShare,
    limit: usize,
}

impl BodyPermit {
    /// Adds received bytes to the size of this body.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BodyRejected> {
        if self.share.grow(bytes) {
            return Ok(());
        }
        let total = self.share.bytes().checked_add(bytes);
        let is_too_large = total.is_none_or(|total| total > self.limit);
        Err(if is_too_large { BodyRejected::TooLarge(self.limit) } else { BodyRejected::Busy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_one_total_until_they_are_released() {
        let budget = BodyBudget::new(100);
        let (mut one, mut two) = (budget.begin(60).unwrap(), budget.begin(60).unwrap());
        one.grow(60).unwrap();
        two.grow(40).unwrap();
        assert_eq!(two.grow(1), Err(BodyRejected::Busy), "one over the limit");
        assert_eq!(budget.begin(1).unwrap_err(), BodyRejected::Busy, "rejected before it is sent");
        drop(one);
        two.grow(60).unwrap();
        assert_eq!(two.grow(1), Err(BodyRejected::TooLarge(100)), "over the limit on its own");
        drop(two);
        assert_eq!(budget.begin(101).unwrap_err(), BodyRejected::TooLarge(100));
        assert_eq!(budget.begin(usize::MAX).unwrap_err(), BodyRejected::TooLarge(100));
        budget.begin(100).unwrap().grow(100).unwrap();
    }
}
