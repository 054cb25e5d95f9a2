//! The listing of deferred tools that a conversation has seen.

use std::collections::BTreeSet;

use crate::listing::{Listing, ListingPlacement};
use crate::policy::Deferral;

/// The listing that a conversation has seen. It never changes, because it is part of the cached prompt prefix. Later
/// changes of the catalog are announced in a message.
#[derive(Debug, Clone)]
pub(crate) struct FrozenListing {
    pub(crate) listing: Listing,
    /// Which tools were deferred when it was written.
    pub(crate) deferral: Deferral,
    /// The names of the tools in it, including those that its form does not spell out.
    pub(crate) listed: BTreeSet<String>,
    /// The names that the model knows, from the listing or an announcement.
    pub(crate) known: BTreeSet<String>,
    pub(crate) placement: ListingPlacement,
}

/// Whether the listing was sent in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListingMessage {
    /// No such message was sent.
    #[default]
    NotSent,
    /// It was sent and is still valid.
    Sent,
    /// A later message withdrew it.
    Withdrawn,
}

impl FrozenListing {
    /// Whether the listing was sent as a message rather than as part of a tool description.
    pub(crate) fn is_message(&self) -> bool {
        self.placement == ListingPlacement::Message
    }

    /// Forgets the announcements that were sent after the listing, so that they are sent again.
    pub(crate) fn forget_announced(&mut self) {
        self.known.clone_from(&self.listed);
    }
}
