//! What is stored between requests: hidden rounds, and everything else that the client does not see.
//!
//! A client's next request contains what the client saw. What it did not see, such as a hidden search or a call that
//! was wrapped in `tool_call`, is kept in a [`TurnRecord`]: the history entries of one turn of the model, as the
//! upstream sent and received them. A record never changes, so replicas that share a store cannot race.
//! `records_to_store` in `turn/recording.rs` decides whether a turn is recorded and what its record contains;
//! `record_keys` computes the keys under which records are stored.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::history_segments::Speaker;
use crate::mode::Mode;
use crate::record_keys::RecordKeys;
use crate::request::Request;

/// Maximum size of the entries in a record, in bytes.
const MAX_RECORD_BYTES: usize = 4 << 20;

/// What is stored of one turn of the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    /// The mode of the turn.
    pub(crate) mode: Mode,
    /// Whether the tools passed through: nothing was deferred.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) passed: bool,
    /// Whether Toolcrib's own tools had their alternative names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) second_names: bool,
    /// The history entries of the turn: hidden rounds, and the model's final output.
    pub(crate) entries: Vec<Box<RawValue>>,
    /// The ids of the calls that the client received, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<Option<String>>,
    /// For each of these calls without an id, the id that was generated for it. The id is in `entries`; the client does
    /// not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made_ids: Vec<Option<String>>,
    /// Answers to those calls of the turn that the client does not know about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<HiddenAnswer>,
    /// Tools whose schemas were shown in the turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) revealed: Vec<String>,
    /// Tools that were called in the turn although their schemas had not been shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blind: Vec<String>,
    /// Tools that are sent in full from this turn on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) loaded: Vec<String>,
    /// A hash of the listing that the conversation contains as a message, if the API stores the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) announced: Option<String>,
    /// The id under which the API stores the last response of the turn, if it does. The client may know a different
    /// id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<String>,
}

/// An answer to a call that the client never sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HiddenAnswer {
    /// The id of the call, if it has one.
    pub(crate) id: Option<String>,
    /// The index of the call in its round, starting at 0. Identifies calls without an id.
    #[serde(default)]
    pub(crate) at: usize,
    /// The name that was called.
    pub(crate) name: String,
    /// The text for the model.
    pub(crate) text: String,
    /// Whether the call was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refused: bool,
    /// Tools that the answer loads by reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) references: Vec<ReferencedTool>,
}

/// A tool that an answer loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReferencedTool {
    pub(crate) name: String,
    /// The definition, as JSON text.
    pub(crate) definition: String,
}

impl HiddenAnswer {
    /// Tells the model that no further search is answered in this turn.
    pub(crate) fn mark_as_last(&mut self) {
        let notice =
            "This was the last search of this turn: go on with the tools you have, or answer.";
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text = format!("{}{gap}{notice}", self.text);
    }
}

impl TurnRecord {
    /// Whether these entries fit into a record. No store accepts a larger one, so such a turn is not recorded.
    pub(crate) fn has_room<'a>(entries: impl Iterator<Item = &'a String>) -> bool {
        entries.map(String::len).sum::<usize>() <= MAX_RECORD_BYTES
    }

    /// Returns the ids under which the upstream knows the client's calls, in order.
    pub(crate) fn upstream_ids(&self) -> Vec<Option<String>> {
        let generated = self.made_ids.iter().chain(std::iter::repeat(&None));
        let ids = self.calls.iter().zip(generated);
        ids.map(|(given, generated)| given.as_ref().or(generated.as_ref()).cloned()).collect()
    }

    /// Serialises the record for the store.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a stored record. A record that cannot be read is treated like a missing one, and costs no more.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The records that a store has for a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    /// One for each turn of the model, in order; `None` if the store has none.
    pub(crate) turns: Vec<Option<TurnRecord>>,
    /// The record of the stored response that the request continues.
    pub(crate) previous: Option<TurnRecord>,
}

impl Records {
    /// Reads what the store returned for [`RecordKeys::to_load`], in the same order.
    pub(crate) fn from_store(
        keys: &RecordKeys,
        request: &Request,
        found: Vec<Option<Vec<u8>>>,
    ) -> Self {
        let mut found = found.into_iter();
        let mut next = || found.next().flatten().and_then(|bytes| TurnRecord::from_bytes(&bytes));
        // Whether the client changed ids in an earlier turn.
        let mut changes_ids = false;
        let turns = request.segments.iter().filter(|segment| segment.speaker == Speaker::Model);
        let turns = turns.take(keys.turn_count()).map(|turn| {
            // Both results are read even if only one is used, because the results for all turns form one sequence.
            let (strict, loose) = (next(), next());
            strict.or_else(|| {
                let loose = loose?;
                changes_ids |= has_rewritten_ids(&loose.calls, &turn.call_ids);
                changes_ids.then_some(loose)
            })
        });
        let turns = turns.collect();
        let previous = if keys.has_previous() { next() } else { None };
        Self { turns, previous }
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &TurnRecord> {
        self.turns.iter().flatten().chain(&self.previous)
    }

    /// Returns the mode of the last turn in which tools were deferred.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.all().rfind(|record| !record.passed).map(|record| record.mode)
    }

    /// Whether the conversation uses the alternative names of Toolcrib's own tools.
    pub(crate) fn second_names(&self) -> bool {
        self.all().next_back().is_some_and(|record| record.second_names)
    }

    /// Returns the tools that were shown, in the order in which they were last loaded.
    pub(crate) fn revealed(&self) -> Vec<String> {
        unique_keeping_last(self.all().flat_map(|record| &record.revealed))
    }

    /// Returns the tools that were shown, or called without having been shown.
    pub(crate) fn accounted(&self) -> Vec<String> {
        unique_keeping_first(
            self.all().flat_map(|record| record.revealed.iter().chain(&record.blind)),
        )
    }

    /// Returns the tools that are sent in full.
    pub(crate) fn loaded(&self) -> Vec<String> {
        unique_keeping_first(self.all().flat_map(|record| &record.loaded))
    }
}

/// Whether the client replaced the provider's ids with ids of its own, which are recognised by their different form. A
/// different id of the same form may belong to another conversation, whose record must not be used.
fn has_rewritten_ids(given: &[Option<String>], echoed: &[Option<String>]) -> bool {
    /// Returns the form of an id: the part before its random part, and its length.
    fn form(id: &str) -> (&str, usize) {
        let start = id.rfind(['_', '-', ':']).map_or(0, |at| at + 1);
        (&id[..start], id.len())
    }
    given.iter().zip(echoed).any(|(given, echoed)| match (given, echoed) {
        (Some(given), Some(echoed)) => form(given) != form(echoed),
        (given, echoed) => given != echoed,
    })
}

/// Returns each name once, at its first position.
fn unique_keeping_first<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

/// Returns each name once, at its last position.
pub(crate) fn unique_keeping_last<'a>(
    names: impl DoubleEndedIterator<Item = &'a String>,
) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut kept: Vec<String> = names.rev().filter(|name| seen.insert(*name)).cloned().collect();
    kept.reverse();
    kept
}
