//! Runs work whose duration depends on the size of a body. Work on a large body would delay every other request on the
//! same thread, so it runs on a blocking thread.

use tokio::sync::Semaphore;

/// Maximum size of a body that is worked on without a blocking thread, in bytes. Such a body is parsed in about a
/// millisecond.
const MAX_INLINE_BYTES: usize = 256 << 10;

/// Limits how many large bodies are worked on at the same time. Each may take many times its size in memory.
static LARGE_BODIES: Semaphore = Semaphore::const_new(4);

/// Runs `work` on a body of `bytes` bytes. Returns the result of `work`, and `held`, which reserves the memory of the
/// body. The work continues even if the client disconnects, so `held` is kept until the work is done.
pub(crate) async fn run<T, H, F>(bytes: usize, held: H, work: F) -> (T, H)
where
    T: Send + 'static,
    H: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    if bytes <= MAX_INLINE_BYTES {
        return (work(), held);
    }
    // This cannot fail, because the semaphore is never closed.
    let permit = LARGE_BODIES.acquire().await;
    let work = move || {
        let _permit = permit;
        (work(), held)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, which ends this task as well.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn large_bodies_do_not_block_the_thread_of_other_requests() {
        let here = thread::current().id();
        let id = || thread::current().id();
        assert_eq!(run(MAX_INLINE_BYTES, (), id).await.0, here);
        assert_ne!(run(MAX_INLINE_BYTES + 1, (), id).await.0, here);
    }

    /// A client may disconnect as soon as it has sent a large body. The body's memory must stay reserved while the body
    /// is worked on.
    #[tokio::test]
    async fn the_memory_of_a_body_counts_until_the_work_is_done() {
        let held = Arc::new(());
        let (begin, begun) = channel();
        let (release, released) = channel::<()>();
        let work = move || {
            begin.send(()).unwrap();
            let _ = released.recv();
        };
        let running = tokio::spawn(run(MAX_INLINE_BYTES + 1, Arc::clone(&held), work));
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        assert_eq!(Arc::strong_count(&held), 2, "the work continues");
        drop(release);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
