//! The state of a conversation, and a bounded set of conversations.
//!
//! A [`Conversation`] belongs to one caller. Conversations share no state, so a tool that was loaded in one of them
//! cannot leak into another. [`Conversations`] keeps the most recently used conversations.

mod frozen_listing;
mod ledger;
mod loop_guard;

pub(crate) use frozen_listing::{FrozenListing, ListingMessage};
pub use ledger::{Ledger, Reveal, TranscriptEntry};
pub(crate) use loop_guard::{LoopGuard, LoopWarning};

use std::num::NonZero;
use std::sync::Arc;

use lru::LruCache;
use rustc_hash::FxBuildHasher;

use crate::disclosure::Disclosure;

/// Default maximum number of reveals that a conversation keeps.
pub const DEFAULT_MAX_REVEALS: usize = 64;
/// Default maximum number of conversations that are kept.
pub const DEFAULT_MAX_CONVERSATIONS: usize = 4_096;

/// What a turn needs to know about the turns before it.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub(crate) ledger: Ledger,
    pub(crate) guard: LoopGuard,
    /// The listing that the model has seen, which does not change any more.
    pub(crate) frozen: Option<FrozenListing>,
    /// Whether the listing was sent to the model in a message of its own.
    pub(crate) listing_message: ListingMessage,
    /// The last disclosure and the hash of its inputs. While the inputs stay the same, this disclosure is returned
    /// again.
    pub(crate) last: Option<(u64, Arc<Disclosure>)>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::with_ledger(Ledger::new(DEFAULT_MAX_REVEALS))
    }
}

impl Conversation {
    /// A new conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// A resumed conversation, with a ledger that was imported or rebuilt from a transcript.
    pub fn with_ledger(ledger: Ledger) -> Self {
        Self {
            ledger,
            guard: LoopGuard::default(),
            frozen: None,
            listing_message: ListingMessage::NotSent,
            last: None,
        }
    }

    /// Makes the next disclosure repeat earlier announcements, including listings that were sent as messages. Call this
    /// if a request was not sent, and after a compaction. A listing that is part of a tool description does not change.
    pub fn announce_again(&mut self) {
        self.last = None;
        if self.listing_message == ListingMessage::Withdrawn {
            self.listing_message = ListingMessage::Sent;
        }
        match &mut self.frozen {
            Some(frozen) if frozen.is_message() => self.frozen = None,
            Some(frozen) => frozen.forget_announced(),
            None => {}
        }
    }

    /// The record of the tools that the model was shown.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// A bounded set of conversations. The least recently used one is evicted first.
///
/// Rejected: evicting the conversation that started first. A long conversation that is still active would then lose its
/// tools because of a thousand short conversations that are already over.
#[derive(Debug)]
pub struct Conversations {
    max_reveals: usize,
    by_key: LruCache<String, Conversation, FxBuildHasher>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_CONVERSATIONS, DEFAULT_MAX_REVEALS)
    }
}

impl Conversations {
    /// Keeps at most `capacity` conversations with at most `max_reveals` reveals each.
    pub fn new(capacity: usize, max_reveals: usize) -> Self {
        let capacity = NonZero::new(capacity).unwrap_or(NonZero::<usize>::MIN);
        Self { max_reveals, by_key: LruCache::with_hasher(capacity, FxBuildHasher) }
    }

    /// The conversation with this key. If there is none, or if it was evicted, a new one is created.
    pub fn get(&mut self, key: &str) -> &mut Conversation {
        let max_reveals = self.max_reveals;
        self.by_key
            .get_or_insert_mut_ref(key, || Conversation::with_ledger(Ledger::new(max_reveals)))
    }

    /// Stores a conversation under this key.
    pub fn put(&mut self, key: &str, conversation: Conversation) {
        self.by_key.put(key.to_owned(), conversation);
    }

    /// The number of conversations.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are no conversations.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
