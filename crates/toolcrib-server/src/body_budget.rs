//! A total for the request bodies that are in memory, shared by all services of a listener.
//!
//! A limit for each body is not enough: many clients that send large bodies at the same time would take as much
//! memory as all of them together. Bytes count from when they are received until the service has released the
//! body. Bytes that a client only announces do not count: otherwise announcing costs nothing and locks out others.

use axum::http::header;
use axum::response::Response;

use crate::error_response::RETRY_AFTER;
use crate::memory_budget::{MemoryBudget, MemoryShare};

/// The bodies of one listener. A clone is the same total.
#[derive(Debug, Clone)]
pub struct BodyBudget(MemoryBudget);

/// A body for which there is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyRejected {
    /// Other requests take up the total.
    #[error(
        "the bodies of other requests in flight take up all memory for bodies: try again later (`body_bytes` of `[http]`)"
    )]
    Busy,
    /// It would never fit.
    #[error(
        "the body is larger than the total for all bodies, {0} bytes (`body_bytes` of `[http]`)"
    )]
    TooLarge(usize),
}

impl BodyRejected {
    /// Sets the time to wait on a response with this error_response, if waiting helps.
    pub fn set_retry(self, response: &mut Response) {
        if self == Self::Busy {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
    }
}

impl BodyBudget {
    /// A total of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self(MemoryBudget::new(limit))
    }

    /// A body of which nothing has been received. `announced` is its length, as far as it is known: if that does
    /// not fit now, it is refused before the client sends it.
    pub fn begin(&self, announced: usize) -> Result<BodyPermit, BodyRejected> {
        let mut permit = BodyPermit { share: self.0.share(), limit: self.0.limit() };
        permit.grow(announced)?;
        permit.share.release();
        Ok(permit)
    }
}

/// The bytes of one body. Dropping it releases them.
#[derive(Debug)]
pub struct BodyPermit {
    share: MemoryShare,
    limit: usize,
}

impl BodyPermit {
    /// Counts more bytes of the body.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BodyRejected> {
        if self.share.grow(bytes) {
            return Ok(());
        }
        let all = self.share.bytes().checked_add(bytes);
        let is_too_large = all.is_none_or(|all| all > self.limit);
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
        assert_eq!(budget.begin(1).unwrap_err(), BodyRejected::Busy, "it need not be sent");
        drop(one);
        two.grow(60).unwrap();
        assert_eq!(two.grow(1), Err(BodyRejected::TooLarge(100)), "alone it is over the limit");
        drop(two);
        assert_eq!(budget.begin(101).unwrap_err(), BodyRejected::TooLarge(100));
        assert_eq!(budget.begin(usize::MAX).unwrap_err(), BodyRejected::TooLarge(100));
        budget.begin(100).unwrap().grow(100).unwrap();
    }
}
