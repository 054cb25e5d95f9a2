//! The loop that runs an exchange. An exchange is the state machine in `toolcrib-dialect` that handles one client
//! request; the loop performs the actions that the exchange returns and reports their results to it.
//!
//! The client drives the loop. Until the head of the response is known, the loop runs in the request's own task; after
//! that it runs whenever the client's connection polls for the next frame of a stream. If the client disconnects, the
//! loop is dropped, and with it the connection to the upstream. `client_response` makes the response for the client.

mod client_response;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body::Frame;
use toolcrib_dialect::LimitExceeded;
use toolcrib_dialect::exchange::action::{
    self, Ending, ExchangeOutcome, ModeFallback, OutgoingRequest, ResponseStart,
};
use toolcrib_dialect::{Action, Exchange};
use toolcrib_server::MemoryShare;

use crate::api_error::error_response;
use crate::headers;
use crate::ownership_recorder::OwnershipRecorder;
use crate::request_log::RequestLog;
use crate::revocation::{REVOKED_MESSAGE, Revocation};
use crate::upstream_request::{
    BodyChunks, UpstreamFailure, UpstreamRequest, UpstreamResponse, is_event_stream,
};

/// Time without data after which a keep-alive is sent to the client. Clients, and reverse proxies between a client and
/// this proxy, give up after a minute or more without data.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The state of the request to the upstream.
enum UpstreamState {
    Idle,
    /// A request was sent, and its response has not started.
    AwaitingResponse(BoxFuture<'static, Result<UpstreamResponse, UpstreamFailure>>),
    /// The body of the response is being received.
    ReceivingBody(BodyChunks),
}

/// What the loop returns for the client.
enum LoopOutput {
    Start(ResponseStart),
    Bytes(Bytes),
    Done(ExchangeOutcome),
    /// The caller's key was revoked.
    Revoked,
}

/// An exchange with its connections.
pub(crate) struct ExchangeLoop {
    log: RequestLog,
    upstream: UpstreamRequest,
    exchange: Exchange,
    revocation: Revocation,
    upstream_state: UpstreamState,
    /// The memory that the upstream's responses take.
    memory: MemoryShare,
    /// The headers of the upstream's latest response.
    headers: HeaderMap,
    /// Why the request to the upstream failed.
    upstream_error: Option<UpstreamFailure>,
    started: Instant,
    /// Whether the response to the client has trailers.
    has_trailers: bool,
    /// The id of the caller that is recorded as the owner of the stored objects in the response, if other callers use
    /// the same account.
    owner: Option<[u8; 32]>,
    recorder: Option<OwnershipRecorder>,
    /// Whether the request was already reported when its response started. It is then not reported again at the end.
    is_reported: bool,
    /// Frames that are ready for the client.
    ready: VecDeque<Result<Frame<Bytes>, UpstreamFailure>>,
    is_finished: bool,
}

impl ExchangeLoop {
    pub(crate) fn new(
        log: RequestLog,
        upstream: UpstreamRequest,
        exchange: Exchange,
        revocation: Revocation,
    ) -> Self {
        Self {
            memory: log.proxy.responses.share(),
            log,
            upstream,
            exchange,
            revocation,
            upstream_state: UpstreamState::Idle,
            headers: HeaderMap::new(),
            upstream_error: None,
            started: Instant::now(),
            has_trailers: false,
            owner: None,
            recorder: None,
            is_reported: false,
            ready: VecDeque::new(),
            is_finished: false,
        }
    }

    /// Makes the loop record the caller as the owner of the stored objects in the response.
    pub(crate) fn record_ownership_for(mut self, caller: [u8; 32]) -> Self {
        self.owner = Some(caller);
        self.upstream.is_read = true;
        self
    }

    /// Runs the exchange and returns the response to the client.
    pub(crate) async fn respond(mut self) -> Response {
        loop {
            match self.next().await {
                LoopOutput::Start(start) => {
                    if let Some(caller) = self.owner {
                        let (api, is_event_stream) = (self.log.api, is_event_stream(&self.headers));
                        let memory = self.log.proxy.responses.share();
                        let mut recorder =
                            OwnershipRecorder::new(api, caller, is_event_stream, memory);
                        if let action::ResponseBody::Complete(body) = &start.body {
                            Box::pin(recorder.complete(&self.log.proxy, body)).await;
                        }
                        self.recorder = Some(recorder);
                    }
                    return self.start(start);
                }
                LoopOutput::Done(done) => return self.error_instead_of_response(done),
                LoopOutput::Revoked => {
                    return error_response(self.log.api, StatusCode::UNAUTHORIZED, REVOKED_MESSAGE);
                }
                LoopOutput::Bytes(_) => {}
            }
        }
    }

    /// Runs until there is something for the client.
    async fn next(&mut self) -> LoopOutput {
        loop {
            match self.exchange.next_action() {
                // Futures of actions that happen once in a request are boxed. Otherwise the future of this loop would
                // reserve memory for them as long as the stream lasts.
                Some(Action::LoadRecords(keys)) => {
                    let found = Box::pin(self.log.proxy.load(&keys)).await;
                    self.exchange.records_loaded(found);
                }
                Some(Action::PrepareToolset(plan)) => {
                    let toolsets = &self.log.proxy.toolsets;
                    let toolset =
                        Box::pin(toolsets.get_or_build(*plan, self.exchange.tools())).await;
                    self.exchange.toolset_prepared(toolset);
                }
                Some(Action::Send(request)) => self.send(request),
                Some(Action::StoreRecords(records)) => {
                    Box::pin(self.log.proxy.store(records)).await;
                }
                Some(Action::FellBack(fell_back)) => self.fell_back(fell_back),
                Some(Action::Remember(learned)) => self.log.proxy.learn(learned),
                Some(Action::StartResponse(start)) => return LoopOutput::Start(start),
                Some(Action::Forward(bytes)) => return LoopOutput::Bytes(bytes),
                Some(Action::Done(done)) => return LoopOutput::Done(done),
                None => {
                    let revocation = self.revocation.clone();
                    let output = tokio::select! {
                        biased;
                        () = revocation.revoked() => return LoopOutput::Revoked,
                        output = self.receive() => output,
                    };
                    if let Some(output) = output {
                        return output;
                    }
                }
            }
        }
    }

    /// Waits for the upstream, and reports what arrives to the exchange. If nothing arrives for
    /// [`KEEP_ALIVE_INTERVAL`], returns a keep-alive for the client, if possible; otherwise `None`.
    async fn receive(&mut self) -> Option<LoopOutput> {
        match &mut self.upstream_state {
            UpstreamState::AwaitingResponse(answer) => {
                match tokio::time::timeout(KEEP_ALIVE_INTERVAL, answer).await {
                    Ok(Ok(answer)) => {
                        let (status, is_event_stream) =
                            (answer.status.as_u16(), answer.is_event_stream());
                        self.headers = answer.headers;
                        self.upstream_state = UpstreamState::ReceivingBody(answer.body);
                        if headers::is_compressed(&self.headers) {
                            self.exchange.compressed_response_started(status, is_event_stream);
                        } else {
                            self.exchange.response_started(status, is_event_stream);
                        }
                        None
                    }
                    Ok(Err(error)) => {
                        (self.upstream_state, self.upstream_error) =
                            (UpstreamState::Idle, Some(error));
                        self.exchange.upstream_unreachable();
                        None
                    }
                    Err(_) => self.keep_alive(),
                }
            }
            UpstreamState::ReceivingBody(body) => {
                match tokio::time::timeout(KEEP_ALIVE_INTERVAL, body.next()).await {
                    Ok(Some(Ok(bytes))) => {
                        self.exchange.response_bytes(bytes);
                        self.count_memory();
                        None
                    }
                    Ok(end) => {
                        self.upstream_state = UpstreamState::Idle;
                        if self.is_late() {
                            self.exchange.make_round_last();
                        }
                        match end {
                            Some(Err(error)) => {
                                self.upstream_error = Some(error);
                                self.exchange.response_cut_off();
                            }
                            _ => self.exchange.response_ended(),
                        }
                        None
                    }
                    Err(_) => self.keep_alive(),
                }
            }
            // An exchange waits only after it has sent a request, so this is not expected. If it happens, the exchange
            // ends with an error.
            UpstreamState::Idle => Some(LoopOutput::Done(ExchangeOutcome {
                ending: Ending::Unreachable,
                status: 502,
                summary: self.exchange.summary(),
            })),
        }
    }

    /// Counts the memory that the exchange currently holds. Ends the exchange if too little of the budget for responses
    /// is left.
    fn count_memory(&mut self) {
        if !self.memory.resize_fairly(self.exchange.held_bytes()) {
            let exceeded = LimitExceeded::Total(self.log.proxy.responses.limit());
            (self.upstream_state, self.upstream_error) =
                (UpstreamState::Idle, Some(UpstreamFailure::new(exceeded.to_string())));
            self.exchange.limit_exceeded(exceeded);
        }
    }

    /// Returns a keep-alive for the client. Returns `None` if the client cannot get one now, or if the exchange is past
    /// its deadline, so that the client can time out.
    fn keep_alive(&self) -> Option<LoopOutput> {
        let bytes = if self.is_late() { &[] } else { self.exchange.keep_alive() };
        (!bytes.is_empty()).then(|| LoopOutput::Bytes(Bytes::from_static(bytes)))
    }

    /// Whether the exchange is past its deadline.
    fn is_late(&self) -> bool {
        self.started.elapsed().as_secs() >= self.log.proxy.config.deadline
    }

    fn send(&mut self, request: OutgoingRequest) {
        if !request.dropped.is_empty() {
            tracing::debug!(dropped = ?request.dropped, "the upstream's API does not support these fields");
        }
        self.upstream_error = None;
        self.log.sent();
        self.upstream_state = UpstreamState::AwaitingResponse(self.upstream.post(request));
    }

    fn fell_back(&self, ModeFallback { from, unsupported }: ModeFallback) {
        if let Some(missing) = unsupported {
            let (host, model) = (&self.log.host, &self.log.model);
            tracing::warn!(%host, model, ?missing, "the upstream does not support a native feature; using the fallback");
        }
        self.log.proxy.metrics.fallback(self.log.api, from.name());
    }
}
