//! Embeds tools in background threads while the gateway and the proxy serve their clients.
//!
//! The threads run with a low priority and end when there is nothing to do.

use std::collections::{HashSet, VecDeque};
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use toolcrib_core::rank::{DeepVectors, TextEncoder, TextKey, ToolText};
use toolcrib_embed::Encoder;

use super::vector_cache::VectorCache;
use super::{CAPACITY, KeyedVector};

/// Maximum number of threads. Two embed 500 tools within seconds. More would compete with calls for the CPU.
const MAX_THREADS: usize = 2;
/// Number of texts that a thread embeds before it inserts and saves their vectors.
const BATCH: usize = 16;
/// The nice value of the threads. The maximum, 19, is the lowest priority.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The texts that wait for a thread.
struct Queue {
    waiting: Mutex<Waiting>,
    cache: Option<VectorCache>,
    encoder: Arc<Encoder>,
}

#[derive(Default)]
struct Waiting {
    texts: VecDeque<ToolText>,
    /// The keys of all texts that wait or are being embedded.
    keys: HashSet<TextKey>,
    /// The number of running threads.
    threads: usize,
}

/// Returns an empty store of deep vectors. Background threads embed the tools that it does not have yet.
pub(super) fn deep_vectors(encoder: Arc<Encoder>, cache: Option<VectorCache>) -> DeepVectors {
    let queue = Arc::new(Queue { waiting: Mutex::default(), cache, encoder: Arc::clone(&encoder) });
    // The store owns the queue. The threads own both, but only while they have something to do.
    let request = Box::new(move |deep: &DeepVectors, texts| queue.add(deep, texts));
    DeepVectors::requesting(encoder, CAPACITY, request)
}

impl Queue {
    /// Adds texts, and starts threads for them.
    fn add(self: &Arc<Self>, deep: &DeepVectors, texts: Vec<ToolText>) {
        let mut waiting = self.waiting.lock();
        for text in texts {
            if waiting.keys.len() < CAPACITY && waiting.keys.insert(text.key) {
                waiting.texts.push_back(text);
            }
        }
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let wanted = cores.min(MAX_THREADS).min(waiting.texts.len().div_ceil(BATCH));
        while waiting.threads < wanted {
            let (queue, deep) = (Arc::clone(self), deep.clone());
            let thread =
                thread::Builder::new().name("embed".into()).spawn(move || queue.run(&deep));
            if let Err(error) = thread {
                tracing::warn!("tools cannot be embedded in the background: {error}");
                return;
            }
            waiting.threads += 1;
        }
    }

    /// Embeds texts until none are left.
    fn run(&self, deep: &DeepVectors) {
        #[cfg(target_os = "linux")]
        lower_priority();
        while let Some(texts) = self.next_batch() {
            let keys: Vec<TextKey> = texts.iter().map(|text| text.key).collect();
            let texts = texts.iter().filter(|text| !deep.has(&text.key));
            let embed = |text: &ToolText| (text.key, self.encoder.embed_tool(&text.text));
            let vectors: Vec<KeyedVector> = texts.map(embed).collect();
            deep.insert(vectors.iter().cloned());
            if let Some(cache) = &self.cache {
                cache.append(&vectors);
            }
            let mut waiting = self.waiting.lock();
            for key in keys {
                waiting.keys.remove(&key);
            }
        }
    }

    /// Takes texts from the queue. Returns `None` if it is empty; the thread then counts as ended.
    fn next_batch(&self) -> Option<Vec<ToolText>> {
        let mut waiting = self.waiting.lock();
        let count = waiting.texts.len().min(BATCH);
        if count == 0 {
            waiting.threads -= 1;
            return None;
        }
        Some(waiting.texts.drain(..count).collect())
    }
}

/// Lowers the scheduling priority of this thread. On Linux, `None` (process id 0) means the calling thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // A failure is harmless: the thread then runs with normal priority.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
