//! The event stream (SSE) of a server over HTTP: size limits, and inspection of each event by the tap.

use std::time::Duration;

use futures::StreamExt as _;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::{Value, json};
use sse_stream::Sse;

use super::http::Events;
use super::http_response::without_url;
use super::server_requests::is_request;
use super::tap::{Disposition, Tap};
use crate::json_memory::{TOO_MANY_VALUES, takes_too_much_memory};

/// Minimum time before a stream that ended is opened again. A server can set a different time with `retry`, and zero
/// would mean reconnecting without a pause.
pub(super) const MIN_RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Returns the event as the SDK should see it. The data of an event that was handled here is removed.
pub(super) async fn inspect_event(
    tap: &Tap,
    mut event: Sse,
    origin: Option<&RequestId>,
    limit: usize,
) -> Sse {
    if let (Some(origin), Some(id)) = (origin, &event.id) {
        tap.record_event_id(origin, id);
    }
    let minimum = MIN_RECONNECT_DELAY.as_millis().try_into().unwrap_or(u64::MAX);
    event.retry = event.retry.map(|retry| retry.max(minimum));
    let Some(data) = event.data.as_deref().filter(|data| !data.trim().is_empty()) else {
        return event;
    };
    if takes_too_much_memory(data.as_bytes(), limit) {
        tap.warn_skipped(limit, "the server sent an event that takes too much memory");
        let error_for = |id: &RequestId| {
            let error = ErrorData::internal_error(TOO_MANY_VALUES, None);
            serde_json::to_string(&ServerJsonRpcMessage::error(error, Some(id.clone()))).ok()
        };
        event.data = origin.and_then(error_for);
        return event;
    }
    let Ok(value) = serde_json::from_str::<Value>(data) else {
        tap.count_invalid();
        event.data = None;
        return event;
    };
    if is_request(&value) {
        // The data is removed, because the SDK does not need to see the request, and its text must not take memory
        // while the request waits.
        event.data = None;
    }
    let Ok(permit) = tap.admit(&value).await else { return event };
    match tap.inspect(value, origin, permit) {
        Disposition::ForSdk(_) => {}
        Disposition::Answered(id) => {
            event.data = Some(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
        }
        // The SDK still gets the event without its data, because the stream can be resumed from the event's id.
        Disposition::Consumed => event.data = None,
    }
    event
}

/// Returns the events of a response. If an event is larger than `limit` bytes, the stream yields an error.
pub(super) fn limited_events(response: reqwest::Response, limit: usize) -> Events {
    let mut size = 0usize;
    let mut last = b'\n';
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| std::io::Error::other(without_url(error)))?;
        for &byte in &*chunk {
            // An empty line ends an event.
            size =
                if byte == b'\n' && last == b'\n' { 0 } else { size + usize::from(byte != b'\r') };
            if byte != b'\r' {
                last = byte;
            }
            if size > limit {
                return Err(std::io::Error::other(format!(
                    "an event is larger than {limit} bytes"
                )));
            }
        }
        Ok(chunk)
    });
    sse_stream::SseStream::from_bytes_stream(bytes).boxed()
}
