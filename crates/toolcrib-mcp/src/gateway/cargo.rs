//! Fields that the SDK does not know, carried past it.
//!
//! Over stdio an answer leaves as it is. Over HTTP it must go through the SDK's types, which drop what
//! they do not know. So an answer that would lose something leaves with a mark in its `_meta`, the answer
//! itself is kept beside, and the body is mended on its way out. Most answers lose nothing and take no
//! part in this. A body that is asked for again, long after, has what the SDK knows of it.
//!
//! Answers are kept as text, because as values they can take sixteen times as much memory, and only for as long as the
//! SDK may send them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib_text::json::Fields;

/// The mark, as a key of `_meta`.
const MARK: &str = "toolcrib/cargo";
/// Maximum number and total size of the answers that are kept; the oldest is dropped first.
const MAX_ANSWERS: usize = 512;
const MAX_BYTES: usize = 32 << 20;
/// How long one is kept. The SDK sends an answer again for a minute.
const KEPT: Duration = Duration::from_secs(75);

/// Answers on their way out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cargo(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    by_mark: HashMap<String, Kept>,
    /// The total length of the texts.
    bytes: usize,
    /// Whether the task that drops old answers is running.
    sweeping: bool,
}

#[derive(Debug)]
struct Kept {
    text: Arc<str>,
    since: Instant,
    /// Responses under way that have it.
    uses: usize,
}

impl Answers {
    fn keep(&mut self, mark: String, text: String, now: Instant) {
        if let Some(kept) = self.by_mark.get_mut(&mark) {
            (kept.since, kept.uses) = (now, kept.uses + 1);
            return;
        }
        while self.by_mark.len() >= MAX_ANSWERS || self.bytes + text.len() > MAX_BYTES {
            let oldest = self.by_mark.iter().min_by_key(|(_, kept)| kept.since);
            let Some(oldest) = oldest.map(|(mark, _)| mark.clone()) else { break };
            self.remove(&oldest);
        }
        self.bytes += text.len();
        self.by_mark.insert(mark, Kept { text: text.into(), since: now, uses: 1 });
    }

    fn remove(&mut self, mark: &str) {
        if let Some(kept) = self.by_mark.remove(mark) {
            self.bytes -= kept.text.len();
        }
    }

    /// The answer for one response. The last response that uses it drops it, unless that response may be sent again.
    fn take(&mut self, mark: &str, again: bool) -> Option<Arc<str>> {
        let kept = self.by_mark.get_mut(mark)?;
        kept.uses = kept.uses.saturating_sub(1);
        let (text, is_last) = (Arc::clone(&kept.text), kept.uses == 0 && !again);
        if is_last {
            self.remove(mark);
        }
        Some(text)
    }

    /// Drops old answers; returns when the next one becomes old.
    fn sweep(&mut self, now: Instant) -> Option<Instant> {
        self.by_mark.retain(|_, kept| now < kept.since + KEPT);
        self.bytes = self.by_mark.values().map(|kept| kept.text.len()).sum();
        self.by_mark.values().map(|kept| kept.since + KEPT).min()
    }
}

impl Cargo {
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer in the SDK's type, marked where that loses something. `list` is the key of the list that
    /// every answer of its kind has.
    pub(super) fn load<T>(&self, answer: Value, list: &str) -> Option<T>
    where
        T: DeserializeOwned + Serialize,
    {
        let typed = T::deserialize(&answer).ok();
        let known = typed.as_ref().and_then(|typed| serde_json::to_value(typed).ok());
        let mut known = match (typed, known) {
            (Some(typed), Some(known)) if known == answer => return Some(typed),
            (Some(_), Some(known)) => known,
            // Not even readable: then the mark is all that goes through.
            _ => json!({ list: [] }),
        };
        let text = serde_json::to_string(&answer).ok()?;
        drop(answer);
        // An answer above the total limit is sent with only the fields that the SDK knows.
        if text.len() <= MAX_BYTES {
            let mark = blake3::hash(text.as_bytes()).to_hex().to_string();
            let meta = known.as_object_mut()?.entry("_meta").or_insert_with(|| json!({}));
            meta.as_object_mut()?.insert(MARK.to_owned(), mark.clone().into());
            self.lock().keep(mark, text, Instant::now());
            self.sweep_later();
        }
        serde_json::from_value(known).ok()
    }

    /// Starts the task that drops old answers, even if their clients have left. It ends when no answers are left.
    fn sweep_later(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if std::mem::replace(&mut self.lock().sweeping, true) {
            return;
        }
        let cargo = self.clone();
        runtime.spawn(async move {
            while let Some(next) = cargo.sweep() {
                tokio::time::sleep_until(next).await;
            }
        });
    }

    fn sweep(&self) -> Option<Instant> {
        let mut answers = self.lock();
        let next = answers.sweep(Instant::now());
        answers.sweeping = next.is_some();
        next
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
        match self.mend(body, again) {
            Some(message) => format!("{head}{message}"),
            None => line.to_owned(),
        }
    }

    fn mend(&self, message: &str, again: bool) -> Option<String> {
        let message = Fields::read(message)?;
        let result = Fields::read(message.get("result")?)?;
        let meta = Fields::read(result.get("_meta")?)?;
        let mark = meta.string(MARK)?;
        let kept = self.lock().take(&mark, again);
        let mended = if let Some(whole) = &kept {
            // What the SDK said on the way, in the way of the client's era, stays said.
            let said = ["resultType", "ttlMs", "cacheScope"]
                .map(|key| (key, result.get(key).map(str::to_owned)));
            Fields::read(whole)?.with(&said)
        } else {
            let meta = meta.with(&[(MARK, None)]);
            result.with(&[("_meta", (meta != "{}").then_some(meta))])
        };
        Some(message.with(&[("result", Some(mended))]))
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
        assert!(cargo.lock().by_mark.is_empty());
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
        cargo.lock().by_mark.clear();
        let mended = cargo.unload(sent(&typed).to_string().as_bytes()).unwrap();
        let expected = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
        assert_eq!(serde_json::from_slice::<Value>(&mended).unwrap(), expected);
    }

    fn unknown(number: usize, bytes: usize) -> Value {
        json!({"content": [], "n": number, "x": "x".repeat(bytes)})
    }

    #[test]
    fn the_total_is_limited_and_counts_what_is_kept() {
        let cargo = Cargo::default();
        for number in 0..9 {
            let _: CallToolResult = cargo.load(unknown(number, MAX_BYTES / 4), "content").unwrap();
            let answers = cargo.lock();
            assert!(answers.bytes <= MAX_BYTES && answers.by_mark.len() <= 3);
            assert_eq!(
                answers.bytes,
                answers.by_mark.values().map(|kept| kept.text.len()).sum::<usize>()
            );
        }
        let large: CallToolResult = cargo.load(unknown(9, MAX_BYTES), "content").unwrap();
        assert_eq!(cargo.unload(sent(&large).to_string().as_bytes()), None, "it is not kept");
        assert_eq!(cargo.lock().by_mark.len(), 3, "and takes no other's place");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_nobody_reads_are_dropped() {
        let cargo = Cargo::default();
        let _: CallToolResult = cargo.load(unknown(0, 10), "content").unwrap();
        tokio::time::sleep(KEPT / 2).await;
        let _: CallToolResult = cargo.load(unknown(1, 10), "content").unwrap();
        tokio::time::sleep(KEPT / 2 + Duration::from_secs(1)).await;
        assert_eq!(cargo.lock().by_mark.len(), 1);
        tokio::time::sleep(KEPT).await;
        assert_eq!(cargo.lock().bytes, 0);
        assert!(!cargo.lock().sweeping);
        let _: CallToolResult = cargo.load(unknown(2, 10), "content").unwrap();
        assert!(cargo.lock().sweeping);
    }
}
