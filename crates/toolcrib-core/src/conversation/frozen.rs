//! The listing of deferred tools that a conversation has seen.

use std::collections::BTreeSet;

use crate::listing::{Listing, Place};
use crate::policy::Defers;

/// The listing a conversation has seen. It stays as it is, since it stands in the cached prefix;
/// what changes after it is announced.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    pub(crate) listing: Listing,
    /// How much was deferred when it was made.
    pub(crate) defers: Defers,
    /// The names it was made of.
    pub(crate) listed: BTreeSet<String>,
    /// The names the model knows of by now, listed or announced.
    pub(crate) known: BTreeSet<String>,
    pub(crate) place: Place,
}

/// What became of a list that was said in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Said {
    /// None was.
    #[default]
    No,
    /// It stands in the conversation.
    Yes,
    /// It was taken back.
    Withdrawn,
}

impl Frozen {
    /// Whether it is a message, and not a part of the prompt.
    pub(crate) fn is_message(&self) -> bool {
        self.place == Place::Message
    }

    /// Takes what was announced since as not yet said.
    pub(crate) fn forget_announced(&mut self) {
        self.known.clone_from(&self.listed);
    }
}
