//! Embeds tools in background threads while the gateway and the proxy serve their clients.
//!
//! The threads run with a low priority and end when there is nothing to do.

use std::collections::{HashSet, VecDeque};
use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::Mutex;
use toolcrib_core::rank::{DeepVectors, TextEncoder, TextKey, ToolText};
use toolcrib_embed::Encoder;

use super::vector_cache::VectorCache;
use super::{CAPACITY, KeyedVector};

/// Maximum number of threads. Two embed 500 tools within seconds. More would take the processor from calls.
const MAX_THREADS: usize = 2;
/// Number of texts that a thread embeds before it inserts and saves their vectors.
const BATCH: usize = 16;
/// The niceness of the threads, on a scale to 19.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The texts that wait for a thread.
struct Queue {
    waiting: Mutex<Waiting>,
    cache: Option<VectorCache>,
    encoder: Arc<Encoder>,
    /// Set right after the vectors were created, before any text can be requested.
    deep: OnceLock<DeepVectors>,
}

#[derive(Default)]
struct Waiting {
    texts: VecDeque<ToolText>,
    /// The keys of all texts that wait or are being embedded.
    keys: HashSet<TextKey>,
    /// The number of running threads.
    threads: usize,
}

/// Returns deep vectors whose missing ones are embedded in the background.
pub(super) fn deep_vectors(encoder: Arc<Encoder>, cache: Option<VectorCache>) -> DeepVectors {
    let queue = Arc::new(Queue {
        waiting: Mutex::default(),
        cache,
        encoder: Arc::clone(&encoder),
        deep: OnceLock::new(),
    });
    let requests = Arc::clone(&queue);
    let request = Box::new(move |texts| requests.add(texts));
    let deep = DeepVectors::requesting(encoder, CAPACITY, request);
    queue.deep.get_or_init(|| deep.clone());
    deep
}

impl Queue {
    /// Adds texts, and starts threads for them.
    fn add(self: &Arc<Self>, texts: Vec<ToolText>) {
        let mut waiting = self.waiting.lock();
        for text in texts {
            if waiting.keys.len() < CAPACITY && waiting.keys.insert(text.key) {
                waiting.texts.push_back(text);
            }
        }
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let wanted = cores.min(MAX_THREADS).min(waiting.texts.len().div_ceil(BATCH));
        while waiting.threads < wanted {
            let queue = Arc::clone(self);
            let thread = thread::Builder::new().name("embed".into()).spawn(move || queue.run());
            if let Err(error) = thread {
                tracing::warn!("tools cannot be embedded in the background: {error}");
                return;
            }
            waiting.threads += 1;
        }
    }

    /// Embeds texts until none are left.
    fn run(&self) {
        #[cfg(target_os = "linux")]
        lower_priority();
        let Some(deep) = self.deep.get() else { return };
        while let Some(texts) = self.next_batch() {
            let keys: Vec<TextKey> = texts.iter().map(|text| text.key).collect();
            let texts = texts.iter().filter(|text| !deep.has(&text.key));
            let embed = |text: &ToolText| (text.key, self.encoder.embed_tool(&text.text));
            let vectors: Vec<KeyedVector> = texts.map(embed).collect();
            if let Some(cache) = &self.cache {
                cache.append(&vectors);
            }
            deep.insert(vectors);
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

/// Lets all other threads run first. On Linux, a process id of 0 means the calling thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // A failure is harmless: the thread then runs with normal priority.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}
