//! What is remembered of a conversation, and of how many.
//!
//! One [`Conversation`] belongs to one caller and never meets another's: reveals cannot leak because
//! there is no shared set for them to leak through. [`Conversations`] keeps the most recently used
//! of them.

mod frozen_listing;
mod ledger;
mod loop_guard;

pub(crate) use frozen_listing::{FrozenListing, ListingMessage};
pub use ledger::{Ledger, Reveal, TranscriptEntry};
pub(crate) use loop_guard::{LoopGuard, LoopWarning};

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::disclosure::Disclosure;

/// Reveals a conversation keeps by default.
pub const DEFAULT_MAX_REVEALS: usize = 64;
/// Conversations that are kept by default.
pub const DEFAULT_MAX_CONVERSATIONS: usize = 4_096;

/// Everything a turn needs to know about the turns before it.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub(crate) ledger: Ledger,
    pub(crate) guard: LoopGuard,
    /// The listing the model has seen, which stays as it is.
    pub(crate) frozen: Option<FrozenListing>,
    /// What became of a list that was said in a message.
    pub(crate) listing_message: ListingMessage,
    /// The last disclosure and what it was made from: nothing changed, nothing computed.
    pub(crate) last: Option<(u64, Arc<Disclosure>)>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::with_ledger(Ledger::new(DEFAULT_MAX_REVEALS))
    }
}

impl Conversation {
    /// A conversation that begins.
    pub fn new() -> Self {
        Self::default()
    }

    /// A conversation that goes on: with an imported ledger, or one rebuilt from a transcript.
    pub fn with_ledger(ledger: Ledger) -> Self {
        Self {
            ledger,
            guard: LoopGuard::default(),
            frozen: None,
            listing_message: ListingMessage::NotSent,
            last: None,
        }
    }

    /// Lets the next disclosure announce anew what was announced, whole lists included: for a
    /// request that was not sent, and after a compaction. What stands in the prompt stays.
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

    /// What it has been shown.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// A bounded set of conversations, the least recently used out first.
///
/// By use and not by age: a long conversation that is still going should not lose its tools to a
/// thousand short ones that are over.
#[derive(Debug)]
pub struct Conversations {
    cap: usize,
    reveals: usize,
    clock: u64,
    by_key: FxHashMap<String, (u64, Conversation)>,
    by_use: BTreeMap<u64, String>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_CONVERSATIONS, DEFAULT_MAX_REVEALS)
    }
}

impl Conversations {
    /// Keeps `cap` conversations of at most `reveals` reveals each.
    pub fn new(cap: usize, reveals: usize) -> Self {
        Self {
            cap: cap.max(1),
            reveals,
            clock: 0,
            by_key: FxHashMap::default(),
            by_use: BTreeMap::new(),
        }
    }

    /// The conversation under this key, new if it was not there or was evicted.
    pub fn get(&mut self, key: &str) -> &mut Conversation {
        self.clock += 1;
        match self.by_key.get(key) {
            Some((used, _)) => {
                self.by_use.remove(used);
            }
            None if self.by_key.len() == self.cap => {
                if let Some((_, oldest)) = self.by_use.pop_first() {
                    self.by_key.remove(&oldest);
                }
            }
            None => {}
        }
        self.by_use.insert(self.clock, key.to_owned());
        let fresh = || (0, Conversation::with_ledger(Ledger::new(self.reveals)));
        let (used, conversation) = self.by_key.entry(key.to_owned()).or_insert_with(fresh);
        *used = self.clock;
        conversation
    }

    /// Puts a conversation that was kept elsewhere under this key.
    pub fn put(&mut self, key: &str, conversation: Conversation) {
        *self.get(key) = conversation;
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
