//! Vectors from a transformer, shared by all cribs of a program.
//!
//! The vector table embeds a tool in microseconds. A transformer ranks better, but it takes milliseconds for each tool.
//! So these "deep" vectors are never computed in a search: until a tool has one, its similarity is estimated from the
//! table. This crate starts no threads and reads no files. The program that owns the cribs computes the missing
//! vectors, or reads them from a cache, and inserts them here. All cribs find them in their next search.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use toolcrib_embed::{GeneralTypes, QuantisedVector};

/// Embeds texts with a transformer. With the feature `deep`, [`Encoder`](toolcrib_embed::Encoder) implements it.
pub trait TextEncoder: fmt::Debug + Send + Sync {
    /// The number of dimensions of every vector.
    fn dims(&self) -> usize;

    /// Identifies the weights. Vectors of different weights must not be mixed.
    fn id(&self) -> [u8; 16];

    /// Embeds the text of a tool.
    fn embed_tool(&self, text: &str) -> QuantisedVector;

    /// Embeds a query, and each of its needs, which are byte ranges of the query. Returns `None` if the encoder does not
    /// know the language of the query. The query is then ranked without the encoder.
    fn embed_query(&self, text: &str, needs: &[Range<usize>]) -> Option<EncodedQuery>;

    /// The types of general tools that can be recognised by their vectors. Their classifiers must have [`dims`](Self::dims)
    /// dimensions, or no type is used.
    fn general_types(&self) -> Option<&GeneralTypes> {
        None
    }
}

/// The vectors of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedQuery {
    /// The vector of the entire query.
    pub whole: QuantisedVector,
    /// The vector of each need. It is `None` if the encoder did not read that far.
    pub needs: Vec<Option<QuantisedVector>>,
}

/// Identifies the text of a tool: a hash of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextKey(pub [u8; 16]);

/// The text of a tool that has no deep vector yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolText {
    /// The key under which the vector must be inserted.
    pub key: TextKey,
    /// The text to embed.
    pub text: String,
}

impl ToolText {
    pub(super) fn new(text: String) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        Self { key: TextKey(key), text }
    }
}

/// A callback that gets the texts of tools that need a deep vector. It must return quickly, for example by adding the
/// texts to the queue of a background thread. It may get the same text more than once.
///
/// It also gets the store into which the vectors must be inserted.
pub type RequestVectors = dyn Fn(&DeepVectors, Vec<ToolText>) + Send + Sync;

/// An encoder and the deep vectors that were computed with it so far. Clones share them.
///
/// ```
/// use toolcrib_core::rank::DeepVectors;
/// // Without an encoder, tools are ranked with the vector table alone.
/// assert!(!DeepVectors::default().is_available());
/// ```
#[derive(Clone, Default)]
pub struct DeepVectors(Option<Arc<Shared>>);

struct Shared {
    encoder: Arc<dyn TextEncoder>,
    /// Maximum number of vectors.
    capacity: usize,
    request: Option<Box<RequestVectors>>,
    stored: Mutex<Stored>,
    /// The number of insertions so far. An index of a catalog is up to date if it was built at this version.
    version: AtomicU64,
}

#[derive(Default)]
struct Stored {
    vectors: FxHashMap<TextKey, QuantisedVector>,
    /// The keys in the order of insertion.
    order: VecDeque<TextKey>,
}

impl DeepVectors {
    /// No encoder.
    pub(crate) const NONE: Self = Self(None);

    /// Creates an empty store for at most `capacity` vectors of this encoder. If it is full, the oldest are removed. An
    /// index over a catalog that already has them keeps them.
    pub fn new(encoder: Arc<dyn TextEncoder>, capacity: usize) -> Self {
        Self::build(encoder, capacity, None)
    }

    /// Like [`new`](Self::new), and `request` is called with the texts of tools that need a vector.
    pub fn requesting(
        encoder: Arc<dyn TextEncoder>,
        capacity: usize,
        request: Box<RequestVectors>,
    ) -> Self {
        Self::build(encoder, capacity, Some(request))
    }

    fn build(
        encoder: Arc<dyn TextEncoder>,
        capacity: usize,
        request: Option<Box<RequestVectors>>,
    ) -> Self {
        let (stored, version) = (Mutex::default(), AtomicU64::new(0));
        Self(Some(Arc::new(Shared { encoder, capacity, request, stored, version })))
    }

    /// Whether there is an encoder.
    pub fn is_available(&self) -> bool {
        self.0.is_some()
    }

    /// The encoder.
    pub fn encoder(&self) -> Option<&Arc<dyn TextEncoder>> {
        Some(&self.0.as_ref()?.encoder)
    }

    /// The types of general tools that the encoder can recognise.
    pub(super) fn general_types(&self) -> Option<&GeneralTypes> {
        let encoder = &self.0.as_ref()?.encoder;
        encoder.general_types().filter(|types| types.have_dims(encoder.dims()))
    }

    /// Adds vectors. Vectors with the wrong number of dimensions are ignored.
    pub fn insert(&self, vectors: impl IntoIterator<Item = (TextKey, QuantisedVector)>) {
        let Some(shared) = &self.0 else { return };
        let dims = shared.encoder.dims();
        let mut stored = shared.stored();
        for (key, vector) in vectors.into_iter().filter(|(_, vector)| vector.dims() == dims) {
            if stored.vectors.insert(key, vector).is_none() {
                stored.order.push_back(key);
            }
        }
        while stored.order.len() > shared.capacity {
            if let Some(oldest) = stored.order.pop_front() {
                stored.vectors.remove(&oldest);
            }
        }
        shared.version.fetch_add(1, Ordering::Release);
    }

    /// Whether the vector of a text is already here.
    pub fn has(&self, key: &TextKey) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.stored().vectors.contains_key(key))
    }

    /// Calls `visit` with the position and the vector of each key that has one.
    pub(super) fn each(&self, keys: &[TextKey], mut visit: impl FnMut(usize, &QuantisedVector)) {
        let Some(shared) = &self.0 else { return };
        let stored = shared.stored();
        for (at, key) in keys.iter().enumerate() {
            if let Some(vector) = stored.vectors.get(key) {
                visit(at, vector);
            }
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.version.load(Ordering::Acquire))
    }

    /// Whether texts without a vector are passed on, to be embedded.
    pub(super) fn accepts_requests(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.request.is_some())
    }

    pub(super) fn request(&self, texts: Vec<ToolText>) {
        if let Some(request) = self.0.as_ref().and_then(|shared| shared.request.as_ref())
            && !texts.is_empty()
        {
            request(self, texts);
        }
    }
}

impl Shared {
    /// No code panics while it holds the lock, and each insertion leaves the maps consistent, so a poisoned lock is used
    /// as it is.
    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two values are equal if they share their vectors.
impl PartialEq for DeepVectors {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for DeepVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.0.as_ref();
        f.debug_struct("DeepVectors")
            .field("encoder", &shared.map(|shared| &shared.encoder))
            .field("vectors", &shared.map(|shared| shared.stored().vectors.len()))
            .finish_non_exhaustive()
    }
}
