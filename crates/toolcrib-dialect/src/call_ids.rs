//! Generates ids for calls that have none.
//!
//! Some local servers omit call ids, but Chat Completions, Responses and Messages require every result to name its
//! call. The ids that a client sends cannot be used, because clients invent ids, omit them or send empty ones. So when
//! a turn is restored from a record, a call without an id and its result both get the id that was generated here. The
//! client never sees generated ids.

use crate::api::Api;

/// Generates the ids of one turn. An id depends on the conversation up to this turn and on the number of ids generated
/// in the turn so far, so it is unique within the conversation.
#[derive(Debug, Clone)]
pub(crate) struct CallIdGenerator {
    seed: [u8; 32],
    count: u32,
    /// The ids that were generated in the current round.
    generated: Vec<GeneratedId>,
}

/// A generated id, and the name that its call has upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GeneratedId {
    pub(crate) name: String,
    pub(crate) id: String,
}

impl CallIdGenerator {
    /// Creates the generator for one turn. Returns `None` if the API does not require ids.
    pub(crate) fn new(api: Api, seed: [u8; 32]) -> Option<Self> {
        (api != Api::Gemini).then(|| Self { seed, count: 0, generated: Vec::new() })
    }

    /// Generates an id for the next call that arrived without one. `name` is the name that the call has upstream.
    pub(crate) fn generate(&mut self, name: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed).update(&self.count.to_le_bytes());
        self.count += 1;
        let id = format!("call_{}", &hasher.finalize().to_hex()[..24]);
        self.generated.push(GeneratedId { name: name.to_owned(), id: id.clone() });
        id
    }

    /// Removes and returns the ids that were generated in the round that just ended.
    pub(crate) fn take_round(&mut self) -> Vec<GeneratedId> {
        std::mem::take(&mut self.generated)
    }
}

/// Removes and returns the first id that was generated for a call of this name.
pub(crate) fn take_for(generated: &mut Vec<GeneratedId>, name: &str) -> Option<String> {
    let at = generated.iter().position(|generated| generated.name == name)?;
    Some(generated.remove(at).id)
}
