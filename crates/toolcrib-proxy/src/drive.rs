//! The loop that drives an exchange: it does what the exchange asks for and tells it what came of it.
//!
//! The client pulls. Up to the head of its response the loop runs in the request's own task; after that it
//! runs whenever the client asks for the next frame of a stream. If the client disconnects, this value is
//! dropped, and with it the connection to the upstream. `response` has what the client gets.

mod response;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body::Frame;
use toolcrib_dialect::budget::Exceeded;
use toolcrib_dialect::exchange::action::{self, Done, Ending, FellBack, Outgoing, Start};
use toolcrib_dialect::{Action, Exchange};
use toolcrib_server::MemoryShare;

use crate::error::error;
use crate::head;
use crate::log::RequestLog;
use crate::recorder::Recorder;
use crate::revocation::{REVOKED, Revocation};
use crate::upstream::{Answer, Chunks, Lost, UpstreamRequest, is_events};

/// How long a client waits for a sign of life. Clients and the proxies before them give up after a
/// minute or more of silence.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where the next bytes of the upstream come from.
enum Source {
    Nothing,
    /// A request was sent.
    Waiting(BoxFuture<'static, Result<Answer, Lost>>),
    /// Its response comes in.
    Reading(Chunks),
}

/// What the loop has for the client.
enum Output {
    Start(Start),
    Bytes(Bytes),
    Done(Done),
    /// The caller's key was revoked.
    Revoked,
}

/// An exchange and its connections.
pub(crate) struct Driver {
    log: RequestLog,
    upstream: UpstreamRequest,
    exchange: Exchange,
    revocation: Revocation,
    source: Source,
    /// The memory that the responses of the upstream take.
    memory: MemoryShare,
    /// The head of the last answer.
    headers: HeaderMap,
    /// Why the upstream was lost.
    lost: Option<Lost>,
    started: Instant,
    /// Whether the client gets trailers.
    has_trailers: bool,
    /// The caller that the ids in the response are recorded for, if others use the same account.
    recorded_for: Option<[u8; 32]>,
    recorder: Option<Recorder>,
    /// Whether the request was reported when its response began.
    is_reported: bool,
    /// Frames for the client.
    ready: VecDeque<Result<Frame<Bytes>, Lost>>,
    is_over: bool,
}

impl Driver {
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
            source: Source::Nothing,
            headers: HeaderMap::new(),
            lost: None,
            started: Instant::now(),
            has_trailers: false,
            recorded_for: None,
            recorder: None,
            is_reported: false,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// Records which responses and items the caller gets.
    pub(crate) fn record_for(mut self, caller: [u8; 32]) -> Self {
        self.recorded_for = Some(caller);
        self.upstream.is_read = true;
        self
    }

    /// The response to the client.
    pub(crate) async fn respond(mut self) -> Response {
        loop {
            match self.next().await {
                Output::Start(start) => {
                    if let Some(caller) = self.recorded_for {
                        let (api, is_events) = (self.log.api, is_events(&self.headers));
                        let memory = self.log.proxy.responses.share();
                        let mut recorder = Recorder::new(api, caller, is_events, memory);
                        if let action::Body::Complete(body) = &start.body {
                            Box::pin(recorder.complete(&self.log.proxy, body)).await;
                        }
                        self.recorder = Some(recorder);
                    }
                    return self.start(start);
                }
                Output::Done(done) => return self.refuse(done),
                Output::Revoked => {
                    return error(self.log.api, StatusCode::UNAUTHORIZED, REVOKED);
                }
                Output::Bytes(_) => {}
            }
        }
    }

    /// The loop: runs until there is something for the client.
    async fn next(&mut self) -> Output {
        loop {
            match self.exchange.next() {
                // What happens once in a request is boxed: it would take memory for as long as a stream lasts.
                Some(Action::Load(keys)) => {
                    let found = Box::pin(self.log.proxy.load(&keys)).await;
                    self.exchange.loaded(found);
                }
                Some(Action::Prepare(plan)) => {
                    let toolsets = &self.log.proxy.toolsets;
                    let toolset =
                        Box::pin(toolsets.find_or_make(*plan, self.exchange.tools())).await;
                    self.exchange.prepared(toolset);
                }
                Some(Action::Send(request)) => self.send(request),
                Some(Action::Store(records)) => Box::pin(self.log.proxy.store(records)).await,
                Some(Action::FellBack(fell_back)) => self.fell_back(fell_back),
                Some(Action::Learn(learned)) => self.log.proxy.learn(learned),
                Some(Action::Respond(start)) => return Output::Start(start),
                Some(Action::Forward(bytes)) => return Output::Bytes(bytes),
                Some(Action::Done(done)) => return Output::Done(done),
                None => {
                    let revocation = self.revocation.clone();
                    let output = tokio::select! {
                        biased;
                        () = revocation.happens() => return Output::Revoked,
                        output = self.receive() => output,
                    };
                    if let Some(output) = output {
                        return output;
                    }
                }
            }
        }
    }

    /// Waits for the upstream. Returns a sign of life for the client if that takes long.
    async fn receive(&mut self) -> Option<Output> {
        match &mut self.source {
            Source::Waiting(answer) => match tokio::time::timeout(KEEP_ALIVE, answer).await {
                Ok(Ok(answer)) => {
                    let (status, is_events) = (answer.status.as_u16(), answer.is_events());
                    self.headers = answer.headers;
                    self.source = Source::Reading(answer.body);
                    if head::is_compressed(&self.headers) {
                        self.exchange.answered_compressed(status, is_events);
                    } else {
                        self.exchange.answered(status, is_events);
                    }
                    None
                }
                Ok(Err(lost)) => {
                    (self.source, self.lost) = (Source::Nothing, Some(lost));
                    self.exchange.unreachable();
                    None
                }
                Err(_) => self.keep_alive(),
            },
            Source::Reading(body) => match tokio::time::timeout(KEEP_ALIVE, body.next()).await {
                Ok(Some(Ok(bytes))) => {
                    self.exchange.bytes(bytes);
                    self.count_memory();
                    None
                }
                Ok(end) => {
                    self.source = Source::Nothing;
                    if self.is_late() {
                        self.exchange.hurry();
                    }
                    match end {
                        Some(Err(lost)) => {
                            self.lost = Some(lost);
                            self.exchange.cut_off();
                        }
                        _ => self.exchange.end(),
                    }
                    None
                }
                Err(_) => self.keep_alive(),
            },
            // An exchange that waits has sent something; this ends one that has not.
            Source::Nothing => Some(Output::Done(Done {
                ending: Ending::Unreachable,
                status: 502,
                summary: self.exchange.summary(),
            })),
        }
    }

    /// Counts what the exchange currently holds, and ends it if there is no memory for that.
    fn count_memory(&mut self) {
        if !self.memory.resize_fairly(self.exchange.held_bytes()) {
            let exceeded = Exceeded::Total(self.log.proxy.responses.limit());
            (self.source, self.lost) = (Source::Nothing, Some(Lost::new(exceeded.to_string())));
            self.exchange.exceed(exceeded);
        }
    }

    /// A sign of life, as long as the exchange is in time: after that the client's own patience counts.
    fn keep_alive(&self) -> Option<Output> {
        let bytes = if self.is_late() { &[] } else { self.exchange.keep_alive() };
        (!bytes.is_empty()).then(|| Output::Bytes(Bytes::from_static(bytes)))
    }

    /// Whether the exchange has taken so long that it should come to an end.
    fn is_late(&self) -> bool {
        self.started.elapsed().as_secs() >= self.log.proxy.config.deadline
    }

    fn send(&mut self, request: Outgoing) {
        if !request.dropped.is_empty() {
            tracing::debug!(dropped = ?request.dropped, "the upstream's API has no words for it");
        }
        self.lost = None;
        self.log.sent();
        self.source = Source::Waiting(self.upstream.post(request));
    }

    fn fell_back(&self, FellBack { from, missing }: FellBack) {
        if let Some(missing) = missing {
            let (host, model) = (&self.log.host, &self.log.model);
            tracing::warn!(%host, model, ?missing, "a native feature was refused");
        }
        self.log.proxy.metrics.fallback(self.log.api, from.name());
    }
}
