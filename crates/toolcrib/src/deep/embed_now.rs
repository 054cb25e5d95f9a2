//! Computes the missing deep vectors of a catalog before a command ranks with them.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use toolcrib_core::Crib;
use toolcrib_core::rank::{DeepVectors, TextEncoder, ToolText};

use super::vector_cache::VectorCache;
use super::{CAPACITY, KeyedVector};
use crate::progress::ProgressBar;
use crate::user_folders::state_folder;

/// A progress bar appears after this time.
const SILENT: Duration = Duration::from_secs(1);
/// How many vectors are saved at once. If the command is interrupted, at most this many are lost.
const SAVED_AT_ONCE: usize = 64;

/// Embeds the tools of `crib` that have no deep vector yet, on all cores, and saves the vectors for the next run. Shows a
/// progress bar called `name` if this takes more than a second.
pub(crate) fn embed_missing(crib: &Crib, name: &str) {
    let deep = &crib.settings().deep_vectors;
    let Some(encoder) = deep.encoder() else { return };
    let mut missing = crib.missing_deep_vectors();
    missing.truncate(CAPACITY);
    if missing.is_empty() {
        return;
    }
    let cache = state_folder().map(|state| VectorCache::new(&state, &**encoder));
    let (sender, embedded) = mpsc::channel();
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(missing.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, missing, next) = (sender.clone(), &missing, &next);
            scope.spawn(move || embed(&**encoder, missing, next, &sender));
        }
        drop(sender);
        collect(&embedded, deep, cache.as_ref(), name, missing.len());
    });
}

/// Embeds texts until there are no more.
fn embed(
    encoder: &dyn TextEncoder,
    texts: &[ToolText],
    next: &AtomicUsize,
    sender: &mpsc::Sender<KeyedVector>,
) {
    while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
        if sender.send((text.key, encoder.embed_tool(&text.text))).is_err() {
            return;
        }
    }
}

/// Inserts and saves the vectors as they arrive.
fn collect(
    embedded: &mpsc::Receiver<KeyedVector>,
    deep: &DeepVectors,
    cache: Option<&VectorCache>,
    name: &str,
    total: usize,
) {
    let begin = Instant::now();
    let mut progress = None;
    let mut fresh: Vec<KeyedVector> = Vec::new();
    let save = |fresh: &mut Vec<KeyedVector>| {
        deep.insert(fresh.iter().cloned());
        if let Some(cache) = cache {
            cache.append(fresh);
        }
        fresh.clear();
    };
    for (done, vector) in embedded.iter().enumerate() {
        fresh.push(vector);
        if fresh.len() == SAVED_AT_ONCE {
            save(&mut fresh);
        }
        if begin.elapsed() > SILENT {
            let bar = progress.get_or_insert_with(|| ProgressBar::on_stderr(name, total));
            bar.advance_to(done + 1);
        }
    }
    save(&mut fresh);
    if let Some(progress) = progress {
        progress.clear();
    }
}
