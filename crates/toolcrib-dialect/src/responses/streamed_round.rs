//! The state of one round of a streamed response.

use crate::dialect::RoundEnd;
use crate::sse::Event;
use crate::usage::Usage;

/// The items of a round, and how it ended.
#[derive(Debug, Default)]
pub(super) struct StreamedRound {
    pub(super) items: Vec<StreamedItem>,
    /// History entries for the upstream, each with the item's index in the upstream's response.
    pub(super) entries: Vec<(u64, String)>,
    /// The index of the item that is held. There is at most one, because all later items wait for it.
    pub(super) held: Option<u64>,
    /// Events that wait for the held item. Each has the upstream's index of the item that it belongs to.
    pub(super) waiting: Vec<(u64, Event)>,
    pub(super) end: Option<RoundEnd>,
    pub(super) usage: Usage,
    pub(super) response: Option<String>,
}

/// An item that is being received.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamedItem {
    /// `index` is the item's index in the upstream's response. If the item is forwarded as it arrives, `client_index`
    /// is its index in the client's response.
    pub(super) index: u64,
    pub(super) client_index: Option<u64>,
    pub(super) done: bool,
}
