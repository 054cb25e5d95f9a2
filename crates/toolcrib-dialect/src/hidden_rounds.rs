//! Records of what the client does not see, such as hidden rounds. They are stored between requests.
//!
//! A client's next request contains only what the client saw. Everything else, such as a hidden search or a call that
//! was wrapped in `tool_call`, is kept in a [`TurnRecord`]: the history entries of one turn of the model, as the
//! upstream sent and received them. A record never changes, so replicas that share a store cannot race.
//!
//! `records_to_store` in `turn/recording.rs` decides whether a turn is recorded and what its record contains.
//! `record_keys` computes the keys under which records are stored.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::history_segments::Speaker;
use crate::mode::Mode;
use crate::record_keys::RecordKeys;
use crate::request::Request;

/// Maximum total size of the entries in a record, in bytes.
const MAX_RECORD_BYTES: usize = 4 << 20;

/// The record of one turn of the model, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    /// The mode in which the turn deferred tools.
    pub(crate) mode: Mode,
    /// Whether the client's tools were sent unchanged, so that nothing was deferred.
    #[serde(default, rename = "passed", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) nothing_deferred: bool,
    /// Whether Toolcrib's own tools were sent under their alternative names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) second_names: bool,
    /// The history entries of the turn: hidden rounds, and the model's final output.
    pub(crate) entries: Vec<Box<RawValue>>,
    /// The ids of the calls that the client received, in order. `None` for a call without an id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<Option<String>>,
    /// For each call in `calls` that has no id, the id that was generated for it. The call has this id in `entries`,
    /// but the client does not know it.
    #[serde(default, rename = "made_ids", skip_serializing_if = "Vec::is_empty")]
    pub(crate) generated_ids: Vec<Option<String>>,
    /// Answers to those calls of the turn that were hidden from the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<HiddenAnswer>,
    /// Tools whose schemas the model was shown in this turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) revealed: Vec<String>,
    /// Tools that the model called in this turn without having been shown their schemas.
    #[serde(default, rename = "blind", skip_serializing_if = "Vec::is_empty")]
    pub(crate) unseen_calls: Vec<String>,
    /// Tools that are sent in full from this turn on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) loaded: Vec<String>,
    /// A hash of the announcement, which is the listing of deferred tools as a message. Set if the API stores the
    /// conversation, and with it the announcement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) announced: Option<String>,
    /// The id of the turn's last response, if the API stores responses. The client may know a different id.
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
    /// The tool name in the call.
    pub(crate) name: String,
    /// The text of the answer, for the model.
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refused: bool,
    /// Tools that the answer loads by reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) references: Vec<ReferencedTool>,
}

/// A tool that an answer loads by reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReferencedTool {
    pub(crate) name: String,
    /// The definition, as JSON text.
    pub(crate) definition: String,
}

impl HiddenAnswer {
    /// Adds a notice for the model that no further search will be answered in this turn.
    pub(crate) fn mark_as_last(&mut self) {
        let notice =
            "This was the last search of this turn: go on with the tools you have, or answer.";
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text = format!("{}{gap}{notice}", self.text);
    }
}

impl TurnRecord {
    /// Whether these entries are small enough for a record. No store accepts a larger record, so a larger turn is not
    /// recorded.
    pub(crate) fn has_room<'a>(entries: impl Iterator<Item = &'a String>) -> bool {
        entries.map(String::len).sum::<usize>() <= MAX_RECORD_BYTES
    }

    /// Returns the upstream's ids of the calls that the client received, in order.
    pub(crate) fn upstream_ids(&self) -> Vec<Option<String>> {
        let generated = self.generated_ids.iter().chain(std::iter::repeat(&None));
        let ids = self.calls.iter().zip(generated);
        ids.map(|(given, generated)| given.as_ref().or(generated.as_ref()).cloned()).collect()
    }

    /// Serialises the record for the store.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a stored record. A record that cannot be read has the same effect as a missing record.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The records of a conversation that were found in the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    /// The record of each turn of the model, in order. `None` for a turn without a record.
    pub(crate) turns: Vec<Option<TurnRecord>>,
    /// The record of the stored response from which the request continues, if it continues from one.
    pub(crate) previous: Option<TurnRecord>,
}

impl Records {
    /// Reads the results of looking up [`RecordKeys::to_load`]. `found` has the same order as the keys.
    pub(crate) fn from_store(
        keys: &RecordKeys,
        request: &Request,
        found: Vec<Option<Vec<u8>>>,
    ) -> Self {
        let mut found = found.into_iter();
        let mut next = || found.next().flatten().and_then(|bytes| TurnRecord::from_bytes(&bytes));
        // Whether the client changed the ids of any turn so far. Only in that case is a record used that matches only
        // if ids are ignored.
        let mut changes_ids = false;
        let turns = request.segments.iter().filter(|segment| segment.speaker == Speaker::Model);
        let turns = turns.take(keys.turn_count()).map(|turn| {
            // Each turn has two results in the sequence, so both must be read even if only one of them is used.
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
        self.all().rfind(|record| !record.nothing_deferred).map(|record| record.mode)
    }

    /// Whether the conversation uses the alternative names of Toolcrib's own tools.
    pub(crate) fn second_names(&self) -> bool {
        self.all().next_back().is_some_and(|record| record.second_names)
    }

    /// Returns the tools whose schemas the model was shown, in the order in which they were last shown.
    pub(crate) fn revealed(&self) -> Vec<String> {
        unique_keeping_last(self.all().flat_map(|record| &record.revealed))
    }

    /// Returns the tools whose schemas the model was shown, and the tools that the model called without having been
    /// shown their schemas.
    pub(crate) fn revealed_or_called(&self) -> Vec<String> {
        unique_keeping_first(
            self.all().flat_map(|record| record.revealed.iter().chain(&record.unseen_calls)),
        )
    }

    /// Returns the tools that must be sent in full because a recorded turn needed them in full.
    pub(crate) fn loaded(&self) -> Vec<String> {
        unique_keeping_first(self.all().flat_map(|record| &record.loaded))
    }
}

/// Whether the client replaced the provider's ids with ids of its own. This is assumed if an id in `echoed` has another
/// form than the same call's id in `given`, or if only one of the two exists. If the two ids differ but have the same
/// form, the record may belong to another conversation and must not be used.
fn has_rewritten_ids(given: &[Option<String>], echoed: &[Option<String>]) -> bool {
    /// Returns the form of an id: the text before its random part, and the length of the complete id.
    fn form(id: &str) -> (&str, usize) {
        let start = id.rfind(['_', '-', ':']).map_or(0, |at| at + 1);
        (&id[..start], id.len())
    }
    given.iter().zip(echoed).any(|(given, echoed)| match (given, echoed) {
        (Some(given), Some(echoed)) => form(given) != form(echoed),
        (given, echoed) => given != echoed,
    })
}

/// Removes duplicates. Each name keeps its first position.
fn unique_keeping_first<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

/// Removes duplicates. Each name keeps its last position.
pub(crate) fn unique_keeping_last<'a>(
    names: impl DoubleEndedIterator<Item = &'a String>,
) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut kept: Vec<String> = names.rev().filter(|name| seen.insert(*name)).cloned().collect();
    kept.reverse();
    kept
}
