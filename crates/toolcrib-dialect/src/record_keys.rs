//! The keys under which the records of a conversation are stored.
//!
//! In general, a key is a hash over the caller, the start of the conversation, the model's output in each turn up to
//! this one, and the question that this turn answers. All of this is taken from the history that the client sends back,
//! without the parts that clients are known to change: white space, cache markers, and the formatting of arguments.
//!
//! Each record has two keys:
//!
//! - The strict key includes the ids of calls. If a turn has a unique id, the key is a hash of the caller and of only
//!   this turn's text and ids, so that the record is still found if the client shortens its history. Otherwise the key
//!   is a hash of the complete chain of turns.
//! - The loose key is a hash of the chain without ids. It is for clients that add ids to calls that had none, extend
//!   ids, or replace them. Two conversations that differ only in their ids share the loose key, so a record that is
//!   found by this key is used only if the client is known to rewrite ids (see `has_rewritten_ids` in `hidden_rounds`).

use crate::api::Api;
use crate::fingerprint::SegmentFingerprint;
use crate::history_segments::Speaker;
use crate::request::Request;

/// The key of a record: a hash that reveals nothing about its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey(pub [u8; 32]);

/// The keys of all records of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct RecordKeys {
    caller: [u8; 32],
    api: Api,
    /// The strict and the loose key of each turn of the model, in order.
    turns: Vec<[RecordKey; 2]>,
    /// The key for the stored response from which the request continues, if it continues from one. The record of that
    /// response is stored under this key.
    previous: Option<RecordKey>,
    /// The hashes for strict keys, which include ids.
    strict: Chain,
    /// The hashes for loose keys, which do not include ids.
    loose: Chain,
}

/// Hashes of a conversation up to the turn that is about to start.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// A hash of the start of the conversation and of all turns of the model.
    turns: [u8; 32],
    /// A hash of the question that the next turn answers.
    question: [u8; 32],
}

impl Chain {
    fn add(&mut self, speaker: Speaker, hash: [u8; 32], is_first: bool) {
        match speaker {
            Speaker::Client => {
                self.question = hash;
                if is_first {
                    self.turns = hash;
                }
            }
            Speaker::Model => self.turns = hash_all(&[&self.turns, &hash]),
        }
    }
}

impl RecordKeys {
    /// Computes the keys for the conversation of a caller's request.
    pub(crate) fn new(request: &Request, caller: [u8; 32]) -> Self {
        let mut keys = Self {
            caller,
            api: request.api,
            turns: Vec::new(),
            previous: None,
            strict: Chain::default(),
            loose: Chain::default(),
        };
        keys.previous = request.previous.as_ref().map(|previous| keys.of_response(&previous.id));
        for (at, segment) in request.segments.iter().enumerate() {
            if segment.speaker == Speaker::Model {
                let turn = keys.of_next_turn(&segment.fingerprint);
                keys.turns.push(turn);
            }
            keys.strict.add(segment.speaker, segment.fingerprint.strict, at == 0);
            keys.loose.add(segment.speaker, segment.fingerprint.loose, at == 0);
        }
        keys
    }

    /// Returns all keys to look up in the store: two for each turn, and then the key for the previous response, if
    /// there is one.
    pub(crate) fn to_load(&self) -> Vec<RecordKey> {
        self.turns.iter().flatten().copied().chain(self.previous).collect()
    }

    /// Returns the number of turns of the model that have keys.
    pub(crate) fn turn_count(&self) -> usize {
        self.turns.len()
    }

    /// Whether the request continues from a stored response.
    pub(crate) fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// Returns the strict and the loose key of the next turn, whose content has this fingerprint.
    pub(crate) fn of_next_turn(&self, turn: &SegmentFingerprint) -> [RecordKey; 2] {
        let chained = |chain: &Chain, hash: [u8; 32]| {
            self.key(b"turn", &[&chain.turns, &chain.question, &hash])
        };
        let strict = if turn.has_unique_id {
            self.key(b"said", &[&turn.strict])
        } else {
            chained(&self.strict, turn.strict)
        };
        [strict, chained(&self.loose, turn.loose)]
    }

    /// Returns the key under which the record of a stored response is found. `id` is the id of the response.
    pub(crate) fn of_response(&self, id: &str) -> RecordKey {
        self.key(b"response", &[blake3::hash(id.as_bytes()).as_bytes()])
    }

    /// Returns a hash of the conversation up to the next turn, from which call ids are generated. It does not depend on
    /// the ids that the client uses.
    pub(crate) fn call_id_seed(&self) -> [u8; 32] {
        let previous = self.previous.map(|key| key.0).unwrap_or_default();
        self.key(b"ids", &[&self.loose.turns, &self.loose.question, &previous]).0
    }

    fn key(&self, kind: &[u8], parts: &[&[u8; 32]]) -> RecordKey {
        let kind = blake3::hash(kind);
        let api = blake3::hash(self.api.name().as_bytes());
        let mut all: Vec<&[u8; 32]> = vec![kind.as_bytes(), api.as_bytes(), &self.caller];
        all.extend(parts);
        RecordKey(hash_all(&all))
    }
}

fn hash_all(parts: &[&[u8; 32]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(*part);
    }
    *hasher.finalize().as_bytes()
}
