//! The listing of deferred tools that a conversation has seen.

use std::collections::BTreeSet;

use crate::listing::{Listing, ListingPlacement};
use crate::policy::Deferral;

/// The listing that a conversation has seen. It never changes, because it is part of the cached prompt prefix. Later
/// changes of the catalog are announced in a message.
#[derive(Debug, Clone)]
pub(crate) struct FrozenListing {
    pub(crate) listing: Listing,
    /// Which tools were deferred when the listing was written.
    pub(crate) deferral: Deferral,
    /// The names of the tools that the listing covers, including names that it does not spell out.
    pub(crate) listed: BTreeSet<String>,
    /// All names that were listed or announced to the model.
    pub(crate) known: BTreeSet<String>,
    pub(crate) placement: ListingPlacement,
}

/// Whether the listing was sent to the model in a message of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListingMessage {
    /// No message with a listing was sent.
    #[default]
    NotSent,
    /// A message with the listing was sent and is still valid.
    Sent,
    /// A later message withdrew the listing.
    Withdrawn,
}

impl FrozenListing {
    /// Whether the listing was sent as a message rather than as part of a tool description.
    pub(crate) fn is_message(&self) -> bool {
        self.placement == ListingPlacement::Message
    }

    /// Forgets which tools were announced after the listing was sent, so that they are announced again.
    pub(crate) fn forget_announced(&mut self) {
        self.known.clone_from(&self.listed);
    }
}
