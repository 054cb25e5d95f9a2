//! The exchange of one request, with the upstream played by hand.
//!
//! The fuzz targets include this file, so that there is one way to do so.

use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_dialect::capability::{CapabilityOverrides, HostedSupport};
use toolcrib_dialect::exchange::action::{DecisionReport, ResponseBody};
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};
use toolcrib_dialect::{Action, Exchange, Mode, RecordKey, Toolset, ToolsetPlan, TurnSummary};

/// What becomes of a turn after a round.
#[derive(Debug)]
pub(crate) enum Next {
    /// Another round.
    Again,
    /// The client has its answer.
    Done(Done),
}

/// How a turn ended.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The response, unless it is a stream.
    pub(crate) body: Option<String>,
    /// What is kept for the next request.
    pub(crate) records: Vec<(RecordKey, Vec<u8>)>,
    pub(crate) summary: TurnSummary,
}

/// Records by their place in a list of keys, and the keys.
pub(crate) type Records = Box<dyn Fn(usize, &RecordKey) -> Option<Vec<u8>>>;

/// The exchange of one request, driven by hand.
pub(crate) struct Turn {
    exchange: Exchange,
    records: Records,
    make: fn(ToolsetPlan, &str) -> Arc<Toolset>,
    /// The body that was sent last.
    sent: String,
    /// Whether an answer to it has begun.
    is_answered: bool,
}

impl Turn {
    /// Drives an exchange to the point where its request is sent for the first time.
    pub(crate) fn new(
        exchange: Exchange,
        records: Records,
        make: fn(ToolsetPlan, &str) -> Arc<Toolset>,
    ) -> Self {
        let mut turn = Self { exchange, records, make, sent: String::new(), is_answered: false };
        assert!(matches!(turn.drive(&mut Vec::new()), Some(Next::Again)));
        turn
    }

    /// What was decided about the request.
    pub(crate) fn report(&self) -> &DecisionReport {
        self.exchange.report()
    }

    /// Does what the exchange asks for until it waits for the upstream: `Again` if something was sent to
    /// it. What the client gets goes to `out`.
    fn drive(&mut self, out: &mut Vec<u8>) -> Option<Next> {
        let mut done = Done::default();
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
                    (self.is_answered, next) = (false, Some(Next::Again));
                }
                Action::StartResponse(start) => match start.body {
                    ResponseBody::Complete(body) if !start.is_unmodified => {
                        done.body = Some(String::from_utf8(body.to_vec()).unwrap());
                    }
                    // Not an answer of this API.
                    ResponseBody::Complete(_) | ResponseBody::Passthrough => return None,
                    ResponseBody::Forwarded => {}
                },
                Action::Forward(bytes) => out.extend_from_slice(&bytes),
                Action::StoreRecords(records) => done.records = records,
                Action::Done(ended) => {
                    done.summary = ended.summary;
                    next = Some(Next::Done(std::mem::take(&mut done)));
                }
                Action::FellBack(_) | Action::Remember(_) => {}
            }
        }
        next
    }

    fn answer(&mut self, status: u16, is_events: bool) {
        if !std::mem::replace(&mut self.is_answered, true) {
            self.exchange.response_started(status, is_events);
        }
    }

    /// The body that went up last.
    pub(crate) fn request(&self) -> String {
        self.sent.clone()
    }

    /// Plays bytes of a streamed answer.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.answer(200, true);
        self.exchange.response_bytes(Bytes::copy_from_slice(bytes));
        self.drive(out);
    }

    /// The streamed answer is over.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Next {
        self.answer(200, true);
        self.exchange.response_ended();
        self.drive(out).unwrap_or(Next::Done(Done::default()))
    }

    /// Plays a complete answer; `None` if the client got it as it came.
    pub(crate) fn whole(&mut self, body: &[u8]) -> Option<Next> {
        self.answer(200, false);
        self.exchange.response_bytes(Bytes::copy_from_slice(body));
        self.exchange.response_ended();
        self.drive(&mut Vec::new())
    }

    /// Plays an error.
    pub(crate) fn fail(&mut self, status: u16, body: &[u8], out: &mut Vec<u8>) {
        self.answer(status, false);
        self.exchange.response_bytes(Bytes::copy_from_slice(body));
        self.exchange.response_ended();
        self.drive(out);
    }

    pub(crate) fn keep_alive(&self) -> &'static [u8] {
        self.exchange.keep_alive()
    }
}

/// An upstream and a configuration under which requests are sent in this mode.
pub(crate) fn forced(mode: Mode) -> (DisclosureSetting, CapabilityOverrides) {
    // An upstream that knows nothing would get other words.
    let knows = CapabilityOverrides { client_search: Some(true), ..CapabilityOverrides::default() };
    match mode {
        Mode::Bridge => (DisclosureSetting::Bridge, knows),
        Mode::Reveal => (DisclosureSetting::Reveal, knows),
        Mode::Terse => (DisclosureSetting::Terse, knows),
        Mode::Append => (DisclosureSetting::Append, knows),
        Mode::Reference(ReferenceKind::ToolReference) => {
            (DisclosureSetting::Reference, CapabilityOverrides { references: Some(true), ..knows })
        }
        Mode::Reference(ReferenceKind::SearchOutput) => (DisclosureSetting::Reference, knows),
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
            };
            (
                DisclosureSetting::Hosted,
                CapabilityOverrides { hosted: Some(hosted), ..CapabilityOverrides::default() },
            )
        }
    }
}
