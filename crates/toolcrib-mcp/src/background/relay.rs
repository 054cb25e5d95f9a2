//! Passes messages on between a client and a background gateway, and survives the end of that gateway.
//!
//! This is a state machine without I/O. While a gateway is connected, messages pass through, and the relay only
//! remembers which requests are open and what the client has set up: its handshake, its log level and its
//! subscriptions. With the first gateway they pass unchanged. With later ones, some ids are replaced (see below).
//!
//! When the gateway ends, [`Relay::gateway_lost`] answers every request that must not be sent twice with an error.
//! [`Relay::lines_for_next_gateway`] restores the client's setup and sends the remaining requests again.
//!
//! Each gateway numbers its own requests to the client from zero. So that a late answer to a request of an earlier gateway
//! is never mistaken for an answer to a request of the current one, the requests of every gateway after the first get new
//! ids.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolcrib_text::json::Fields;

use super::open_request::OpenRequest;

/// The key of `_meta` with which a notification names its subscription, in the newer protocol.
const SUBSCRIPTION_ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The method of the last message of a gateway that was told to stop. It is not for the client.
pub(super) const STOPPING: &str = "notifications/toolcrib/stopping";

/// The method of the last message of a gateway that can no longer serve the client, because a changed config means other
/// servers for it. The next gateway can.
pub(super) const LEAVING: &str = "notifications/toolcrib/leaving";

/// The method of the last message of a gateway that has ended the session of a client, with the reason.
pub(super) const ENDED: &str = "notifications/toolcrib/ended";

/// The state of a relay.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// The number of gateways before the current one.
    generation: u64,
    /// The client's open requests, in the order in which they arrived, by their ids.
    open: Vec<(String, OpenRequest)>,
    /// The gateway's open requests to the client, by the ids that the client knows.
    open_at_client: BTreeSet<String>,
    /// The ids of requests that the relay itself sent to the gateway. Their answers are not for the client.
    own_requests: BTreeSet<String>,
    setup: ClientSetup,
    /// Whether the gateway was told to stop.
    is_stopping: bool,
    /// Whether the gateway announced its end.
    is_end_announced: bool,
    /// Why the gateway ended the session of the client.
    end_reason: Option<String>,
}

/// What the client has set up, to be set up again in the next gateway. Only requests that succeeded are kept, so the
/// limits of the gateway also bound what is stored here.
#[derive(Debug, Default)]
struct ClientSetup {
    /// The `initialize` request.
    initialize: Option<String>,
    is_initialized: bool,
    log_level: Option<String>,
    /// The subscribe requests, by URI.
    subscriptions: BTreeMap<String, String>,
}

/// What to do with a message of the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientMessage {
    /// Send this line to the gateway. If it is a request, its id is given. If the gateway ends before the line is
    /// completely written, call [`Relay::not_sent`] with that id.
    Forward(Vec<u8>, Option<String>),
    /// The message belongs to an earlier gateway.
    Drop,
}

/// A message that the gateway sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GatewayMessage {
    /// Send this line to the client.
    Forward(String),
    /// The message is not for the client.
    Drop,
}

impl Relay {
    /// Handles a message of the client.
    pub(super) fn client_message(&mut self, line: Vec<u8>) -> ClientMessage {
        let line = match String::from_utf8(line) {
            Ok(line) => line,
            // The gateway answers with an error.
            Err(error) => return ClientMessage::Forward(error.into_bytes(), None),
        };
        let Some(fields) = Fields::read(&line) else {
            return ClientMessage::Forward(line.into_bytes(), None);
        };
        let id = fields.get("id").map(normalized);
        match (fields.string("method"), id) {
            (Some(method), Some(id)) if id != "null" => {
                let written = fields.get("id").unwrap_or_default();
                let request = OpenRequest::new(&line, written, &method, fields.get("params"));
                self.open.push((id.clone(), request));
                ClientMessage::Forward(line.into_bytes(), Some(id))
            }
            (Some(method), _) => {
                let params = fields.get("params").and_then(Fields::read);
                match &*method {
                    "notifications/initialized" => self.setup.is_initialized = true,
                    // A cancelled request may get no answer.
                    "notifications/cancelled" => {
                        let id = params.as_ref().and_then(|params| params.get("requestId"));
                        self.remove_open(&id.map(normalized).unwrap_or_default());
                    }
                    _ => {}
                }
                ClientMessage::Forward(line.into_bytes(), None)
            }
            // An answer to a request of the gateway.
            (None, Some(id)) => {
                if !self.open_at_client.remove(&id) {
                    return ClientMessage::Drop;
                }
                match self.gateway_id(&id) {
                    Some(own) => {
                        let line = fields.with(&[("id", Some(own))]);
                        ClientMessage::Forward(line.into_bytes(), None)
                    }
                    None => ClientMessage::Forward(line.into_bytes(), None),
                }
            }
            (None, None) => ClientMessage::Forward(line.into_bytes(), None),
        }
    }

    /// Forgets a request that was not completely written before the gateway ended. It was not executed, and is sent to
    /// the next gateway as if the client had just sent it.
    pub(super) fn not_sent(&mut self, id: &str) {
        self.remove_open(id);
    }

    /// Handles a message of the gateway.
    pub(super) fn gateway_message(&mut self, line: String) -> GatewayMessage {
        let Some(fields) = Fields::read(&line) else { return GatewayMessage::Forward(line) };
        let id = fields.get("id").map(normalized);
        match (fields.string("method"), id) {
            (Some(method), None) if method == STOPPING => {
                self.is_stopping = true;
                self.is_end_announced = true;
                GatewayMessage::Drop
            }
            (Some(method), None) if method == LEAVING => {
                self.is_end_announced = true;
                GatewayMessage::Drop
            }
            (Some(method), None) if method == ENDED => {
                let params = fields.get("params").and_then(Fields::read);
                self.end_reason = params.and_then(|params| params.string("reason"));
                GatewayMessage::Drop
            }
            (Some(_), Some(id)) => {
                let known = self.client_id(&id);
                self.open_at_client.insert(known.clone());
                GatewayMessage::Forward(match self.generation {
                    0 => line,
                    _ => fields.with(&[("id", Some(known))]),
                })
            }
            (Some(method), None) if method == "notifications/cancelled" => {
                GatewayMessage::Forward(self.with_client_id(line))
            }
            (None, Some(id)) => {
                if self.own_requests.remove(&id) {
                    return GatewayMessage::Drop;
                }
                let is_error = fields.get("error").is_some();
                // A gateway ends a subscription when it ends itself. For the client, the subscription goes on in the
                // next gateway.
                let is_subscription = |(open, request): &(String, OpenRequest)| {
                    *open == id && request.is_subscription()
                };
                if !is_error && self.open.iter().any(is_subscription) {
                    return GatewayMessage::Drop;
                }
                self.record_answer(&id, is_error);
                GatewayMessage::Forward(line)
            }
            _ => GatewayMessage::Forward(line),
        }
    }

    /// Whether the user stopped the gateway, and the client does not need another one yet. If so, the relay connects to
    /// the next gateway only when the client sends something. A subscription alone does not need a gateway, because a
    /// gateway that does not run has no changes to announce.
    pub(super) fn can_wait(&self) -> bool {
        self.is_stopping && self.open.iter().all(|(_, request)| request.is_subscription())
    }

    /// Whether any request of the client is unanswered.
    pub(super) fn has_open_requests(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the gateway announced its end, so that the end is not a crash.
    pub(super) fn is_end_announced(&self) -> bool {
        self.is_end_announced
    }

    /// Returns why the gateway ended the session of the client, if it did.
    pub(super) fn end_reason(&mut self) -> Option<String> {
        self.end_reason.take()
    }

    /// Handles the end of the gateway. Returns messages for the client.
    pub(super) fn gateway_lost(&mut self) -> Vec<String> {
        self.generation += 1;
        self.own_requests.clear();
        let cancelled = std::mem::take(&mut self.open_at_client);
        let mut lines: Vec<String> = cancelled
            .iter()
            .map(|id| {
                let reason = Value::from("the background gateway stopped");
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
                )
            })
            .collect();
        // Only a client of the older protocol begins with a handshake.
        let uses_newer_protocol = self.setup.initialize.is_none();
        let mut kept = Vec::new();
        for (id, mut request) in std::mem::take(&mut self.open) {
            let answer = request.lost_answer(uses_newer_protocol);
            if request.prepare_repeat() {
                kept.push((id, request));
            } else {
                lines.push(answer);
            }
        }
        self.open = kept;
        lines
    }

    /// Returns the messages with which the client's session continues in the next gateway.
    pub(super) fn lines_for_next_gateway(&mut self) -> Vec<String> {
        self.is_stopping = false;
        self.is_end_announced = false;
        let mut lines = Vec::new();
        let ClientSetup { initialize, is_initialized, log_level, subscriptions } = &self.setup;
        if let Some(initialize) = initialize {
            let requests = [initialize].into_iter().chain(log_level).chain(subscriptions.values());
            for (number, line) in requests.enumerate() {
                let id = format!("\"toolcrib-{}-{number}\"", self.generation);
                let Some(fields) = Fields::read(line) else { continue };
                lines.push(fields.with(&[("id", Some(id.clone()))]));
                self.own_requests.insert(id);
                if number == 0 && *is_initialized {
                    let initialized =
                        json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                    lines.push(initialized.to_string());
                }
            }
        }
        lines.extend(self.open.iter().filter_map(|(_, request)| request.line()));
        lines
    }

    /// Returns notifications for a client whose session continues in another gateway: its lists may be different there.
    /// A client of the newer protocol gets those that it subscribed to.
    pub(super) fn change_notifications(&self) -> Vec<String> {
        let lists = ["tools", "prompts", "resources"];
        let message = |list: &str| json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")});
        if self.setup.is_initialized {
            return lines_of(lists.into_iter().map(message));
        }
        let subscriptions = self.open.iter().filter_map(|(id, request)| {
            let id: Value = serde_json::from_str(id).ok()?;
            Some((id, request.subscribed_notifications()?))
        });
        let messages = subscriptions.flat_map(|(id, wanted)| {
            let is_wanted = move |list: &&str| wanted[format!("{list}ListChanged")] == true;
            lists.into_iter().filter(is_wanted).map(move |list| {
                let mut message = message(list);
                message["params"]["_meta"][SUBSCRIPTION_ID_KEY] = id.clone();
                message
            })
        });
        lines_of(messages)
    }

    fn remove_open(&mut self, id: &str) -> Option<OpenRequest> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    fn record_answer(&mut self, id: &str, is_error: bool) {
        let request = self.remove_open(id);
        let line = request.and_then(OpenRequest::into_line);
        let Some(line) = line.filter(|_| !is_error) else { return };
        let Some(fields) = Fields::read(&line) else { return };
        let params = || fields.get("params").and_then(Fields::read);
        let uri = || params().and_then(|params| params.string("uri"));
        match fields.string("method").as_deref() {
            Some("initialize") => self.setup.initialize = Some(line),
            Some("logging/setLevel") => self.setup.log_level = Some(line),
            Some("resources/subscribe") => {
                let uri = uri();
                self.setup.subscriptions.extend(uri.map(|uri| (uri, line)));
            }
            Some("resources/unsubscribe") => {
                uri().map(|uri| self.setup.subscriptions.remove(&uri));
            }
            _ => {}
        }
    }

    /// Returns the id under which the client knows a request of the gateway.
    fn client_id(&self, id: &str) -> String {
        match self.generation {
            0 => id.to_owned(),
            generation => Value::from(format!("{generation}:{id}")).to_string(),
        }
    }

    /// Returns the gateway's id of a request, if it differs from the id that the client knows.
    fn gateway_id(&self, id: &str) -> Option<String> {
        let text: String = serde_json::from_str(id).ok()?;
        let own = text.strip_prefix(&format!("{}:", self.generation))?;
        (self.generation > 0).then(|| own.to_owned())
    }

    /// Replaces the gateway's id in a cancellation with the id that the client knows.
    fn with_client_id(&mut self, line: String) -> String {
        let replaced = || {
            let fields = Fields::read(&line)?;
            let params = Fields::read(fields.get("params")?)?;
            let id = self.client_id(&normalized(params.get("requestId")?));
            let params = params.with(&[("requestId", Some(id.clone()))]);
            Some((fields.with(&[("params", Some(params))]), id))
        };
        let Some((replaced, id)) = replaced() else { return line };
        self.open_at_client.remove(&id);
        if self.generation == 0 { line } else { replaced }
    }
}

fn lines_of(messages: impl Iterator<Item = Value>) -> Vec<String> {
    messages.map(|message| message.to_string()).collect()
}

/// Returns an id in the form in which equal ids are equal texts.
fn normalized(id: &str) -> String {
    serde_json::from_str::<Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

#[cfg(feature = "fuzzing")]
mod fuzzed_relay;
#[cfg(feature = "fuzzing")]
pub use fuzzed_relay::FuzzedRelay;

#[cfg(test)]
mod tests;
