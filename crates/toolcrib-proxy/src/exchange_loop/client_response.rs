//! The response to the client: its head, the frames of a stream, or an error.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use toolcrib_dialect::LimitExceeded;
use toolcrib_dialect::exchange::action::{self, Ending, ExchangeOutcome, ResponseStart};
use toolcrib_dialect::{Action, WithheldReason};
use toolcrib_server::BodyWithPermit;

use super::{ExchangeLoop, LoopOutput, UpstreamState};
use crate::api_error::{error_event, error_response};
use crate::headers;
use crate::request_log::upstream_unreachable;
use crate::revocation::REVOKED_MESSAGE;
use crate::revoked_stream::end_when_revoked;
use crate::upstream_request::{UpstreamFailure, can_append_event};

impl ExchangeLoop {
    /// Returns the response once its head is known.
    pub(super) fn start(mut self, start: ResponseStart) -> Response {
        let mut headers = headers::for_client(&self.headers, start.is_unmodified);
        if start.is_translated {
            // These headers describe the body before its translation.
            for name in ["content-length", "content-md5", "digest", "etag"] {
                headers.remove(name);
            }
        }
        headers::write_report(self.exchange.report(), &mut headers);
        if let Some(summary) = &start.summary {
            headers::write_summary(summary, &mut headers);
        }
        let body = match start.body {
            action::ResponseBody::Complete(body) => {
                self.report_finished();
                // The body counts towards the memory budget until the client has received it. These bytes were already
                // counted, so the share hardly grows, if at all, and the result can be ignored.
                self.memory.resize_fairly(body.len());
                Body::new(BodyWithPermit::new(Body::from(body), self.memory))
            }
            action::ResponseBody::Passthrough => {
                self.report_finished();
                match std::mem::replace(&mut self.upstream_state, UpstreamState::Idle) {
                    UpstreamState::ReceivingBody(body) => {
                        let body = match self.recorder.take() {
                            Some(recorder) => recorder.watch(Arc::clone(&self.log.proxy), body),
                            None => body,
                        };
                        let events_of = can_append_event(&self.headers).then_some(self.log.api);
                        Body::from_stream(end_when_revoked(
                            body,
                            self.revocation.clone(),
                            events_of,
                        ))
                    }
                    _ => Body::empty(),
                }
            }
            action::ResponseBody::Forwarded => {
                self.has_trailers = !start.is_unmodified;
                if start.is_unmodified {
                    self.log.done(self.exchange.report(), &self.exchange.summary(), start.status);
                    self.is_reported = true;
                }
                if self.has_trailers {
                    let names = HeaderValue::from_static(headers::SUMMARY_TRAILERS);
                    headers.insert(header::TRAILER, names);
                }
                let frames = stream::unfold(self, |mut exchange_loop| async move {
                    let frame = exchange_loop.next_frame().await?;
                    Some((frame, exchange_loop))
                });
                Body::new(StreamBody::new(frames))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(start.status).unwrap_or_default();
        *response.headers_mut() = headers;
        response
    }

    /// Reports the request of an exchange whose response is complete. The exchange's remaining actions are taken,
    /// because the last one contains the data to report.
    fn report_finished(&mut self) {
        while let Some(action) = self.exchange.next_action() {
            if let Action::Done(done) = action {
                self.log.done(self.exchange.report(), &done.summary, done.status);
            }
        }
    }

    /// Returns the next frame of a stream; `None` at its end. The request is reported before the last bytes are
    /// returned, because a client may disconnect as soon as it has them.
    pub(super) async fn next_frame(&mut self) -> Option<Result<Frame<Bytes>, UpstreamFailure>> {
        while !self.is_finished && (self.ready.is_empty() || self.exchange.is_over()) {
            match self.next().await {
                LoopOutput::Bytes(bytes) => {
                    if let Some(recorder) = &mut self.recorder {
                        Box::pin(recorder.push(&self.log.proxy, &bytes)).await;
                    }
                    self.ready.push_back(Ok(Frame::data(bytes)));
                }
                LoopOutput::Start(_) => {}
                LoopOutput::Revoked => {
                    self.is_finished = true;
                    let last =
                        error_event(self.log.api, StatusCode::UNAUTHORIZED, REVOKED_MESSAGE).into();
                    self.ready.push_back(Ok(Frame::data(last)));
                }
                LoopOutput::Done(done) => {
                    if let Some(recorder) = &mut self.recorder {
                        Box::pin(recorder.end(&self.log.proxy)).await;
                    }
                    // The upstream may still be sending, but nothing more is needed, so its connection is dropped.
                    (self.is_finished, self.upstream_state) = (true, UpstreamState::Idle);
                    let last = self.last_frame(done);
                    self.ready.extend(last);
                }
            }
        }
        self.ready.pop_front()
    }

    fn last_frame(
        &mut self,
        done: ExchangeOutcome,
    ) -> Option<Result<Frame<Bytes>, UpstreamFailure>> {
        if done.ending != Ending::Complete {
            self.log.proxy.metrics.failure();
        }
        if !self.is_reported {
            self.log.done(self.exchange.report(), &done.summary, done.status);
        }
        match done.ending {
            Ending::LimitExceeded(exceeded) => {
                // The client has already received an error event in the format of its API.
                tracing::warn!(host = %self.log.host, %exceeded, "the upstream's response exceeded a limit and was cut off");
                None
            }
            Ending::Withheld(why) => {
                let text = self.withheld_message(why);
                let last = error_event(self.log.api, StatusCode::BAD_GATEWAY, &text);
                Some(Ok(Frame::data(last.into())))
            }
            Ending::CutOff => {
                // The client's stream is cut off, too, as it would be without the proxy.
                let error = self.take_upstream_error(done.ending);
                tracing::warn!(%error, "the upstream's response was cut off");
                Some(Err(error))
            }
            Ending::Complete if self.has_trailers => {
                let mut trailers = HeaderMap::new();
                headers::write_summary(&done.summary, &mut trailers);
                Some(Ok(Frame::trailers(trailers)))
            }
            Ending::Failed => {
                if let Some(error) = &self.upstream_error {
                    tracing::warn!(%error, "the upstream cannot be reached for a hidden round");
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

    /// Returns the error for a request without a response from the upstream.
    pub(super) fn error_instead_of_response(mut self, done: ExchangeOutcome) -> Response {
        let error = self.take_upstream_error(done.ending);
        match done.ending {
            Ending::Untranslatable(why) => {
                error_response(self.log.api, StatusCode::BAD_REQUEST, &why.to_string())
            }
            Ending::Withheld(why) => {
                self.log.proxy.metrics.failure();
                let text = self.withheld_message(why);
                error_response(self.log.api, StatusCode::BAD_GATEWAY, &text)
            }
            Ending::LimitExceeded(LimitExceeded::Total(_)) => self.log.out_of_memory(&error),
            Ending::CutOff | Ending::LimitExceeded(_) => self.log.upstream_cut_off(&error),
            Ending::Complete | Ending::Failed | Ending::Unreachable => {
                upstream_unreachable(&self.log.proxy, self.log.api, &self.log.host, &error)
            }
        }
    }

    /// Logs that a response is withheld from a caller with a limited scope, and returns the message for the client.
    fn withheld_message(&self, why: WithheldReason) -> String {
        tracing::warn!(host = %self.log.host, reason = %why, "a response was withheld from a caller with a limited scope");
        format!("this caller's tools are limited, and the response is withheld because {why}")
    }

    /// Returns the reason why the request to the upstream failed. A reason in `upstream_error` is removed from there.
    fn take_upstream_error(&mut self, ending: Ending) -> UpstreamFailure {
        match ending {
            Ending::LimitExceeded(exceeded) => UpstreamFailure::new(exceeded.to_string()),
            _ => self
                .upstream_error
                .take()
                .unwrap_or_else(|| UpstreamFailure::new("the connection was closed")),
        }
    }
}
