//! What must outlive a request.
//!
//! A client's next request has in it what the client saw. What it did not see, hidden rounds and
//! wrapped calls, is kept in a [`TurnRecord`]: the entries that stand for one turn of the model, as they went
//! up and came down. A record never changes, so replicas that share a store cannot race. Its key is a
//! chain: who calls, what the conversation began with, what the model said in each turn up to this
//! one, and the question it answered. All of it is taken from what the client echoes, and none of it
//! from what clients are known to change: white space, markers, arguments spelled anew.
//!
//! A record has two keys. The strict one has the ids of calls in it: a turn with a unique id is found by its
//! own words and ids alone, so that a client that shortens its history still finds it; any other turn by the
//! chain. The loose key is the chain without ids, for clients that invent ids where there were none, add
//! to them or replace them. Two conversations that differ only in their ids share it, so a record found by it
//! counts only if the client's ids are not of the form that the provider gave ([`is_rewritten`]): otherwise
//! it may be another conversation's. The client's results are put under the record's ids.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::Api;
use crate::fingerprint::Fingerprint;
use crate::mode::Mode;
use crate::request::{Request, Speaker};

/// Where a record is kept: a hash that tells nothing of what it was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey(pub [u8; 32]);

/// Where the records of a conversation are.
#[derive(Debug, Clone)]
pub(crate) struct RecordKeys {
    caller: [u8; 32],
    api: Api,
    /// Keys of each turn of the model, in order: the strict one, the loose one.
    turns: Vec<[RecordKey; 2]>,
    previous: Option<RecordKey>,
    /// With ids, and without.
    strict: Chain,
    loose: Chain,
}

/// What was said up to the turn that is to come.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    said: [u8; 32],
    /// The question that the turn answers.
    question: [u8; 32],
}

impl Chain {
    fn add(&mut self, speaker: Speaker, hash: [u8; 32], is_first: bool) {
        match speaker {
            Speaker::Client => {
                self.question = hash;
                if is_first {
                    self.said = hash;
                }
            }
            Speaker::Model => self.said = hashed(&[&self.said, &hash]),
        }
    }
}

impl RecordKeys {
    /// Where the records of a request's conversation are, for this caller.
    pub(crate) fn of(request: &Request, caller: [u8; 32]) -> Self {
        let api = request.api;
        let mut record_keys = Self {
            caller,
            api,
            turns: Vec::new(),
            previous: None,
            strict: Chain::default(),
            loose: Chain::default(),
        };
        record_keys.previous = request.previous.as_ref().map(|kept| record_keys.response(&kept.id));
        for (at, segment) in request.segments.iter().enumerate() {
            if segment.speaker == Speaker::Model {
                let keys = record_keys.turn(&segment.fingerprint);
                record_keys.turns.push(keys);
            }
            record_keys.strict.add(segment.speaker, segment.fingerprint.strict, at == 0);
            record_keys.loose.add(segment.speaker, segment.fingerprint.loose, at == 0);
        }
        record_keys
    }

    /// Every key to look up, in one go.
    pub(crate) fn keys(&self) -> Vec<RecordKey> {
        self.turns.iter().flatten().copied().chain(self.previous).collect()
    }

    /// The keys of the turn that is to come, once it is known what the model said in it.
    pub(crate) fn turn(&self, said: &Fingerprint) -> [RecordKey; 2] {
        let chained = |chain: &Chain, hash: [u8; 32]| {
            self.key(b"turn", &[&chain.said, &chain.question, &hash])
        };
        let strict = if said.has_unique_id {
            self.key(b"said", &[&said.strict])
        } else {
            chained(&self.strict, said.strict)
        };
        [strict, chained(&self.loose, said.loose)]
    }

    /// A hash of the conversation up to the turn that is to come: the same whatever ids the client uses.
    pub(crate) fn seed(&self) -> [u8; 32] {
        let previous = self.previous.map(|key| key.0).unwrap_or_default();
        self.key(b"ids", &[&self.loose.said, &self.loose.question, &previous]).0
    }

    /// The key of a response that the API keeps.
    pub(crate) fn response(&self, id: &str) -> RecordKey {
        self.key(b"response", &[blake3::hash(id.as_bytes()).as_bytes()])
    }

    fn key(&self, kind: &[u8], parts: &[&[u8; 32]]) -> RecordKey {
        let kind = blake3::hash(kind);
        let api = blake3::hash(self.api.name().as_bytes());
        let mut all: Vec<&[u8; 32]> = vec![kind.as_bytes(), api.as_bytes(), &self.caller];
        all.extend(parts);
        RecordKey(hashed(&all))
    }
}

fn hashed(parts: &[&[u8; 32]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(*part);
    }
    *hasher.finalize().as_bytes()
}

/// Maximum size of the entries in a record, in bytes.
const BYTES: usize = 4 << 20;

/// What is kept of one turn of the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    /// How tools were deferred in it.
    pub(crate) mode: Mode,
    /// Whether nothing was deferred in it after all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) passed: bool,
    /// Whether our tools went by their second names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) second_names: bool,
    /// The entries that stand for it: hidden rounds, and what the model said in the end.
    pub(crate) entries: Vec<Box<RawValue>>,
    /// The ids of the calls that the client got, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<Option<String>>,
    /// For each of these calls, the id that was made for it if it has none. It is in `entries`, and the client does
    /// not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made_ids: Vec<Option<String>>,
    /// Answers to calls in it that the client knows nothing of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<HiddenAnswer>,
    /// Tools whose schemas were shown in it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) revealed: Vec<String>,
    /// Tools that were called in it although nothing had shown them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blind: Vec<String>,
    /// Tools that are sent in full from this turn on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) loaded: Vec<String>,
    /// A hash of the listing that the conversation has as a message, where the API keeps the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) announced: Option<String>,
    /// The response that the API keeps it under, where the client knows another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<String>,
}

/// The answer to a call that the client never sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HiddenAnswer {
    /// The call's id, where it has one.
    pub(crate) id: Option<String>,
    /// Which call of its round it answers, counted from none: for calls without an id.
    #[serde(default)]
    pub(crate) at: usize,
    /// The name that was called.
    pub(crate) name: String,
    /// What the model reads.
    pub(crate) text: String,
    /// Whether it called wrongly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refused: bool,
    /// Tools that are loaded by reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) references: Vec<ReferencedTool>,
}

/// A tool that an answer loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReferencedTool {
    pub(crate) name: String,
    /// Its definition, as JSON text.
    pub(crate) definition: String,
}

impl HiddenAnswer {
    /// Says that no other follows in this turn.
    pub(crate) fn close(&mut self) {
        let words =
            "This was the last search of this turn: go on with the tools you have, or answer.";
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text = format!("{}{gap}{words}", self.text);
    }
}

impl TurnRecord {
    /// Whether a record has room for these entries: no store takes a larger one, and its turn is not recorded.
    pub(crate) fn has_room<'a>(entries: impl Iterator<Item = &'a String>) -> bool {
        entries.map(String::len).sum::<usize>() <= BYTES
    }

    /// The ids that the upstream knows the client's calls by, in order.
    pub(crate) fn upstream_ids(&self) -> Vec<Option<String>> {
        let made = self.made_ids.iter().chain(std::iter::repeat(&None));
        self.calls
            .iter()
            .zip(made)
            .map(|(given, made)| given.as_ref().or(made.as_ref()).cloned())
            .collect()
    }

    /// A record as it is stored.
    pub(crate) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// A stored record; `None` for what is none, which costs no more than a lost one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// What a store had of a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    /// For each turn of the model, in order.
    pub(crate) turns: Vec<Option<TurnRecord>>,
    /// Of the response that is continued.
    pub(crate) previous: Option<TurnRecord>,
}

impl Records {
    /// Puts what was found under [`RecordKeys::keys`] in its place.
    pub(crate) fn found(
        record_keys: &RecordKeys,
        request: &Request,
        found: Vec<Option<Vec<u8>>>,
    ) -> Self {
        let mut found = found.into_iter();
        let mut next = || found.next().flatten().and_then(|bytes| TurnRecord::read(&bytes));
        // Whether the client was seen to change ids in an earlier turn.
        let mut changes_ids = false;
        let said = request.segments.iter().filter(|segment| segment.speaker == Speaker::Model);
        let turns = record_keys.turns.iter().zip(said).map(|(_, said)| {
            // Both are taken, whichever counts: they stand in one row.
            let (strict, loose) = (next(), next());
            strict.or_else(|| {
                let loose = loose?;
                changes_ids |= is_rewritten(&loose.calls, &said.call_ids);
                changes_ids.then_some(loose)
            })
        });
        let turns = turns.collect();
        let previous = record_keys.previous.and_then(|_| next());
        Self { turns, previous }
    }

    fn records(&self) -> impl DoubleEndedIterator<Item = &TurnRecord> {
        self.turns.iter().flatten().chain(&self.previous)
    }

    /// How the conversation deferred last, if it did.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.records().rfind(|record| !record.passed).map(|record| record.mode)
    }

    /// Whether it knows our tools by their second names.
    pub(crate) fn second_names(&self) -> bool {
        self.records().next_back().is_some_and(|record| record.second_names)
    }

    /// The tools that were shown in it, in the order in which they were last loaded.
    pub(crate) fn revealed(&self) -> Vec<String> {
        newest(self.records().flat_map(|record| &record.revealed))
    }

    /// The tools that were shown in it, or called although nothing had shown them.
    pub(crate) fn accounted(&self) -> Vec<String> {
        in_order(self.records().flat_map(|record| record.revealed.iter().chain(&record.blind)))
    }

    /// The tools that are sent in full by now.
    pub(crate) fn loaded(&self) -> Vec<String> {
        in_order(self.records().flat_map(|record| &record.loaded))
    }
}

/// Whether the client's ids have a different form from those that the provider gave, and so are the client's
/// own. An id of the same form may be one that the provider gave in another conversation.
fn is_rewritten(given: &[Option<String>], echoed: &[Option<String>]) -> bool {
    /// The part before the random one, and the length.
    fn form(id: &str) -> (&str, usize) {
        let start = id.rfind(['_', '-', ':']).map_or(0, |at| at + 1);
        (&id[..start], id.len())
    }
    given.iter().zip(echoed).any(|(given, echoed)| match (given, echoed) {
        (Some(given), Some(echoed)) => form(given) != form(echoed),
        (given, echoed) => given != echoed,
    })
}

/// Each name once, where it came first.
fn in_order<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

/// Each name once, where it came last.
pub(crate) fn newest<'a>(names: impl DoubleEndedIterator<Item = &'a String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut kept: Vec<String> = names.rev().filter(|name| seen.insert(*name)).cloned().collect();
    kept.reverse();
    kept
}
