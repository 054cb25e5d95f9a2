//! Drives the exchange of one request without a network.
//!
//! The fuzz targets include this file, so that there is only one such driver.

use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_dialect::capability::{CapabilityOverrides, HostedSupport};
use toolcrib_dialect::exchange::action::{DecisionReport, ResponseBody};
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};
use toolcrib_dialect::{Action, Exchange, Mode, RecordKey, Toolset, ToolsetPlan, TurnSummary};

/// What happens after a round.
#[derive(Debug)]
pub(crate) enum NextStep {
    /// Another request was sent to the upstream.
    Again,
    /// The turn is over: the complete response was sent to the client.
    Done(TurnOutcome),
}

/// The outcome of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnOutcome {
    /// The response, unless it was streamed.
    pub(crate) body: Option<String>,
    /// The records to store for the next request.
    pub(crate) records: Vec<(RecordKey, Vec<u8>)>,
    pub(crate) summary: TurnSummary,
}

/// A function that returns the record for a key. It also gets the key's position in the list of keys that the exchange
/// asks for.
pub(crate) type RecordLookup = Box<dyn Fn(usize, &RecordKey) -> Option<Vec<u8>>>;

/// The exchange of one request, whose actions are performed without a network.
pub(crate) struct DrivenTurn {
    exchange: Exchange,
    records: RecordLookup,
    make: fn(ToolsetPlan, &str) -> Arc<Toolset>,
    /// The body that was sent last.
    sent: String,
    /// Whether a response to the body in `sent` has begun.
    is_answered: bool,
}

impl DrivenTurn {
    /// Drives an exchange until its first request is sent.
    pub(crate) fn new(
        exchange: Exchange,
        records: RecordLookup,
        make: fn(ToolsetPlan, &str) -> Arc<Toolset>,
    ) -> Self {
        let mut turn = Self { exchange, records, make, sent: String::new(), is_answered: false };
        assert!(matches!(turn.drive(&mut Vec::new()), Some(NextStep::Again)));
        turn
    }

    /// Returns what was decided about the request.
    pub(crate) fn report(&self) -> &DecisionReport {
        self.exchange.report()
    }

    /// Performs actions until the exchange waits for the upstream or ends, and writes the client's bytes to `out`.
    /// Returns `Again` if a request was sent to the upstream and `Done` if the turn is over. Returns `None` if the
    /// exchange waits for more of the response, or if the client gets the response unchanged.
    fn drive(&mut self, out: &mut Vec<u8>) -> Option<NextStep> {
        let mut done = TurnOutcome::default();
        let mut next = None;
        while let Some(action) = self.exchange.next_action() {
            match action {
                Action::LoadRecords(keys) => {
                    let found = keys.iter().enumerate().map(|(at, key)| (self.records)(at, key));
                    self.exchange.records_loaded(found.collect());
                }
                Action::PrepareToolset(plan) => {
                    let toolset = (self.make)(*plan, self.exchange.tools());
                    self.exchange.toolset_prepared(toolset);
                }
                Action::Send(request) => {
                    self.sent = String::from_utf8(request.body.to_vec()).unwrap();
                    (self.is_answered, next) = (false, Some(NextStep::Again));
                }
                Action::StartResponse(start) => match start.body {
                    ResponseBody::Complete(body) if !start.is_unmodified => {
                        done.body = Some(String::from_utf8(body.to_vec()).unwrap());
                    }
                    // The response is an error or does not have the format of this API, so the client gets it
                    // unchanged.
                    ResponseBody::Complete(_) | ResponseBody::Passthrough => return None,
                    ResponseBody::Forwarded => {}
                },
                Action::Forward(bytes) => out.extend_from_slice(&bytes),
                Action::StoreRecords(records) => done.records = records,
                Action::Done(ended) => {
                    done.summary = ended.summary;
                    next = Some(NextStep::Done(std::mem::take(&mut done)));
                }
                Action::FellBack(_) | Action::Remember(_) => {}
            }
        }
        next
    }

    fn start_response(&mut self, status: u16, is_events: bool) {
        if !std::mem::replace(&mut self.is_answered, true) {
            self.exchange.response_started(status, is_events);
        }
    }

    /// Returns the body that was sent last.
    pub(crate) fn request(&self) -> String {
        self.sent.clone()
    }

    /// Feeds bytes of a streamed response, and writes the client's bytes to `out`.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.start_response(200, true);
        self.exchange.response_bytes(Bytes::copy_from_slice(bytes));
        self.drive(out);
    }

    /// Ends the streamed response, writes the client's bytes to `out`, and returns what happens next.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> NextStep {
        self.start_response(200, true);
        self.exchange.response_ended();
        self.drive(out).unwrap_or(NextStep::Done(TurnOutcome::default()))
    }

    /// Feeds a complete response. Returns `None` if the client got the response unchanged.
    pub(crate) fn complete_response(&mut self, body: &[u8]) -> Option<NextStep> {
        self.start_response(200, false);
        self.exchange.response_bytes(Bytes::copy_from_slice(body));
        self.exchange.response_ended();
        self.drive(&mut Vec::new())
    }

    /// Feeds an error response, and writes the client's bytes to `out`.
    pub(crate) fn fail(&mut self, status: u16, body: &[u8], out: &mut Vec<u8>) {
        self.start_response(status, false);
        self.exchange.response_bytes(Bytes::copy_from_slice(body));
        self.exchange.response_ended();
        self.drive(out);
    }

    pub(crate) fn keep_alive(&self) -> &'static [u8] {
        self.exchange.keep_alive()
    }
}

/// Returns the disclosure setting and the upstream's capabilities that make the proxy use this mode.
pub(crate) fn settings_for_mode(mode: Mode) -> (DisclosureSetting, CapabilityOverrides) {
    // Client search is enabled in most modes, even if the mode does not use it. If the upstream had no native features,
    // requests in which the client itself defers tools would be translated.
    let capable =
        CapabilityOverrides { client_search: Some(true), ..CapabilityOverrides::default() };
    match mode {
        Mode::Bridge => (DisclosureSetting::Bridge, capable),
        Mode::Reveal => (DisclosureSetting::Reveal, capable),
        Mode::Terse => (DisclosureSetting::Terse, capable),
        Mode::Append => (DisclosureSetting::Append, capable),
        Mode::Reference(ReferenceKind::ToolReference) => (
            DisclosureSetting::Reference,
            CapabilityOverrides { references: Some(true), ..capable },
        ),
        Mode::Reference(ReferenceKind::SearchOutput) => (DisclosureSetting::Reference, capable),
        Mode::Reference(ReferenceKind::AdditionalTools) => {
            let items = CapabilityOverrides {
                additional_tools: Some(true),
                ..CapabilityOverrides::default()
            };
            (
                DisclosureSetting::Reference,
                CapabilityOverrides { client_search: Some(false), ..items },
            )
        }
        Mode::Hosted(hosted) => {
            let hosted = match hosted {
                HostedSearch::Regex => HostedSupport::Regex,
                HostedSearch::Bm25 => HostedSupport::Both,
                HostedSearch::Namespaces => HostedSupport::OpenAi,
                other => unreachable!("no test for {other:?}"),
            };
            (
                DisclosureSetting::Hosted,
                CapabilityOverrides { hosted: Some(hosted), ..CapabilityOverrides::default() },
            )
        }
        other => unreachable!("no test for {other:?}"),
    }
}
