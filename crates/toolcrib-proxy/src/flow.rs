//! A streamed answer, over all its rounds.
//!
//! The client pulls: each frame it asks for is made from what the upstream has sent by then. When the
//! client goes away this value is dropped, and with it the connection to the upstream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use toolcrib_dialect::turn::Done;
use toolcrib_dialect::{Next, Turn};

use crate::course::{Course, Leg};
use crate::exchange::Exchange;
use crate::head;
use crate::upstream::{Answer, Chunks, Failed, Lost};

/// How long a client waits for a sign of life. Clients and the proxies before them give up after a
/// minute or more of silence.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

type Waiting = Pin<Box<dyn Future<Output = Result<Answer, Failed>> + Send>>;

/// What is read at the moment.
enum From {
    /// The events of a round.
    Reading(Chunks),
    /// Nothing yet: the next round has been asked for.
    Waiting(Waiting),
    /// All is said.
    Over,
}

/// The answer under way.
pub(crate) struct Flow {
    exchange: Exchange,
    course: Course,
    turn: Turn,
    leg: Leg,
    from: From,
    ready: VecDeque<Result<Frame<Bytes>, Lost>>,
}

impl Flow {
    pub(crate) fn new(
        exchange: Exchange,
        course: Course,
        turn: Turn,
        leg: Leg,
        body: Chunks,
    ) -> Self {
        let (from, ready) = (From::Reading(body), VecDeque::new());
        Self { exchange, course, turn, leg, from, ready }
    }

    async fn next(&mut self) -> Option<Result<Frame<Bytes>, Lost>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            match &mut self.from {
                From::Over => return None,
                From::Reading(body) => match tokio::time::timeout(KEEP_ALIVE, body.next()).await {
                    Err(_) => self.keep_alive(),
                    Ok(chunk) => self.read(chunk).await,
                },
                From::Waiting(answer) => match tokio::time::timeout(KEEP_ALIVE, answer).await {
                    Err(_) => self.keep_alive(),
                    Ok(answer) => self.answered(answer).await,
                },
            }
        }
    }

    /// A sign of life, as long as the turn is in time: then a client's own patience counts again.
    fn keep_alive(&mut self) {
        if !self.exchange.is_late() {
            self.send(self.turn.keep_alive().to_vec());
        }
    }

    fn send(&mut self, out: Vec<u8>) {
        if !out.is_empty() {
            self.ready.push_back(Ok(Frame::data(out.into())));
        }
    }

    async fn read(&mut self, chunk: Option<Result<Bytes, Lost>>) {
        let mut out = Vec::new();
        match chunk {
            Some(Ok(bytes)) => {
                self.turn.bytes(&bytes, &mut out);
                self.send(out);
                if self.turn.is_broken() {
                    self.lost(Lost::too_large());
                }
            }
            // Broken off: the client gets what it would have got, an end without an end.
            Some(Err(lost)) if !self.turn.has_ended() => self.lost(lost),
            // All was said before it broke off.
            Some(Err(_)) | None => {
                if self.exchange.is_late() {
                    self.turn.hurry();
                }
                match self.turn.end(&mut out) {
                    Next::Done(done) => self.finish(&done, out).await,
                    Next::Again => {
                        self.send(out);
                        self.ask();
                    }
                }
            }
        }
    }

    /// The upstream is lost in the middle of what it said.
    fn lost(&mut self, lost: Lost) {
        tracing::warn!(%lost, "the upstream broke off");
        self.exchange.proxy.metrics.failure();
        self.exchange.done(&self.turn.summary(), StatusCode::BAD_GATEWAY);
        self.from = From::Over;
        self.ready.push_back(Err(lost));
    }

    /// Asks for the next round.
    fn ask(&mut self) {
        let (line, body) = (self.leg.line.clone(), self.turn.request());
        self.from = From::Waiting(Box::pin(async move { line.post(body).await }));
    }

    /// The next round answers, or does not.
    async fn answered(&mut self, answer: Result<Answer, Failed>) {
        let (status, body) = match answer {
            Ok(answer) if answer.status.is_success() && answer.is_events() => {
                self.course.went(&self.exchange, answer.status);
                self.from = From::Reading(answer.body);
                return;
            }
            Ok(answer) => (answer.status, answer.whole().await.unwrap_or_default()),
            Err(lost) => {
                tracing::warn!(%lost, "the upstream cannot be reached for a hidden round");
                (StatusCode::BAD_GATEWAY, Bytes::new())
            }
        };
        let Self { exchange, course, turn, leg, .. } = self;
        if course.turns(exchange, turn, leg, status, &body).await {
            return self.ask();
        }
        self.exchange.proxy.metrics.failure();
        let mut out = Vec::new();
        let summary = self.turn.fail(status.as_u16(), &body, &mut out);
        self.send(out);
        self.exchange.done(&summary, status);
        self.from = From::Over;
    }

    async fn finish(&mut self, done: &Done, out: Vec<u8>) {
        self.from = From::Over;
        self.exchange.keep(done).await;
        self.send(out);
        self.exchange.done(&done.summary, StatusCode::OK);
        let mut trailers = HeaderMap::new();
        head::taken(&done.summary, &mut trailers);
        self.ready.push_back(Ok(Frame::trailers(trailers)));
    }
}

/// The response whose body is this flow.
pub(crate) fn respond(flow: Flow, status: StatusCode, headers: &HeaderMap) -> Response {
    let mut response = flow.exchange.respond(status, headers, Body::empty(), false, None);
    let names = "x-toolcrib-rounds, x-toolcrib-searches, x-toolcrib-last-input-tokens, x-toolcrib-last-output-tokens";
    response.headers_mut().insert(header::TRAILER, HeaderValue::from_static(names));
    let frames = stream::unfold(flow, |mut flow| async move {
        let frame = flow.next().await?;
        Some((frame, flow))
    });
    *response.body_mut() = Body::new(StreamBody::new(frames));
    response
}
