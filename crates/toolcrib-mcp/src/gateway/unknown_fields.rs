//! Preserves the fields that a result has and the SDK's types do not.
//!
//! Results for a client over stdio do not use the SDK's types. Results for a client over HTTP must use them, although
//! these types drop unknown fields. Therefore a result that would lose fields is stored here, its typed version gets a
//! mark in `_meta`, and the original is restored in the body of the response. Most results lose no fields and are not
//! stored. If a client requests an event again after the stored result has expired, the client gets only the fields
//! that the SDK knows.
//!
//! Results are stored as text, because as values they can take sixteen times as much memory. They are stored only for
//! as long as the SDK may send them.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib_text::json::Fields;

/// The key of the mark in `_meta`. The mark identifies a stored result.
const MARK_KEY: &str = "toolcrib/unknown-fields";
/// Maximum number of stored results, and their maximum total size in bytes. At the maximum, the oldest result is
/// dropped.
const MAX_RESULTS: usize = 512;
const MAX_BYTES: usize = 32 << 20;
/// How long a result is stored. The SDK can send a response again for one minute.
const MAX_AGE: Duration = Duration::from_secs(75);

/// Results whose original must be restored. Clones share the stored results.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnknownFields(Arc<Mutex<StoredResults>>);

#[derive(Debug, Default)]
struct StoredResults {
    by_mark: HashMap<String, StoredResult>,
    /// The total length of the stored texts.
    bytes: usize,
    /// Whether the task that drops expired results is running.
    is_expiry_running: bool,
}

#[derive(Debug)]
struct StoredResult {
    text: Arc<str>,
    stored_at: Instant,
    /// How many responses still need this result.
    uses: usize,
}

impl StoredResults {
    fn keep(&mut self, mark: String, text: String, now: Instant) {
        if let Some(stored) = self.by_mark.get_mut(&mark) {
            (stored.stored_at, stored.uses) = (now, stored.uses + 1);
            return;
        }
        while self.by_mark.len() >= MAX_RESULTS || self.bytes + text.len() > MAX_BYTES {
            let oldest = self.by_mark.iter().min_by_key(|(_, stored)| stored.stored_at);
            let Some(oldest) = oldest.map(|(mark, _)| mark.clone()) else { break };
            self.remove(&oldest);
        }
        self.bytes += text.len();
        self.by_mark.insert(mark, StoredResult { text: text.into(), stored_at: now, uses: 1 });
    }

    fn remove(&mut self, mark: &str) {
        if let Some(stored) = self.by_mark.remove(mark) {
            self.bytes -= stored.text.len();
        }
    }

    /// Returns the stored result for one response. The result is dropped after the last response that needs it, unless
    /// the SDK may send that response again.
    fn take(&mut self, mark: &str, may_resend: bool) -> Option<Arc<str>> {
        let stored = self.by_mark.get_mut(mark)?;
        stored.uses = stored.uses.saturating_sub(1);
        let (text, is_last) = (Arc::clone(&stored.text), stored.uses == 0 && !may_resend);
        if is_last {
            self.remove(mark);
        }
        Some(text)
    }

    /// Drops expired results. Returns the time when the next result expires, or `None` if no result is left.
    fn drop_expired(&mut self, now: Instant) -> Option<Instant> {
        self.by_mark.retain(|_, stored| now < stored.stored_at + MAX_AGE);
        self.bytes = self.by_mark.values().map(|stored| stored.text.len()).sum();
        self.by_mark.values().map(|stored| stored.stored_at + MAX_AGE).min()
    }
}

impl UnknownFields {
    fn lock(&self) -> MutexGuard<'_, StoredResults> {
        self.0.lock()
    }

    /// Converts a result to the SDK's type. If the conversion loses fields, the original is stored, and the converted
    /// result is marked. `list` is the key of the list that every result of this type has.
    pub(super) fn to_sdk_type<T>(&self, result: Value, list: &str) -> Option<T>
    where
        T: DeserializeOwned + Serialize,
    {
        self.to_sdk_type_or(result, json!({ list: [] }))
    }

    /// Like [`Self::to_sdk_type`]. `empty` is a result that the SDK can parse. It is sent, with the mark, if the SDK
    /// cannot parse the result at all.
    pub(super) fn to_sdk_type_or<T>(&self, result: Value, empty: Value) -> Option<T>
    where
        T: DeserializeOwned + Serialize,
    {
        let typed = T::deserialize(&result).ok();
        let known = typed.as_ref().and_then(|typed| serde_json::to_value(typed).ok());
        let mut known = match (typed, known) {
            (Some(typed), Some(known)) if known == result => return Some(typed),
            (Some(_), Some(known)) => known,
            _ => empty,
        };
        let text = serde_json::to_string(&result).ok()?;
        drop(result);
        // A result that is larger than the total limit is sent with only the fields that the SDK knows.
        if text.len() <= MAX_BYTES {
            let mark = blake3::hash(text.as_bytes()).to_hex().to_string();
            let meta = known.as_object_mut()?.entry("_meta").or_insert_with(|| json!({}));
            meta.as_object_mut()?.insert(MARK_KEY.to_owned(), mark.clone().into());
            self.lock().keep(mark, text, Instant::now());
            self.start_expiry_task();
        }
        serde_json::from_value(known).ok()
    }

    /// Starts the task that drops expired results, including those of clients that have disconnected. The task ends
    /// when no results are left.
    fn start_expiry_task(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if std::mem::replace(&mut self.lock().is_expiry_running, true) {
            return;
        }
        let unknown_fields = self.clone();
        runtime.spawn(async move {
            while let Some(next) = unknown_fields.drop_expired() {
                tokio::time::sleep_until(next).await;
            }
        });
    }

    fn drop_expired(&self) -> Option<Instant> {
        let mut results = self.lock();
        let next = results.drop_expired(Instant::now());
        results.is_expiry_running = next.is_some();
        next
    }

    /// Restores the marked results in a part of a response body, which is one event or a complete message. Returns
    /// `None` if the part has no mark.
    pub(crate) fn restore(&self, part: &[u8]) -> Option<Vec<u8>> {
        memmem::find(part, MARK_KEY.as_bytes())?;
        let text = std::str::from_utf8(part).ok()?;
        // If an event has an id, the client can request the event again. Anything else is sent once.
        let may_resend = text.starts_with("id:") || text.contains("\nid:");
        let restored: Vec<String> =
            text.split('\n').map(|line| self.restore_line(line, may_resend)).collect();
        Some(restored.join("\n").into_bytes())
    }

    fn restore_line(&self, line: &str, may_resend: bool) -> String {
        let (head, body) = match line.strip_prefix("data:") {
            Some(body) => ("data: ", body.trim_start()),
            None => ("", line),
        };
        match self.restore_message(body, may_resend) {
            Some(message) => format!("{head}{message}"),
            None => line.to_owned(),
        }
    }

    fn restore_message(&self, message: &str, may_resend: bool) -> Option<String> {
        let message = Fields::read(message)?;
        let result = Fields::read(message.get("result")?)?;
        let meta = Fields::read(result.get("_meta")?)?;
        let mark = meta.string(MARK_KEY)?;
        let stored = self.lock().take(&mark, may_resend);
        let restored = if let Some(original) = &stored {
            // The SDK has set these fields as the client's protocol version requires, so its values are kept.
            let from_sdk = ["resultType", "ttlMs", "cacheScope"]
                .map(|key| (key, result.get(key).map(str::to_owned)));
            Fields::read(original)?.with(&from_sdk)
        } else {
            let meta = meta.with(&[(MARK_KEY, None)]);
            result.with(&[("_meta", (meta != "{}").then_some(meta))])
        };
        Some(message.with(&[("result", Some(restored))]))
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
    fn a_result_that_the_sdk_knows_gets_no_mark() {
        let unknown_fields = UnknownFields::default();
        let answer = json!({"content": [{"type": "text", "text": "hi"}], "isError": false});
        let typed: CallToolResult = unknown_fields.to_sdk_type(answer.clone(), "content").unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), answer);
        assert!(unknown_fields.lock().by_mark.is_empty());
        assert_eq!(unknown_fields.restore(sent(&typed).to_string().as_bytes()), None);
    }

    #[test]
    fn unknown_fields_reach_the_client() {
        let answer = json!({
            "content": [{"type": "hologram", "beams": 3}, {"type": "text", "text": "hi", "x-new": [1]}],
            "x-result": {"deep": true},
            "_meta": {"own": 1}
        });
        for is_event in [false, true] {
            let unknown_fields = UnknownFields::default();
            let typed: CallToolResult =
                unknown_fields.to_sdk_type(answer.clone(), "content").unwrap();
            let message = sent(&typed).to_string();
            let part = if is_event { format!("id: 7\ndata: {message}\n\n") } else { message };
            let restored =
                String::from_utf8(unknown_fields.restore(part.as_bytes()).unwrap()).unwrap();
            let body =
                restored.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&restored);
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["result"], answer, "{restored}");
            assert_eq!(restored.starts_with("id: 7\n"), is_event);
            assert_eq!(restored.ends_with("\n\n"), is_event);
        }
    }

    #[test]
    fn an_expired_result_is_sent_without_its_mark() {
        let unknown_fields = UnknownFields::default();
        let typed: CallToolResult =
            unknown_fields.to_sdk_type(json!({"content": [], "x": 1}), "content").unwrap();
        unknown_fields.lock().by_mark.clear();
        let restored = unknown_fields.restore(sent(&typed).to_string().as_bytes()).unwrap();
        let expected = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
        assert_eq!(serde_json::from_slice::<Value>(&restored).unwrap(), expected);
    }

    fn unknown(number: usize, bytes: usize) -> Value {
        json!({"content": [], "n": number, "x": "x".repeat(bytes)})
    }

    #[test]
    fn the_total_size_of_stored_results_is_limited() {
        let unknown_fields = UnknownFields::default();
        for number in 0..9 {
            let _: CallToolResult =
                unknown_fields.to_sdk_type(unknown(number, MAX_BYTES / 4), "content").unwrap();
            let results = unknown_fields.lock();
            assert!(results.bytes <= MAX_BYTES && results.by_mark.len() <= 3);
            assert_eq!(
                results.bytes,
                results.by_mark.values().map(|stored| stored.text.len()).sum::<usize>()
            );
        }
        let large: CallToolResult =
            unknown_fields.to_sdk_type(unknown(9, MAX_BYTES), "content").unwrap();
        assert_eq!(
            unknown_fields.restore(sent(&large).to_string().as_bytes()),
            None,
            "it is not stored"
        );
        assert_eq!(unknown_fields.lock().by_mark.len(), 3, "and replaces no other");
    }

    #[tokio::test(start_paused = true)]
    async fn results_that_nobody_reads_expire() {
        let unknown_fields = UnknownFields::default();
        let _: CallToolResult = unknown_fields.to_sdk_type(unknown(0, 10), "content").unwrap();
        tokio::time::sleep(MAX_AGE / 2).await;
        let _: CallToolResult = unknown_fields.to_sdk_type(unknown(1, 10), "content").unwrap();
        tokio::time::sleep(MAX_AGE / 2 + Duration::from_secs(1)).await;
        assert_eq!(unknown_fields.lock().by_mark.len(), 1);
        tokio::time::sleep(MAX_AGE).await;
        assert_eq!(unknown_fields.lock().bytes, 0);
        assert!(!unknown_fields.lock().is_expiry_running);
        let _: CallToolResult = unknown_fields.to_sdk_type(unknown(2, 10), "content").unwrap();
        assert!(unknown_fields.lock().is_expiry_running);
    }
}
