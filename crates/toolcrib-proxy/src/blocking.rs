//! Work whose time depends on the size of a body. A large body takes long enough to delay every other request on the
//! same thread, so such work runs on a thread for blocking work.

use tokio::sync::Semaphore;

/// Size of a body, in bytes, up to which it is cheaper to do the work at once. Such a body is parsed in about a
/// millisecond.
const INLINE: usize = 256 << 10;

/// Maximum number of large bodies that are worked on at the same time. Each may take many times its size in memory.
static LARGE: Semaphore = Semaphore::const_new(4);

/// Does some work on a body of this size.
pub(crate) async fn run<T, F>(bytes: usize, work: F) -> T
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    if bytes <= INLINE {
        return work();
    }
    // The semaphore is never closed.
    let _permit = LARGE.acquire().await;
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and ends this task as well.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn large_bodies_do_not_block_the_thread_of_other_requests() {
        let here = thread::current().id();
        let id = || thread::current().id();
        assert_eq!(run(INLINE, id).await, here);
        assert_ne!(run(INLINE + 1, id).await, here);
    }
}
