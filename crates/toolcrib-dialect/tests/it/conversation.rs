//! Plays a client and an upstream without a network.
//!
//! A [`TestConversation`] is one conversation over several requests. It stores the records, plays the upstream's
//! responses one after the other, and keeps every body that was sent upstream.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{FourCharsPerToken, Settings};
use toolcrib_dialect::exchange::action::ExchangeConfig;
use toolcrib_dialect::{Api, DEFAULT_HIDDEN_ROUNDS, Exchange, Mode, RecordKey, Request, Toolset};

use crate::driven_turn::settings_for_mode;
pub(crate) use crate::driven_turn::{DrivenTurn, NextStep, TurnOutcome};

/// A conversation of one client, over several requests.
pub(crate) struct TestConversation {
    pub(crate) api: Api,
    pub(crate) mode: Mode,
    pub(crate) settings: Settings,
    /// The stored records.
    pub(crate) records: HashMap<RecordKey, Vec<u8>>,
    /// The bodies that were sent upstream, over all requests.
    pub(crate) sent: Vec<Value>,
    /// The bodies of `sent` as raw text.
    pub(crate) sent_bodies: Vec<String>,
    pub(crate) caller: [u8; 32],
    pub(crate) rounds: usize,
}

/// The response that the client received.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    /// The body of the response, or all bytes of the stream if the response was streamed.
    pub(crate) text: String,
    pub(crate) done: TurnOutcome,
}

impl ClientResponse {
    /// Returns the response as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Returns the data of each event of a stream. Data that is not JSON is returned as a string.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
    }
}

impl TestConversation {
    pub(crate) fn new(api: Api, mode: Mode) -> Self {
        let settings = Settings::default();
        let (records, sent, sent_bodies) = (HashMap::new(), Vec::new(), Vec::new());
        Self {
            api,
            mode,
            settings,
            records,
            sent,
            sent_bodies,
            caller: [7; 32],
            rounds: DEFAULT_HIDDEN_ROUNDS,
        }
    }

    /// Starts the exchange of a client's request, drives it until the first request to the upstream is sent, and
    /// returns it.
    pub(crate) fn turn(&self, target: &str, body: &str) -> DrivenTurn {
        let (requested, native) = settings_for_mode(self.mode);
        let mut config = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
        config.settings = Arc::new(self.settings.clone());
        (config.requested, config.upstream.overrides) = (requested.into(), Some(native));
        (config.caller, config.max_hidden_rounds) = (self.caller, self.rounds);
        let request = Request::read(self.api, target, body.as_bytes().to_vec());
        let exchange = Exchange::new(self.api, target, request, config);
        let stored = self.records.clone();
        let records = Box::new(move |_, key: &RecordKey| stored.get(key).cloned());
        let turn =
            DrivenTurn::new(exchange, records, |plan, tools| Arc::new(Toolset::new(plan, tools)));
        let report = turn.report();
        assert_eq!(report.mode, self.mode.name(), "{report}");
        turn
    }

    /// Sends one client request, plays `responses` as the upstream's responses, and returns what the client gets.
    /// Checks that every response is used.
    pub(crate) fn send(
        &mut self,
        target: &str,
        body: &Value,
        responses: &[String],
    ) -> ClientResponse {
        let stream = Request::read(self.api, target, body.to_string().into_bytes()).unwrap().stream;
        let mut turn = self.turn(target, &body.to_string());
        let mut out = Vec::new();
        let mut responses = responses.iter();
        let done = loop {
            let sent = turn.request();
            self.sent.push(serde_json::from_str(&sent).unwrap());
            self.sent_bodies.push(sent);
            let response = responses.next().expect("the test has no further response for the turn");
            let next = if stream {
                // The response is fed in pieces of an odd size, so that events are split anywhere.
                response.as_bytes().chunks(7).for_each(|piece| turn.bytes(piece, &mut out));
                turn.end(&mut out)
            } else {
                turn.complete_response(response.as_bytes()).expect("a response")
            };
            match next {
                NextStep::Again => {}
                NextStep::Done(done) => break done,
            }
        };
        assert_eq!(responses.next(), None, "a response was not used");
        self.records.extend(done.records.iter().cloned());
        let text = done.body.clone().unwrap_or_else(|| String::from_utf8(out).unwrap());
        ClientResponse { text, done }
    }
}

/// Feeds the upstream's responses in `rounds` to a turn, in pieces whose sizes cycle through `pieces`. Returns all
/// bytes that the client gets.
pub(crate) fn feed(mut turn: DrivenTurn, rounds: &[Vec<u8>], pieces: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sizes = pieces.iter().copied().cycle();
    for round in rounds {
        let mut rest = &round[..];
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(sizes.next().unwrap_or(1).clamp(1, rest.len()));
            turn.bytes(piece, &mut out);
            rest = more;
        }
        if matches!(turn.end(&mut out), NextStep::Done(_)) {
            break;
        }
    }
    out
}

/// Returns `count` tools of a made-up company, each with a few parameters. The first is `crm__find_customer
/// {q}`, the second `crm__update_customer {id, name}`.
pub(crate) fn tools(count: usize) -> Vec<(String, String, Value)> {
    let mut tools = vec![
        (
            "crm__find_customer".to_owned(),
            "Finds a customer of ours by name or number.".to_owned(),
            json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}),
        ),
        (
            "crm__update_customer".to_owned(),
            "Changes what we know of a customer.".to_owned(),
            json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}),
        ),
    ];
    let jobs = ["list", "create", "delete", "archive", "export"];
    let things =
        ["invoice", "order", "parcel", "meeting", "contract", "ticket", "report", "budget"];
    for at in 0..count.saturating_sub(2) {
        let (job, thing) = (jobs[at % 5], things[at / 5 % 8]);
        let office = at / 40;
        tools.push((
            format!("office{office}__{job}_{thing}"),
            format!(
                "Lets you {job} one {thing} of office number {office}, with all that belongs to it."
            ),
            json!({"type": "object", "properties": {
                "key": {"type": "string", "description": format!("Which {thing}, by its key.")},
                "reason": {"type": "string", "description": "Why, for the protocol."},
                "quiet": {"type": "boolean", "description": "Whether nobody is told."}
            }, "required": ["key"]}),
        ));
    }
    tools
}

fn text(value: &Value) -> String {
    value.to_string()
}

/// Whether the history `longer` begins with the entries of the history `shorter`, byte for byte.
pub(crate) fn begins_with(longer: &Value, shorter: &Value) -> bool {
    let (Some(longer), Some(shorter)) = (longer.as_array(), shorter.as_array()) else {
        return false;
    };
    longer.len() >= shorter.len() && longer.iter().zip(shorter).all(|(a, b)| text(a) == text(b))
}
