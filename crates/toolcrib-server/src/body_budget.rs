//! A total for the request bodies that are in memory, shared by all services of a listener.
//!
//! A limit for each body is not enough: many clients that send large bodies at the same time would take as much
//! memory as all of them together. Bytes count from when they are received until the service has released the
//! body. Bytes that a client only announces do not count: otherwise announcing costs nothing and locks out others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::header;
use axum::response::Response;

use crate::refusal::RETRY_AFTER;

/// The bodies of one listener. A clone is the same total.
#[derive(Debug, Clone)]
pub struct BodyBudget(Arc<Total>);

#[derive(Debug)]
struct Total {
    limit: usize,
    used: AtomicUsize,
}

/// A body for which there is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyRefused {
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

impl BodyRefused {
    /// Sets the time to wait on a response with this refusal, if waiting helps.
    pub fn set_retry(self, response: &mut Response) {
        if self == Self::Busy {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
    }
}

impl BodyBudget {
    /// A total of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Total { limit, used: AtomicUsize::new(0) }))
    }

    /// A body of which nothing has been received. `announced` is its length, as far as it is known: if that does
    /// not fit now, it is refused before the client sends it.
    pub fn begin(&self, announced: usize) -> Result<BodyPermit, BodyRefused> {
        let mut permit = BodyPermit { total: Arc::clone(&self.0), bytes: 0 };
        permit.grow(announced)?;
        permit.release();
        Ok(permit)
    }
}

/// The bytes of one body. Dropping it releases them.
#[derive(Debug)]
pub struct BodyPermit {
    total: Arc<Total>,
    bytes: usize,
}

impl BodyPermit {
    /// Counts more bytes of the body.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BodyRefused> {
        let Total { limit, used } = &*self.total;
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| sum <= limit);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
            self.bytes += bytes;
            return Ok(());
        }
        let is_too_large = self.bytes.checked_add(bytes).is_none_or(|sum| sum > *limit);
        Err(if is_too_large { BodyRefused::TooLarge(*limit) } else { BodyRefused::Busy })
    }

    fn release(&mut self) {
        self.total.used.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.release();
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
        assert_eq!(two.grow(1), Err(BodyRefused::Busy), "one over the limit");
        assert_eq!(budget.begin(1).unwrap_err(), BodyRefused::Busy, "it need not be sent");
        drop(one);
        two.grow(60).unwrap();
        assert_eq!(two.grow(1), Err(BodyRefused::TooLarge(100)), "alone it is over the limit");
        drop(two);
        assert_eq!(budget.begin(101).unwrap_err(), BodyRefused::TooLarge(100));
        assert_eq!(budget.begin(usize::MAX).unwrap_err(), BodyRefused::TooLarge(100));
        budget.begin(100).unwrap().grow(100).unwrap();
    }
}
