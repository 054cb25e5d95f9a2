//! What the client gets of an exchange: the head of its response, the frames of a stream, or an error.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use toolcrib_dialect::budget::Exceeded;
use toolcrib_dialect::exchange::action::{self, Done, Ending, Start};
use toolcrib_dialect::{Action, Unchecked};
use toolcrib_server::BodyWithPermit;

use super::{Driver, Output, Source};
use crate::error::{error, event};
use crate::head;
use crate::log::unreachable;
use crate::revocation::REVOKED;
use crate::revoked_stream::until_revoked;
use crate::upstream::{Lost, writable_events};

impl Driver {
    /// The response, once its head is known.
    pub(super) fn start(mut self, start: Start) -> Response {
        let mut headers = head::down(&self.headers, start.is_intact);
        if start.is_translated {
            // These headers describe the body before its translation.
            for name in ["content-length", "content-md5", "digest", "etag"] {
                headers.remove(name);
            }
        }
        head::write_report(self.exchange.report(), &mut headers);
        if let Some(summary) = &start.summary {
            head::taken(summary, &mut headers);
        }
        let body = match start.body {
            action::Body::Complete(body) => {
                self.finish();
                // It counts until a slow client has taken it. Its size was counted before, so its share shrinks or
                // hardly changes.
                self.memory.resize_fairly(body.len());
                Body::new(BodyWithPermit::new(Body::from(body), self.memory))
            }
            action::Body::AsItComes => {
                self.finish();
                match std::mem::replace(&mut self.source, Source::Nothing) {
                    Source::Reading(body) => {
                        let body = match self.recorder.take() {
                            Some(recorder) => recorder.watch(Arc::clone(&self.log.proxy), body),
                            None => body,
                        };
                        let events_of = writable_events(&self.headers).then_some(self.log.api);
                        Body::from_stream(until_revoked(body, self.revocation.clone(), events_of))
                    }
                    _ => Body::empty(),
                }
            }
            action::Body::Forwarded => {
                self.has_trailers = !start.is_intact;
                if start.is_intact {
                    self.log.done(self.exchange.report(), &self.exchange.summary(), start.status);
                    self.is_reported = true;
                }
                if self.has_trailers {
                    let names = HeaderValue::from_static(head::TRAILERS);
                    headers.insert(header::TRAILER, names);
                }
                let frames = stream::unfold(self, |mut driver| async move {
                    let frame = driver.frame().await?;
                    Some((frame, driver))
                });
                Body::new(StreamBody::new(frames))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(start.status).unwrap_or_default();
        *response.headers_mut() = headers;
        response
    }

    /// Reports an exchange whose response needs nothing more.
    fn finish(&mut self) {
        while let Some(action) = self.exchange.next() {
            if let Action::Done(done) = action {
                self.log.done(self.exchange.report(), &done.summary, done.status);
            }
        }
    }

    /// The next frame of a stream. The request is reported before the last bytes are given out: a client
    /// may disconnect as soon as it has them.
    pub(super) async fn frame(&mut self) -> Option<Result<Frame<Bytes>, Lost>> {
        while !self.is_over && (self.ready.is_empty() || self.exchange.is_over()) {
            match self.next().await {
                Output::Bytes(bytes) => {
                    if let Some(recorder) = &mut self.recorder {
                        Box::pin(recorder.push(&self.log.proxy, &bytes)).await;
                    }
                    self.ready.push_back(Ok(Frame::data(bytes)));
                }
                Output::Start(_) => {}
                Output::Revoked => {
                    self.is_over = true;
                    let last = event(self.log.api, StatusCode::UNAUTHORIZED, REVOKED).into();
                    self.ready.push_back(Ok(Frame::data(last)));
                }
                Output::Done(done) => {
                    if let Some(recorder) = &mut self.recorder {
                        Box::pin(recorder.end(&self.log.proxy)).await;
                    }
                    // What the upstream still sends is for nobody.
                    (self.is_over, self.source) = (true, Source::Nothing);
                    let last = self.last_frame(done);
                    self.ready.extend(last);
                }
            }
        }
        self.ready.pop_front()
    }

    fn last_frame(&mut self, done: Done) -> Option<Result<Frame<Bytes>, Lost>> {
        if done.ending != Ending::Complete {
            self.log.proxy.metrics.failure();
        }
        if !self.is_reported {
            self.log.done(self.exchange.report(), &done.summary, done.status);
        }
        match done.ending {
            Ending::Exceeded(exceeded) => {
                // The client has an error event of its API.
                tracing::warn!(host = %self.log.host, %exceeded, "the upstream was cut off");
                None
            }
            Ending::Unchecked(why) => {
                let text = self.unchecked(why);
                let last = event(self.log.api, StatusCode::BAD_GATEWAY, &text);
                Some(Ok(Frame::data(last.into())))
            }
            Ending::CutOff => {
                // The client gets what it would have got without us: its stream is cut off too.
                let lost = self.reason(done.ending);
                tracing::warn!(%lost, "the upstream broke off");
                Some(Err(lost))
            }
            Ending::Complete if self.has_trailers => {
                let mut trailers = HeaderMap::new();
                head::taken(&done.summary, &mut trailers);
                Some(Ok(Frame::trailers(trailers)))
            }
            Ending::Failed => {
                if let Some(lost) = &self.lost {
                    tracing::warn!(%lost, "the upstream cannot be reached for a hidden round");
                }
                None
            }
            Ending::Untranslatable(why) => {
                tracing::warn!(%why, "a hidden round cannot be translated");
                None
            }
            Ending::Complete | Ending::Unreachable => None,
        }
    }

    /// The response to a request that got none.
    pub(super) fn refuse(mut self, done: Done) -> Response {
        let lost = self.reason(done.ending);
        match done.ending {
            Ending::Untranslatable(why) => {
                error(self.log.api, StatusCode::BAD_REQUEST, &why.to_string())
            }
            Ending::Unchecked(why) => {
                self.log.proxy.metrics.failure();
                let text = self.unchecked(why);
                error(self.log.api, StatusCode::BAD_GATEWAY, &text)
            }
            Ending::Exceeded(Exceeded::Total(_)) => self.log.no_memory(&lost),
            Ending::CutOff | Ending::Exceeded(_) => self.log.broken(&lost),
            Ending::Complete | Ending::Failed | Ending::Unreachable => {
                unreachable(&self.log.proxy, self.log.api, &self.log.host, &lost)
            }
        }
    }

    /// Logs that a response is withheld from a limited caller. Returns the message for the client.
    fn unchecked(&self, why: Unchecked) -> String {
        tracing::warn!(host = %self.log.host, reason = %why, "a response for a caller with a limited scope was refused");
        format!("this caller's tools are limited, and the response is not passed on because {why}")
    }

    /// Why the upstream was lost.
    fn reason(&mut self, ending: Ending) -> Lost {
        match ending {
            Ending::Exceeded(exceeded) => Lost::new(exceeded.to_string()),
            _ => self.lost.take().unwrap_or_else(|| Lost::new("the connection was closed")),
        }
    }
}
