//! One round of a streamed response.

use crate::dialect::RoundEnd;
use crate::sse::Event;
use crate::usage::Usage;

/// The items of a round, and how it ended.
#[derive(Debug, Default)]
pub(super) struct StreamedRound {
    pub(super) items: Vec<StreamedItem>,
    /// History entries for the upstream, by the upstream's index.
    pub(super) entries: Vec<(u64, String)>,
    /// The item that is held and not yet decided about. There is at most one, because all later items wait.
    pub(super) held: Option<u64>,
    /// Events that wait for the held item, each with the upstream's index of its own item.
    pub(super) waiting: Vec<(u64, Event)>,
    pub(super) end: Option<RoundEnd>,
    pub(super) usage: Usage,
    pub(super) response: Option<String>,
}

/// An item that is being received.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamedItem {
    /// The upstream's index for the item, and the client's index if the item is forwarded while it is received.
    pub(super) index: u64,
    pub(super) client_index: Option<u64>,
    pub(super) done: bool,
}
