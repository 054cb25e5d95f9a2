//! When a turn ends, decides whether it is recorded and what its record contains.

use serde_json::value::RawValue;

use super::Turn;
use crate::hidden_rounds::{HiddenAnswer, TurnRecord};
use crate::record_keys::RecordKey;
use crate::upstream_history::announcement_hash;

impl Turn {
    /// Returns the records to store. `last` are the entries of the last round, and `answers` are the answers to its
    /// hidden calls. Nothing is stored if the client's next request will contain everything that the upstream needs.
    pub(super) fn records_to_store(
        &mut self,
        last: Vec<String>,
        answers: Vec<HiddenAnswer>,
    ) -> Vec<(RecordKey, Vec<u8>)> {
        let loaded = self.toolset.loaded().to_vec();
        let hidden = std::mem::take(&mut self.hidden);
        let differs = self.router.is_altered()
            || !hidden.is_empty()
            || !self.reloaded.is_empty()
            || loaded != self.loaded_before;
        // A client that continues from a stored response does not send the earlier turns, so each record repeats what
        // is known about those turns. If there is a previous record or an announcement, this turn is therefore recorded
        // even if the client received it unchanged.
        let announced = self.toolset.announcement().map(announcement_hash);
        let announces = announced.is_some() && !self.responses.is_empty();
        if !differs && !self.has_previous_record && !announces {
            return Vec::new();
        }
        if !TurnRecord::has_room(hidden.iter().chain(&last)) {
            return Vec::new();
        }
        let mut entries = Vec::with_capacity(hidden.len() + last.len());
        for entry in hidden.into_iter().chain(last) {
            let Ok(raw) = RawValue::from_string(entry) else { return Vec::new() };
            entries.push(raw);
        }
        let mut record = TurnRecord {
            mode: self.toolset.mode(),
            nothing_deferred: self.toolset.passes_through(),
            second_names: self.toolset.has_second_names(),
            entries,
            calls: self.router.forwarded_ids().to_vec(),
            generated_ids: self.router.generated_ids().to_vec(),
            answers,
            revealed: [&self.reloaded, self.router.revealed_tools()].concat(),
            unseen_calls: self.router.unseen_calls().to_vec(),
            loaded,
            announced: None,
            response: None,
        };
        let mut records: Vec<(RecordKey, Vec<u8>)> = Vec::new();
        if differs {
            let bytes = record.to_bytes();
            let [strict, loose] = self.record_keys.of_next_turn(&self.router.fingerprint());
            if loose != strict {
                records.push((loose, bytes.clone()));
            }
            records.push((strict, bytes));
        }
        if let Some(stored) = self.responses.last() {
            // The API itself has stored the entries, so the record contains only information that the API does not
            // store.
            record.entries.clear();
            record.calls.clear();
            record.generated_ids.clear();
            if self.has_previous_record {
                record.revealed.splice(..0, self.revealed.iter().cloned());
            }
            record.announced = announced;
            record.response = Some(stored.clone());
            let bytes = record.to_bytes();
            let ids = self.responses.iter();
            records.extend(ids.map(|id| (self.record_keys.of_response(id), bytes.clone())));
        }
        records
    }
}
