//! A request of a client, up to the point where its exchange begins: who sends it, where it goes, and
//! whether its body can be read. The proxy's routes are here, too: its statistics, and everything else.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Request as Incoming, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Body as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toolcrib_dialect::exchange::action::{self, Report, Setup};
use toolcrib_dialect::pass::{Bypass, Unreadable, unreadable};
use toolcrib_dialect::{Api, Exchange, Reading, Refused, Request, Summary};
use toolcrib_server::{BodyBudget, BodyPermit, BodyRefused};

use crate::caller::Caller;
use crate::drive::Driver;
use crate::endpoint::Endpoint;
use crate::error::{Refusal, error, no_socket};
use crate::head;
use crate::inbound::Inbound;
use crate::log::{PassLog, RequestLog, unreachable};
use crate::proxy::Proxy;
use crate::revocation::REVOKED;
use crate::revoked_stream::until_revoked;
use crate::scope::Scope;
use crate::stored;
use crate::toolsets;
use crate::upstream::{Answer, UpstreamRequest, speaks, writable_events};

/// Maximum capacity reserved for a body, in bytes.
const RESERVED: usize = 1 << 20;

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
    let (bytes, rest, mut body_permit) = match collect(body, limit, inbound.bodies()).await {
        Ok(collected) => collected,
        Err(NotCollected::Disconnected) => return StatusCode::BAD_REQUEST.into_response(),
        Err(NotCollected::Refused(refused)) => return body_refused(api, refused),
    };
    let Inbound { parts, asked, caller, target, .. } = &inbound;
    let is_compressed = head::is_compressed(&parts.headers);
    let reading = match (is_compressed, rest) {
        (false, None) => match read_body(api, target, bytes, &caller.scope) {
            Ok(reading) => unread_body(reading),
            Err(refused) => {
                let hint = refused.hint();
                tracing::info!(%api, client = caller.name(), %refused, "refused");
                let text = format!("this caller's tools are limited, and {refused}: {hint}");
                return error(api, StatusCode::BAD_REQUEST, &text);
            }
        },
        (true, rest) => Err((Unreadable::Compressed, bytes, rest)),
        (false, rest) => Err((Unreadable::TooLarge, bytes, rest)),
    };
    if let Ok(Ok(request)) = &reading
        && let Err(refused) = count_history(request, body_permit.as_mut())
    {
        return body_refused(api, refused);
    }
    let model = match &reading {
        Ok(Ok(request)) => request.model.clone(),
        Ok(Err(unread)) => unread.model.clone().unwrap_or_default(),
        Err(_) => String::new(),
    };
    let upstream = Arc::new(proxy.routes.find(*asked, Some(&model)).clone());
    let is_shared = api == Api::Responses && stored::is_shared(caller, &upstream);
    let log = RequestLog::new(proxy, api, model, &inbound, upstream.host(), body_permit);
    let mut reading = match reading {
        Ok(reading) => reading,
        Err((why, bytes, rest)) => {
            if let Some(needed) = needs_reading(proxy, caller, is_shared) {
                let why = unreadable(why);
                let text =
                    format!("{why}, and {needed}: send it uncompressed and within the limit");
                return error(api, StatusCode::PAYLOAD_TOO_LARGE, &text);
            }
            let whole = stream::iter([Ok(bytes)])
                .chain(rest.unwrap_or_else(|| Body::empty().into_data_stream()));
            let to = UpstreamRequest::new(proxy, &inbound, &upstream, None);
            log.sent();
            return match unless_revoked(caller, to.forward(Method::POST, whole, length)).await {
                Some(Ok(answer)) => unread(&log, why, caller, answer),
                Some(Err(lost)) => unreachable(proxy, api, &log.host, &lost),
                None => error(api, StatusCode::UNAUTHORIZED, REVOKED),
            };
        }
    };
    let speaks = speaks(&upstream, api);
    if speaks.is_some() && log.counts {
        return estimate(&log.model, &reading);
    }
    if is_shared {
        let body = match &reading {
            Ok(request) => request.text.as_bytes(),
            Err(unread) => &unread.body,
        };
        if let Err(refusal) = stored::check_body(proxy, &inbound, body).await {
            return refusal.into_response();
        }
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

/// Counts the memory that a conversation takes: many small messages take more than their text.
fn count_history(request: &Request, permit: Option<&mut BodyPermit>) -> Result<(), BodyRefused> {
    permit.map_or(Ok(()), |permit| permit.grow(request.history_bytes()))
}

/// The context window that a client asks for, in tokens.
fn window(headers: &HeaderMap, reading: &Reading) -> Option<usize> {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let is_long =
        betas.flat_map(|value| value.split(',')).any(|beta| beta.trim().starts_with("context-1m"));
    let asked = reading.as_ref().ok().and_then(|request| request.window);
    asked.or_else(|| is_long.then_some(1_000_000))
}

/// What was read, or the reason and the body of one that cannot be read.
fn unread_body(reading: Reading) -> Result<Reading, (Unreadable, Bytes, Option<BodyDataStream>)> {
    match reading {
        Err(unread) if let Bypass::Unreadable(why) = unread.why => {
            Err((why, unread.body.into(), None))
        }
        reading => Ok(reading),
    }
}

fn read_body(api: Api, target: &str, body: Bytes, scope: &Scope) -> Result<Reading, Refused> {
    if scope.is_narrow() {
        Request::read_visible(api, target, body.into(), &|names| scope.sees_tool(names))
    } else {
        Ok(Request::read(api, target, body.into()))
    }
}

/// Why a body that cannot be read is rejected: its tools cannot be filtered, or the model that decides where it
/// goes is not known.
fn needs_reading(proxy: &Proxy, caller: &Caller, is_shared: bool) -> Option<&'static str> {
    if caller.scope.is_narrow() {
        Some("this caller's tools are limited")
    } else if is_shared {
        Some("the stored responses that it refers to must be this caller's")
    } else if !proxy.config.routes.is_empty() {
        Some("the model decides where it goes")
    } else {
        None
    }
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
fn estimate(model: &str, reading: &Reading) -> Response {
    let text = match reading {
        Ok(request) => &request.text,
        Err(unread) => std::str::from_utf8(&unread.body).unwrap_or_default(),
    };
    let tokens = toolsets::counter(model).count(text);
    let body = format!(r#"{{"input_tokens":{tokens}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Passes on a request to a path whose bodies are not read.
async fn pass_on(proxy: &Arc<Proxy>, inbound: Inbound, body: Body) -> Response {
    let Inbound { parts, asked, caller, .. } = &inbound;
    let api = asked.api.unwrap_or(asked.vendor.error_form());
    let length = body.size_hint().exact();
    let mut body_permit = None;
    let body = if caller.scope.is_narrow() && asked.endpoint == Endpoint::Count {
        match collect(body, proxy.config.request_bytes, inbound.bodies()).await {
            Ok((bytes, None, permit)) if is_only_contents(&bytes) => {
                body_permit = permit;
                Body::from(bytes)
            }
            Ok(_) => {
                let text = "this caller's tools are limited, and tools cannot be checked here: send only `contents`";
                return error(api, StatusCode::FORBIDDEN, text);
            }
            Err(NotCollected::Disconnected) => return StatusCode::BAD_REQUEST.into_response(),
            Err(NotCollected::Refused(refused)) => return body_refused(api, refused),
        }
    } else {
        body
    };
    let upstream = &Arc::new(proxy.routes.find(*asked, None).clone());
    if stored::is_shared(caller, upstream)
        && let Err(refusal) = stored::check_path(proxy, &inbound).await
    {
        return refusal.into_response();
    }
    let to = UpstreamRequest::new(proxy, &inbound, upstream, None);
    let mut log = PassLog::new(&inbound, upstream.host());
    let answer = to.forward(parts.method.clone(), body.into_data_stream(), length);
    let answer = unless_revoked(caller, answer).await;
    // The body was sent.
    drop(body_permit);
    match answer {
        Some(Ok(answer)) => {
            log.status = Some(answer.status.as_u16());
            untouched(answer, None, api, caller)
        }
        Some(Err(lost)) => unreachable(proxy, api, &log.host, &lost),
        None => error(api, StatusCode::UNAUTHORIZED, REVOKED),
    }
}

/// Waits for an answer; `None` if the caller's key is revoked meanwhile.
async fn unless_revoked<T>(caller: &Caller, answer: impl Future<Output = T>) -> Option<T> {
    let revocation = caller.revocation();
    tokio::select! {
        biased;
        () = revocation.happens() => None,
        answer = answer => Some(answer),
    }
}

/// Whether a body is an object with `contents`, the conversation, and nothing else.
fn is_only_contents(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Counted {
        #[serde(rename = "contents")]
        _contents: IgnoredAny,
    }
    serde_json::from_slice::<Counted>(body).is_ok()
}

/// An answer as it came, for as long as the caller's key counts.
fn untouched(answer: Answer, report: Option<&Report>, api: Api, caller: &Caller) -> Response {
    let mut headers = head::down(&answer.headers, true);
    if let Some(report) = report {
        head::write_report(report, &mut headers);
    }
    let events_of = writable_events(&answer.headers).then_some(api);
    let body = until_revoked(answer.body, caller.revocation(), events_of);
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    response
}

/// Why a body was not collected.
enum NotCollected {
    /// The client disconnected before its request was complete, or sent nothing for too long.
    Disconnected,
    /// There is no memory for it.
    Refused(BodyRefused),
}

/// A body up to `limit` bytes, the rest of a larger one, and the memory that it counts for.
async fn collect(
    body: Body,
    limit: usize,
    bodies: Option<&BodyBudget>,
) -> Result<(Bytes, Option<BodyDataStream>, Option<BodyPermit>), NotCollected> {
    let stated = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    let permit = bodies.map(|bodies| bodies.begin(stated)).transpose();
    let mut permit = permit.map_err(NotCollected::Refused)?;
    // A stated length is believed up to a point: stating one costs a client nothing.
    let mut read = BytesMut::with_capacity(stated.min(RESERVED));
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.try_next().await.map_err(|_| NotCollected::Disconnected)? {
        if let Some(permit) = &mut permit {
            permit.grow(chunk.len()).map_err(NotCollected::Refused)?;
        }
        read.extend_from_slice(&chunk);
        if read.len() > limit {
            return Ok((read.freeze(), Some(stream), permit));
        }
    }
    Ok((read.freeze(), None, permit))
}

fn body_refused(api: Api, refused: BodyRefused) -> Response {
    let status = match refused {
        BodyRefused::Busy => StatusCode::SERVICE_UNAVAILABLE,
        BodyRefused::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
    };
    let mut response = error(api, status, &refused.to_string());
    refused.set_retry(&mut response);
    response
}
