//! A request whose body we could read: rewritten, or as it came where that is better.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use toolcrib_dialect::capability::Hosted;
use toolcrib_dialect::decide::Wish;
use toolcrib_dialect::messages;
use toolcrib_dialect::request::Reading;
use toolcrib_dialect::turn::Done;
use toolcrib_dialect::{Api, Defers, Next, Request, Toolset, Turn};
use toolcrib_store::{Key, Store as _};

use crate::answer::error;
use crate::course::{Course, Leg};
use crate::exchange::{Exchange, wished};
use crate::flow::{self, Flow};
use crate::head::{self, Said};
use crate::route::Upstream;
use crate::upstream::{Answer, Failed, Lost};

impl Exchange {
    /// Sends a request whose body we could read: rewritten, or as it came where that is better.
    pub(crate) async fn rewrite(
        mut self,
        headers: &HeaderMap,
        target: &str,
        upstream: &Upstream,
        read: Reading,
    ) -> Response {
        let wish = match wished(headers) {
            Ok(wish) => wish.or(upstream.mode).unwrap_or(self.proxy.config.mode),
            Err(text) => return error(self.api, StatusCode::BAD_REQUEST, &text),
        };
        let request = match read {
            Ok(request) if wish != Wish::Off => Arc::new(request),
            Ok(request) => {
                return self.bypass("tool search is off", request.text.into_bytes()).await;
            }
            Err((why, body)) => return self.bypass(&why.to_string(), body).await,
        };
        if self.api == Api::Responses {
            let knows = self.capability(&request.model, &self.learned());
            // Where nothing native is known, namespaces are not, and what a client put into them must stay callable.
            let native =
                knows.client_search || knows.additional_tools || knows.hosted == Hosted::OpenAi;
            let said = ["\"namespace\"", "additional_tools", "tool_search"];
            self.line.words.plain = !native && said.iter().any(|word| request.text.contains(word));
        }
        let request = match request.defers {
            None => request,
            Some(defers) => match self.deferring(&request, defers, target) {
                Ok(translated) => translated,
                Err((why, body)) => return self.bypass(why, body).await,
            },
        };
        let mut course = Course::new(&self, request, wish).await;
        while let Some(leg) = course.leg(&mut self).await {
            // What a caller may not know of is no tool of its, whoever calls it: that has to be watched.
            if leg.toolset.passes_through() && !self.caller.scope.is_narrow() {
                break;
            }
            let turn = course.turn(&self, &leg);
            let answer = match leg.line.post(turn.request()).await {
                Ok(answer) => answer,
                Err(failed) => return self.failed(&failed),
            };
            if !course.may_turn(answer.status) {
                course.went(&self, answer.status);
                return Box::pin(self.run(course, turn, leg, answer)).await;
            }
            let (status, headers) = (answer.status, answer.headers.clone());
            let body = match answer.whole().await {
                Ok(body) => body,
                Err(lost) => return self.failed(&lost.into()),
            };
            if !course.turned(&self, leg.toolset.mode(), status, &body) {
                self.done(&turn.summary(), status);
                return self.respond(status, &headers, Body::from(body), true, None);
            }
        }
        self.pass(course.text().into_bytes()).await
    }

    /// A request of a client that defers by itself: as it came where the upstream knows how, and in plain
    /// words where it does not. An error is why, and what to send.
    fn deferring(
        &mut self,
        request: &Request,
        defers: Defers,
        target: &str,
    ) -> Result<Arc<Request>, (&'static str, Vec<u8>)> {
        const PLAIN: &str = "the client defers by itself, in plain words for this upstream";
        let body = || request.text.clone().into_bytes();
        let capability = self.capability(&request.model, &self.learned());
        let knows = match (self.api, defers) {
            (Api::Messages, Defers::Hosted) => capability.hosted != Hosted::None,
            (Api::Messages, Defers::References) => capability.references,
            _ => capability.client_search || capability.hosted == Hosted::OpenAi,
        };
        if knows && self.line.words.speaks.is_none() {
            return Err(("the client defers by itself", body()));
        }
        if self.api == Api::Responses {
            self.line.words.plain = true;
            return Err((PLAIN, body()));
        }
        let plain =
            messages::inbound::translate(&request.text).map_or_else(body, String::into_bytes);
        if defers == Defers::References {
            return Err((PLAIN, plain));
        }
        // Its search was the provider's: ours takes its place.
        Request::read(self.api, target, plain).map(Arc::new).map_err(|(_, plain)| (PLAIN, plain))
    }

    /// Keeps what the next request needs. Done before the client has the end of its answer: its next
    /// request may reach another replica at once.
    pub(crate) async fn keep(&self, done: &Done) {
        if done.records.is_empty() {
            return;
        }
        let records =
            done.records.iter().map(|(key, bytes)| (Key::new(key.0), Bytes::from(bytes.clone())));
        if let Err(lost) = self.proxy.store.put(records.collect()).await {
            tracing::warn!(%lost, "state cannot be kept; the conversation goes on without it");
            self.proxy.metrics.state_lost();
        }
    }

    pub(crate) fn say(&mut self, toolset: &Toolset, because: &str) {
        let passes = toolset.passes_through();
        self.said = Said {
            mode: if passes { "pass-through" } else { toolset.mode().name() },
            why: if passes {
                toolset.why().to_string()
            } else {
                format!("{}; {because}", toolset.why())
            },
            tools: toolset.len(),
            deferred: toolset.deferred(),
            tokens: toolset.tokens(),
        };
    }

    /// Gives the client its answer, with as many rounds as that takes.
    async fn run(
        mut self,
        mut course: Course,
        mut turn: Turn,
        mut leg: Leg,
        mut answer: Answer,
    ) -> Response {
        if !answer.status.is_success() || turn.counts() {
            self.done(&turn.summary(), answer.status);
            return self.respond(
                answer.status,
                &answer.headers,
                Body::from_stream(answer.body),
                true,
                None,
            );
        }
        let (status, headers) = (answer.status, answer.headers.clone());
        if turn.streams() && answer.is_events() {
            let flow = Flow::new(self, course, turn, leg, answer.body);
            return flow::respond(flow, status, &headers);
        }
        loop {
            let (status, headers) = (answer.status, answer.headers.clone());
            let body = match answer.whole().await {
                Ok(body) => body,
                Err(lost) => return self.broken(&lost),
            };
            if self.is_late() {
                turn.hurry();
            }
            course.went(&self, status);
            let next = if status.is_success() { turn.whole(&body) } else { None };
            match next {
                None if course.turns(&mut self, &mut turn, &mut leg, status, &body).await => {}
                // An error, or something that is no response of this API: as it came.
                None => {
                    self.done(&turn.summary(), status);
                    return self.respond(status, &headers, Body::from(body), true, None);
                }
                Some(Next::Done(done)) => {
                    self.keep(&done).await;
                    self.done(&done.summary, status);
                    let body = done.body.unwrap_or_default();
                    return self.respond(
                        status,
                        &headers,
                        Body::from(body),
                        false,
                        Some(&done.summary),
                    );
                }
                Some(Next::Again) => {}
            }
            answer = match leg.line.post(turn.request()).await {
                Ok(answer) => answer,
                Err(failed) => return self.failed(&failed),
            };
        }
    }

    /// Whether the turn has taken so long that it should come to an end.
    pub(crate) fn is_late(&self) -> bool {
        self.started.elapsed().as_secs() >= self.proxy.config.deadline
    }

    async fn bypass(mut self, why: &str, body: Vec<u8>) -> Response {
        self.said = Said { mode: "bypass", why: why.to_owned(), ..Said::default() };
        self.pass(body).await
    }

    /// Sends a body as it came, and the answer as it comes.
    async fn pass(mut self, body: Vec<u8>) -> Response {
        if self.line.words.translates() {
            head::ask_plain(&mut self.line.headers);
        }
        let sent = match String::from_utf8(body) {
            Ok(text) => self.line.post(text).await,
            Err(other) => {
                let body = Bytes::from(other.into_bytes());
                let length = Some(body.len() as u64);
                let body = stream::iter([Ok::<_, Lost>(body)]);
                self.line.forward(Method::POST, body, length).await.map_err(Failed::from)
            }
        };
        match sent {
            Ok(answer) => self.passed(answer),
            Err(failed) => self.failed(&failed),
        }
    }
}
