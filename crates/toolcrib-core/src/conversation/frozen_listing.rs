//! The listing of deferred tools that a conversation has seen.

use std::collections::BTreeSet;

use crate::listing::{Listing, ListingPlacement};
use crate::policy::Deferral;

/// The listing that a conversation has seen. It never changes, because it is part of the cached prefix;
/// later changes of the catalog are announced in a message.
#[derive(Debug, Clone)]
pub(crate) struct FrozenListing {
    pub(crate) listing: Listing,
    /// How much was deferred when it was made.
    pub(crate) deferral: Deferral,
    /// The names it was made of.
    pub(crate) listed: BTreeSet<String>,
    /// The names the model knows of by now, listed or announced.
    pub(crate) known: BTreeSet<String>,
    pub(crate) placement: ListingPlacement,
}

/// Whether the conversation has a message with the listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListingMessage {
    /// No such message was sent.
    #[default]
    NotSent,
    /// It was sent, and holds.
    Sent,
    /// It was withdrawn by a later message.
    Withdrawn,
}

impl FrozenListing {
    /// Whether it is a message, and not a part of the prompt.
    pub(crate) fn is_message(&self) -> bool {
        self.placement == ListingPlacement::Message
    }

    /// Treats later announcements as not sent yet.
    pub(crate) fn forget_announced(&mut self) {
        self.known.clone_from(&self.listed);
    }
}
