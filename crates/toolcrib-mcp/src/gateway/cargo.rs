//! Fields that the SDK does not know, carried past it.
//!
//! Over stdio an answer leaves as it is. Over HTTP it must go through the SDK's types, which drop what
//! they do not know. So an answer that would lose something leaves with a mark in its `_meta`, the answer
//! itself is kept beside, and the body is mended on its way out. Most answers lose nothing and take no
//! part in this. A body that is asked for again, long after, has what the SDK knows of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The mark, as a key of `_meta`.
const MARK: &str = "toolcrib/cargo";
/// Answers that are kept at most, and their bytes; the oldest goes first.
const MOST: usize = 512;
const MOST_BYTES: usize = 32 << 20;
/// How long one is kept. The SDK sends an answer again for a minute.
const KEPT: Duration = Duration::from_mins(2);

/// Answers on their way out.
#[derive(Debug, Default)]
pub(crate) struct Cargo(Mutex<HashMap<String, Kept>>);

#[derive(Debug)]
struct Kept {
    answer: Arc<Value>,
    bytes: usize,
    since: Instant,
    /// Responses under way that have it.
    uses: usize,
}

impl Cargo {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer in the SDK's type, marked where that loses something. `list` is the key of the list that
    /// every answer of its kind has.
    pub(super) fn load<T>(&self, answer: Value, list: &str) -> Option<T>
    where
        T: DeserializeOwned + Serialize,
    {
        let typed = serde_json::from_value::<T>(answer.clone()).ok();
        let kept = typed.as_ref().and_then(|typed| serde_json::to_value(typed).ok());
        let mut kept = match (typed, kept) {
            (Some(typed), Some(kept)) if kept == answer => return Some(typed),
            (Some(_), Some(kept)) => kept,
            // Not even readable: then the mark is all that goes through.
            _ => json!({ list: [] }),
        };
        let bytes = serde_json::to_vec(&answer).ok()?;
        let mark = blake3::hash(&bytes).to_hex().to_string();
        let meta = kept.as_object_mut()?.entry("_meta").or_insert_with(|| json!({}));
        meta.as_object_mut()?.insert(MARK.to_owned(), mark.clone().into());
        let mut all = self.lock();
        let now = Instant::now();
        all.retain(|_, kept| now.duration_since(kept.since) < KEPT);
        while all.len() >= MOST
            || all.values().map(|kept| kept.bytes).sum::<usize>() + bytes.len() > MOST_BYTES
        {
            let oldest =
                all.iter().min_by_key(|(_, kept)| kept.since).map(|(mark, _)| mark.clone());
            // One that is larger than all room there is goes as the SDK knows it.
            let Some(oldest) = oldest else { break };
            all.remove(&oldest);
        }
        let entry = all.entry(mark).or_insert_with(|| Kept {
            answer: Arc::new(answer),
            bytes: bytes.len(),
            since: now,
            uses: 0,
        });
        (entry.since, entry.uses) = (now, entry.uses + 1);
        drop(all);
        serde_json::from_value(kept).ok()
    }

    /// Mends a piece of a body: one event, or one whole message.
    pub(crate) fn unload(&self, piece: &[u8]) -> Option<Vec<u8>> {
        memmem::find(piece, MARK.as_bytes())?;
        let text = std::str::from_utf8(piece).ok()?;
        // An event with a number may be asked for again; anything else is sent once.
        let again = text.starts_with("id:") || text.contains("\nid:");
        let mended: Vec<String> = text.split('\n').map(|line| self.line(line, again)).collect();
        Some(mended.join("\n").into_bytes())
    }

    fn line(&self, line: &str, again: bool) -> String {
        let (head, body) = match line.strip_prefix("data:") {
            Some(body) => ("data: ", body.trim_start()),
            None => ("", line),
        };
        let message = serde_json::from_str::<Value>(body).ok();
        match message.and_then(|message| self.mend(message, again)) {
            Some(message) => format!("{head}{message}"),
            None => line.to_owned(),
        }
    }

    fn mend(&self, mut message: Value, again: bool) -> Option<Value> {
        let result = message.get_mut("result")?;
        let meta = result.get_mut("_meta")?.as_object_mut()?;
        let Value::String(mark) = meta.remove(MARK)? else { return None };
        if meta.is_empty() {
            result.as_object_mut()?.remove("_meta");
        }
        let kept = {
            let mut all = self.lock();
            let answer = all.get_mut(&mark).map(|kept| {
                kept.uses = kept.uses.saturating_sub(1);
                (Arc::clone(&kept.answer), kept.uses == 0 && !again)
            });
            if answer.as_ref().is_some_and(|(_, last)| *last) {
                all.remove(&mark);
            }
            answer.map(|(answer, _)| answer)
        };
        if let Some(whole) = kept {
            let mut whole = (*whole).clone();
            // What the SDK said on the way, in the way of the client's era, stays said.
            for key in ["resultType", "ttlMs", "cacheScope"] {
                match result.get(key) {
                    Some(value) => whole.as_object_mut()?.insert(key.to_owned(), value.clone()),
                    None => whole.as_object_mut()?.remove(key),
                };
            }
            *result = whole;
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::CallToolResult;

    use super::*;

    fn sent(result: &CallToolResult) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "result": result})
    }

    #[test]
    fn an_answer_that_the_sdk_knows_goes_through_unmarked() {
        let cargo = Cargo::default();
        let answer = json!({"content": [{"type": "text", "text": "hi"}], "isError": false});
        let typed: CallToolResult = cargo.load(answer.clone(), "content").unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), answer);
        assert!(cargo.lock().is_empty());
        assert_eq!(cargo.unload(sent(&typed).to_string().as_bytes()), None);
    }

    #[test]
    fn what_it_does_not_know_arrives_all_the_same() {
        let answer = json!({
            "content": [{"type": "hologram", "beams": 3}, {"type": "text", "text": "hi", "x-new": [1]}],
            "x-result": {"deep": true},
            "_meta": {"own": 1}
        });
        for framed in [false, true] {
            let cargo = Cargo::default();
            let typed: CallToolResult = cargo.load(answer.clone(), "content").unwrap();
            let message = sent(&typed).to_string();
            let piece = if framed { format!("id: 7\ndata: {message}\n\n") } else { message };
            let mended = String::from_utf8(cargo.unload(piece.as_bytes()).unwrap()).unwrap();
            let body =
                mended.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&mended);
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["result"], answer, "{mended}");
            assert_eq!(mended.starts_with("id: 7\n"), framed);
            assert_eq!(mended.ends_with("\n\n"), framed);
        }
    }

    #[test]
    fn an_answer_that_is_asked_for_too_late_has_no_mark_left_in_it() {
        let cargo = Cargo::default();
        let typed: CallToolResult = cargo.load(json!({"content": [], "x": 1}), "content").unwrap();
        cargo.lock().clear();
        let mended = cargo.unload(sent(&typed).to_string().as_bytes()).unwrap();
        let expected = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
        assert_eq!(serde_json::from_slice::<Value>(&mended).unwrap(), expected);
    }
}
