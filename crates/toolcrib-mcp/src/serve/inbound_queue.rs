//! The messages of a stdio client that the SDK has not taken yet, in order.
//!
//! A request waits here while the [`Backlog`] of its client has no room for another one. Other messages do not wait,
//! because an answer to a server's question or a cancellation may be what ends a request in flight. So they overtake
//! waiting requests, and a request that is cancelled while it waits is dropped. A small `ping` may be a keep-alive, so
//! it begins even if there is no room, and waits only if the client does not read. While requests wait, reading
//! continues until they take too much memory themselves. Then nothing is read until one of them begins. This happens at
//! the latest when a request in flight times out, provided that the client reads what was written to it.

use std::collections::VecDeque;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, JsonRpcMessage,
    RequestId,
};

use super::backlog::{Backlog, PING_BYTES};

/// Maximum memory of the waiting requests, in bytes. The request that reaches the maximum may exceed it.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Memory that a message takes in addition to its values, in bytes.
const MESSAGE_BYTES: usize = 1 << 10;

/// The messages of one client.
#[derive(Debug, Default)]
pub(super) struct InboundQueue {
    /// Messages that were not examined yet, in order of arrival.
    ready: VecDeque<QueuedMessage>,
    /// Requests that wait until the backlog has room.
    waiting: VecDeque<QueuedMessage>,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct QueuedMessage {
    message: ClientJsonRpcMessage,
    bytes: usize,
}

impl InboundQueue {
    /// Returns the next message that may begin now. A request carries its share of the backlog in its extensions, which
    /// the SDK keeps until the request is answered.
    pub(super) fn next(&mut self, backlog: &Backlog) -> Option<ClientJsonRpcMessage> {
        if backlog.has_room()
            && let Some(queued) = self.waiting.pop_front()
        {
            self.waiting_bytes -= queued.bytes;
            return Some(queued.begin(backlog));
        }
        while let Some(queued) = self.ready.pop_front() {
            match &queued.message {
                JsonRpcMessage::Request(_)
                    if backlog.has_room()
                        || queued.is_small_ping() && backlog.has_room_for_ping() =>
                {
                    return Some(queued.begin(backlog));
                }
                JsonRpcMessage::Request(_) => {
                    self.waiting_bytes += queued.bytes;
                    self.waiting.push_back(queued);
                }
                message => {
                    if let Some(id) = cancelled_request(message) {
                        self.drop_waiting(&id);
                    }
                    return Some(queued.message);
                }
            }
        }
        None
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the waiting requests take so much memory that reading must stop.
    pub(super) fn is_full(&self) -> bool {
        self.waiting_bytes >= MAX_WAITING_BYTES
    }

    /// Drops the waiting requests.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    fn drop_waiting(&mut self, id: &RequestId) {
        let is_it = |queued: &QueuedMessage| matches!(&queued.message, JsonRpcMessage::Request(request) if request.id == *id);
        self.waiting.retain(|queued| !is_it(queued));
        self.waiting_bytes = self.waiting.iter().map(|queued| queued.bytes).sum();
    }
}

/// Adds messages, each with the memory that its values take, in bytes.
impl Extend<(ClientJsonRpcMessage, usize)> for InboundQueue {
    fn extend<T: IntoIterator<Item = (ClientJsonRpcMessage, usize)>>(&mut self, messages: T) {
        let queued = |(message, bytes)| QueuedMessage { message, bytes: MESSAGE_BYTES + bytes };
        self.ready.extend(messages.into_iter().map(queued));
    }
}

impl QueuedMessage {
    fn begin(mut self, backlog: &Backlog) -> ClientJsonRpcMessage {
        let share =
            if self.is_small_ping() { backlog.ping_share() } else { backlog.request_share() };
        if let JsonRpcMessage::Request(request) = &mut self.message {
            request.request.extensions_mut().insert(share);
        }
        self.message
    }

    fn is_small_ping(&self) -> bool {
        let JsonRpcMessage::Request(request) = &self.message else { return false };
        self.bytes <= PING_BYTES && matches!(request.request, ClientRequest::PingRequest(_))
    }
}

/// Returns the id of the request that a message cancels, or `None` if the message is not a cancellation.
fn cancelled_request(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(value: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(value).unwrap()
    }

    fn request(id: u32) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}))
    }

    fn ping(id: u32) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    fn cancel(id: u32) -> ClientJsonRpcMessage {
        let params = json!({"requestId": id});
        message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
    }

    fn answer(id: u32) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "id": id, "result": {}}))
    }

    /// Takes the next message, and describes it in a few words.
    fn next(inbound: &mut InboundQueue, backlog: &Backlog) -> String {
        match inbound.next(backlog) {
            Some(JsonRpcMessage::Request(request)) => format!("request {}", request.id),
            Some(JsonRpcMessage::Response(answer)) => format!("answer {}", answer.id),
            Some(JsonRpcMessage::Notification(_)) => "cancel".to_owned(),
            Some(JsonRpcMessage::Error(_)) => "error".to_owned(),
            None => String::new(),
        }
    }

    #[test]
    fn with_room_messages_stay_in_order() {
        let (mut inbound, backlog) = (InboundQueue::default(), Backlog::default());
        let messages = [request(1), cancel(1), answer(7), request(2)];
        inbound.extend(messages.map(|message| (message, 10)));
        for expected in ["request 1", "cancel", "answer 7", "request 2", ""] {
            assert_eq!(next(&mut inbound, &backlog), expected);
        }
    }

    #[test]
    fn without_room_requests_wait_and_other_messages_do_not() {
        let (mut inbound, backlog) = (InboundQueue::default(), Backlog::default());
        let unread = backlog.message_share(&"x".repeat(MAX_WAITING_BYTES));
        let messages = [request(1), request(2), answer(7), request(3), cancel(2)];
        inbound.extend(messages.map(|message| (message, MAX_WAITING_BYTES / 3)));
        for expected in ["answer 7", "cancel", ""] {
            assert_eq!(next(&mut inbound, &backlog), expected);
        }
        assert!(inbound.is_waiting() && !inbound.is_full(), "two of three wait");
        inbound.extend([(request(4), MAX_WAITING_BYTES / 3)]);
        assert_eq!(next(&mut inbound, &backlog), "");
        assert!(inbound.is_full());
        drop(unread);
        inbound.extend([(request(5), 10)]);
        for expected in ["request 1", "request 3", "request 4", "request 5", ""] {
            assert_eq!(next(&mut inbound, &backlog), expected);
        }
        assert!(!inbound.is_waiting() && !inbound.is_full());
    }

    #[test]
    fn a_request_in_flight_takes_room_until_it_is_dropped() {
        let (mut inbound, backlog) = (InboundQueue::default(), Backlog::default());
        inbound.extend((0..1_000).map(|id| (request(id), 10)));
        let mut in_flight: Vec<_> = std::iter::from_fn(|| inbound.next(&backlog)).collect();
        assert_eq!(in_flight.len(), 256);
        in_flight.pop();
        assert_eq!(next(&mut inbound, &backlog), "request 256");
    }

    #[test]
    fn a_ping_does_not_wait_for_requests_in_flight() {
        let (mut inbound, backlog) = (InboundQueue::default(), Backlog::default());
        inbound.extend((0..300).map(|id| (request(id), 10)));
        let _in_flight: Vec<_> = std::iter::from_fn(|| inbound.next(&backlog)).collect();
        inbound.extend([(request(300), 10), (ping(400), PING_BYTES), (ping(301), 10)]);
        assert_eq!(next(&mut inbound, &backlog), "request 301");
        inbound.extend((0..100_000).map(|id| (ping(id), 10)));
        let unread = std::iter::from_fn(|| inbound.next(&backlog));
        let unread = unread.map(|_| backlog.message_share("an answer")).collect::<Vec<_>>().len();
        assert!((1_000..100_000).contains(&unread), "pings without end have a limit: {unread}");
    }
}
