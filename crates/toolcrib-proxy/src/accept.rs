//! A request of a client, up to the point where its exchange begins: who sends it, where it goes, and
//! whether its body can be read. The proxy's routes are here, too: its statistics, and everything else.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Request as Incoming, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body::Body as _;
use toolcrib_dialect::exchange::action::{self, Report, Setup};
use toolcrib_dialect::pass::{Bypass, Unreadable, unreadable};
use toolcrib_dialect::{Api, Exchange, Reading, Refused, Request, Summary};
use toolcrib_server::BodyPermit;

use crate::blocking;
use crate::caller::Caller;
use crate::collect::{collect, count_history};
use crate::drive::Driver;
use crate::error::{Refusal, error, no_socket};
use crate::head;
use crate::inbound::Inbound;
use crate::log::{RequestLog, unreachable};
use crate::pass_on::{pass_on, untouched};
use crate::proxy::Proxy;
use crate::revocation::REVOKED;
use crate::scope::Scope;
use crate::stored;
use crate::toolsets;
use crate::upstream::{Answer, UpstreamRequest, speaks};

impl Proxy {
    /// The routes: the statistics, and a fallback for every other path. They check their own keys.
    pub fn router(self: &Arc<Self>) -> Router {
        let fallback = |State(proxy): State<Arc<Self>>, request: Incoming| async move {
            Box::pin(accept(&proxy, request)).await
        };
        Router::new()
            .route("/toolcrib/stats", get(stats))
            .fallback(fallback)
            .with_state(Arc::clone(self))
    }
}

async fn stats(State(proxy): State<Arc<Proxy>>, request: Incoming) -> Response {
    match proxy.callers().view(request.uri(), request.headers()) {
        Ok(view) => {
            let json = serde_json::to_string(&proxy.running.totals(&view)).unwrap_or_default();
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Err(why) => Refusal::unidentified(Api::Chat, &why).into_response(),
    }
}

/// Answers a request.
async fn accept(proxy: &Arc<Proxy>, request: Incoming) -> Response {
    let (parts, body) = request.into_parts();
    let inbound = match Inbound::admit(&proxy.callers(), parts) {
        Ok(inbound) => inbound,
        Err(refusal) => return refusal.into_response(),
    };
    if let Some(api) = inbound.asked.api
        && head::wants_socket(&inbound.parts.headers)
    {
        return no_socket(api);
    }
    match inbound.asked.api.filter(|_| inbound.parts.method == Method::POST) {
        Some(api) => read(proxy, inbound, body, api).await,
        None => pass_on(proxy, inbound, body).await,
    }
}

/// Answers a request of an API that has tools.
async fn read(proxy: &Arc<Proxy>, inbound: Inbound, body: Body, api: Api) -> Response {
    let length = body.size_hint().exact();
    let limit = proxy.config.request_bytes;
    let (bytes, rest, body_permit) = match collect(body, limit, inbound.bodies()).await {
        Ok(collected) => collected,
        Err(why) => return why.respond(api),
    };
    let Inbound { parts, asked, caller, target, .. } = &inbound;
    let is_compressed = head::is_compressed(&parts.headers);
    let (reading, mut body_permit) = match (is_compressed, rest) {
        (false, None) => match read_body(api, target, bytes, &caller.scope, body_permit).await {
            (Ok(reading), permit) => (unread_body(reading), permit),
            (Err(refused), _) => {
                let hint = refused.hint();
                tracing::info!(%api, client = caller.name(), %refused, "refused");
                let text = format!("this caller's tools are limited, and {refused}: {hint}");
                return error(api, StatusCode::BAD_REQUEST, &text);
            }
        },
        (true, rest) => (Err((Unreadable::Compressed, bytes, rest)), body_permit),
        (false, rest) => (Err((Unreadable::TooLarge, bytes, rest)), body_permit),
    };
    if let Ok(Ok(request)) = &reading
        && let Err(why) = count_history(request, body_permit.as_mut())
    {
        return why.respond(api);
    }
    let model = match &reading {
        Ok(Ok(request)) => request.model.clone(),
        Ok(Err(unread)) => unread.model.clone().unwrap_or_default(),
        Err(_) => String::new(),
    };
    let upstream = Arc::new(proxy.routes.find(*asked, Some(&model)).clone());
    let is_shared = stored::has_references(api) && stored::is_shared(caller, &upstream);
    let body_permit = body_permit.map(Arc::new);
    let log = RequestLog::new(proxy, api, model, &inbound, upstream.host(), body_permit.clone());
    let mut reading = match reading {
        Ok(reading) => reading,
        Err((why, bytes, rest)) => {
            if let Some(needed) = needs_reading(proxy, caller, is_shared) {
                return not_read(api, why, needed);
            }
            let whole = stream::iter([Ok(bytes)])
                .chain(rest.unwrap_or_else(|| Body::empty().into_data_stream()));
            let to = UpstreamRequest::new(proxy, &inbound, &upstream, None);
            log.sent();
            let answer = to.forward(Method::POST, whole, length);
            return match caller.revocation().unless_happens(answer).await {
                Some(Ok(answer)) => unread(&log, why, caller, answer),
                Some(Err(lost)) => unreachable(proxy, api, &log.host, &lost),
                None => error(api, StatusCode::UNAUTHORIZED, REVOKED),
            };
        }
    };
    let speaks = speaks(&upstream, api);
    if speaks.is_some() && log.counts {
        return estimate(&log.model, reading, body_permit).await;
    }
    if is_shared {
        reading = match stored::check_body(proxy, &inbound, api, reading, body_permit).await {
            Ok(reading) => reading,
            Err(refusal) => return refusal.into_response(),
        };
    }
    match (&mut reading, &upstream.model) {
        (Ok(request), Some(model)) => request.rename(model),
        (Err(unread), Some(model)) => unread.rename(model),
        (_, None) => {}
    }
    let configured = upstream.mode.or(proxy.config.mode);
    let requested = inbound.mode.or(configured).unwrap_or_else(|| proxy.settings.disclosure.into());
    let model = reading.as_ref().map_or(&log.model, |request| &request.model);
    let setup = Setup {
        settings: Arc::clone(&proxy.settings),
        counter: toolsets::counter(model),
        requested,
        upstream: action::Upstream {
            host: log.host.clone(),
            speaks,
            native: upstream.native.clone(),
            context: upstream.context.or_else(|| window(&parts.headers, &reading)),
        },
        caller: caller.records_id(),
        rounds: proxy.config.rounds,
        limits: proxy.config.limits(),
        checks_calls: caller.scope.is_narrow(),
        learned: proxy.learned(),
        now: proxy.now(),
    };
    let exchange = Exchange::new(api, target, reading, setup);
    let to = UpstreamRequest::new(proxy, &inbound, &upstream, Some(api));
    let driver = Driver::new(log, to, exchange, caller.revocation());
    let driver = if is_shared { driver.record_for(caller.id) } else { driver };
    driver.respond().await
}

/// The context window that a client asks for, in tokens.
fn window(headers: &HeaderMap, reading: &Reading) -> Option<usize> {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let is_long =
        betas.flat_map(|value| value.split(',')).any(|beta| beta.trim().starts_with("context-1m"));
    let asked = reading.as_ref().ok().and_then(|request| request.window);
    asked.or_else(|| is_long.then_some(1_000_000))
}

/// The reading, or the body that could not be read and why.
fn unread_body(reading: Reading) -> Result<Reading, (Unreadable, Bytes, Option<BodyDataStream>)> {
    match reading {
        Err(unread) if let Bypass::Unreadable(why) = unread.why => {
            Err((why, unread.body.into(), None))
        }
        reading => Ok(reading),
    }
}

/// Reads a body, and leaves out the tools that the caller may not know of.
async fn read_body(
    api: Api,
    target: &str,
    body: Bytes,
    scope: &Scope,
    permit: Option<BodyPermit>,
) -> (Result<Reading, Refused>, Option<BodyPermit>) {
    let (target, scope) = (target.to_owned(), scope.clone());
    blocking::run(body.len(), permit, move || {
        if scope.is_narrow() {
            Request::read_visible(api, &target, body.into(), &|names| scope.sees_tool(names))
        } else {
            Ok(Request::read(api, &target, body.into()))
        }
    })
    .await
}

/// Why a body that cannot be read is rejected: its tools cannot be filtered, or the model that decides where it
/// goes is not known.
fn needs_reading(proxy: &Proxy, caller: &Caller, is_shared: bool) -> Option<&'static str> {
    if caller.scope.is_narrow() {
        Some("this caller's tools are limited")
    } else if is_shared {
        Some("what it refers to by id must be this caller's")
    } else if !proxy.config.routes.is_empty() {
        Some("the model decides where it goes")
    } else {
        None
    }
}

/// The error for a request whose body must be read and cannot be.
fn not_read(api: Api, why: Unreadable, needed: &str) -> Response {
    let hint = match why {
        Unreadable::TooManyValues => "send fewer values",
        Unreadable::Compressed | Unreadable::TooLarge => {
            "send it uncompressed and within the limit"
        }
    };
    let text = format!("{}, and {needed}: {hint}", unreadable(why));
    error(api, StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// The response to a request whose body was not read.
fn unread(log: &RequestLog, why: Unreadable, caller: &Caller, answer: Answer) -> Response {
    let why = unreadable(why);
    let report = Report { mode: why.mode(), why: why.to_string(), ..Report::default() };
    let summary = Summary { rounds: 1, ..Summary::default() };
    log.done(&report, &summary, answer.status.as_u16());
    untouched(answer, Some(&report), log.api, caller)
}

/// Answers how many tokens a request has, for an upstream whose API has no such question. It is an
/// estimate, and there is no place in the answer to say so.
async fn estimate(model: &str, reading: Reading, permit: Option<Arc<BodyPermit>>) -> Response {
    let text = match reading {
        Ok(request) => request.text,
        Err(unread) => String::from_utf8(unread.body).unwrap_or_default(),
    };
    let counter = toolsets::counter(model);
    let (tokens, _) = blocking::run(text.len(), permit, move || counter.count(&text)).await;
    let body = format!(r#"{{"input_tokens":{tokens}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
