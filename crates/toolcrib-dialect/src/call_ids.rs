//! Ids for calls that come without one.
//!
//! Some local servers give their calls no ids, while Chat Completions, Responses and Messages want each result to
//! name its call. A client may invent ids, leave them out again, or send empty ones, so whatever it sends cannot be
//! relied upon. In the turns of which a record is put back into the history, such a call and its result both carry an
//! id made here. The client never sees it.

use crate::api::Api;

/// Makes the ids of one turn. They depend on the conversation and on the place of the call in its turn: no two calls
/// of a conversation get the same one.
#[derive(Debug, Clone)]
pub(crate) struct CallIdGenerator {
    seed: [u8; 32],
    count: u32,
    /// Those of the round that is under way.
    generated: Vec<GeneratedId>,
}

/// An id, and the name that its call has upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GeneratedId {
    pub(crate) name: String,
    pub(crate) id: String,
}

impl CallIdGenerator {
    /// `None` for an API in which calls need no ids.
    pub(crate) fn new(api: Api, seed: [u8; 32]) -> Option<Self> {
        (api != Api::Gemini).then(|| Self { seed, count: 0, generated: Vec::new() })
    }

    /// The id of the next call without one.
    pub(crate) fn generate(&mut self, name: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed).update(&self.count.to_le_bytes());
        self.count += 1;
        let id = format!("call_{}", &hasher.finalize().to_hex()[..24]);
        self.generated.push(GeneratedId { name: name.to_owned(), id: id.clone() });
        id
    }

    /// The ids that were made in the round that is over.
    pub(crate) fn take_round(&mut self) -> Vec<GeneratedId> {
        std::mem::take(&mut self.generated)
    }
}

/// Takes the id that was made for a call of this name: the first such, in the order of the calls.
pub(crate) fn take_for(generated: &mut Vec<GeneratedId>, name: &str) -> Option<String> {
    let at = generated.iter().position(|generated| generated.name == name)?;
    Some(generated.remove(at).id)
}
