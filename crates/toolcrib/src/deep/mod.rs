//! The deep tier: embeds tools with the transformer, and keeps their vectors on disk.
//!
//! `toolcrib-core` ranks with the deep vectors that exist, and never computes any. Commands that answer one question
//! compute the missing vectors before they answer (`embed_now`). The gateway and the proxy compute them in the
//! background (`background`), so no conversation waits. Both keep the vectors in a file (`vector_cache`), so a tool is
//! embedded only once, even if the process ends or other tools change.

mod background;
mod embed_now;
mod encoder;
mod vector_cache;

pub(crate) use embed_now::embed_missing;
pub(crate) use encoder::{ENCODER_FILE, parse_encoder};

use std::sync::{Arc, LazyLock};

use toolcrib_core::rank::{DeepVectors, TextKey};
use toolcrib_embed::{Encoder, QuantisedVector};

use self::encoder::builtin_encoder;
use self::vector_cache::VectorCache;
use crate::user_folders::state_folder;

/// Maximum number of vectors in memory and in the file. A vector takes about 450 bytes in memory and 412 in the file, and
/// the largest known catalogs have about 10,000 tools.
const CAPACITY: usize = 50_000;

/// When tools without a saved vector are embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Embedding {
    /// The command calls [`embed_missing`] before it ranks.
    BeforeRanking,
    /// Background threads embed tools as soon as they are known.
    InBackground,
}

/// Returns the deep vectors of this encoder, with those of earlier runs.
pub(crate) fn deep_vectors(encoder: Arc<Encoder>, embedding: Embedding) -> DeepVectors {
    let cache = state_folder().map(|state| VectorCache::new(&state, &*encoder));
    let saved = cache.as_ref().map(VectorCache::read).unwrap_or_default();
    let deep = match embedding {
        Embedding::BeforeRanking => DeepVectors::new(encoder, CAPACITY),
        Embedding::InBackground => background::deep_vectors(encoder, cache),
    };
    deep.insert(saved);
    deep
}

/// Returns the deep vectors of the encoder inside the binary, or `None` if this build has none. In the background, all gateways
/// of a process share them.
pub(crate) fn builtin_deep_vectors(embedding: Embedding) -> Option<DeepVectors> {
    static SHARED: LazyLock<Option<DeepVectors>> = LazyLock::new(|| {
        builtin_encoder().map(|encoder| deep_vectors(encoder, Embedding::InBackground))
    });
    match embedding {
        Embedding::BeforeRanking => {
            builtin_encoder().map(|encoder| deep_vectors(encoder, embedding))
        }
        Embedding::InBackground => SHARED.clone(),
    }
}

/// A vector with the key of the text that it was computed from.
type KeyedVector = (TextKey, QuantisedVector);
