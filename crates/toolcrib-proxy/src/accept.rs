//! A request of a client, up to the point where its exchange begins: who sends it, where it goes, and
//! whether its body can be read. The proxy's routes are here, too: its statistics, and everything else.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as Incoming, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Body as _;
use toolcrib_dialect::exchange::action::{self, Report, Setup};
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::pass::{Unreadable, unreadable};
use toolcrib_dialect::{Api, Exchange, Reading, Refused, Request, Summary};

use crate::caller::{Caller, Scope};
use crate::drive::Driver;
use crate::error::{error, no_key, no_socket};
use crate::head;
use crate::log::{RequestLog, unreachable};
use crate::proxy::Proxy;
use crate::route::{self, Asked};
use crate::toolsets;
use crate::upstream::{self, Answer, UpstreamRequest, speaks};

/// Says for one request how tools are to be deferred, `off` included.
const MODE: &str = "x-toolcrib-mode";
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
    if proxy.callers.identify(request.uri(), request.headers()).is_err() {
        return no_key();
    }
    let json = serde_json::to_string(&proxy.running.totals()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// Answers a request.
async fn accept(proxy: &Arc<Proxy>, request: Incoming) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(caller) = proxy.callers.identify(&parts.uri, &parts.headers) else { return no_key() };
    let path = parts.uri.path();
    // Our own paths, and those that mean another path than they say, are not passed on.
    if path.starts_with("/mcp") || path.starts_with("/toolcrib") {
        return StatusCode::NOT_FOUND.into_response();
    }
    if route::is_winding(path) {
        return error(Api::Chat, StatusCode::BAD_REQUEST, "the path has `.` or `..` in it");
    }
    let asked = route::asked(&parts.uri, &parts.headers);
    if let Some(api) = asked.api
        && head::wants_socket(&parts.headers)
    {
        return no_socket(api);
    }
    match asked.api.filter(|_| parts.method == Method::POST) {
        Some(api) => read(proxy, parts, body, asked, api, caller).await,
        None => pass_on(proxy, parts, body, asked, &caller).await,
    }
}

/// Answers a request of an API that has tools.
async fn read(
    proxy: &Arc<Proxy>,
    parts: Parts,
    body: Body,
    asked: Asked,
    api: Api,
    caller: Caller,
) -> Response {
    let length = body.size_hint().exact();
    // Otherwise the client disconnected before its request was complete.
    let Ok((bytes, rest)) = collect(body, proxy.config.request_bytes).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let target = upstream::target(&parts);
    let is_compressed = parts.headers.contains_key(header::CONTENT_ENCODING);
    let reading = match (is_compressed, rest) {
        (false, None) => match read_body(api, &target, bytes, &caller.scope) {
            Ok(reading) => Ok(reading),
            Err(refused) => {
                let hint = refused.hint();
                tracing::info!(%api, client = caller.name, %refused, "refused");
                let text = format!("this caller's tools are limited, and {refused}: {hint}");
                return error(api, StatusCode::BAD_REQUEST, &text);
            }
        },
        (true, rest) => Err((Unreadable::Compressed, bytes, rest)),
        (false, rest) => Err((Unreadable::TooLarge, bytes, rest)),
    };
    let model = match &reading {
        Ok(Ok(request)) => request.model.clone(),
        Ok(Err(unread)) => unread.model.clone().unwrap_or_default(),
        Err(_) => String::new(),
    };
    let upstream = Arc::new(proxy.routes.find(asked, Some(&model)).clone());
    let log = RequestLog {
        proxy: Arc::clone(proxy),
        api,
        client: caller.name.clone().unwrap_or_else(|| product(&parts.headers)),
        host: upstream.host(),
        model,
        counts: api.counts_at(parts.uri.path()),
        _open: proxy.metrics.open(),
    };
    let mut reading = match reading {
        Ok(reading) => reading,
        Err((why, bytes, rest)) => {
            if let Some(needed) = needs_reading(proxy, &caller) {
                let why = unreadable(why);
                let text =
                    format!("{why}, and {needed}: send it uncompressed and within the limit");
                return error(api, StatusCode::PAYLOAD_TOO_LARGE, &text);
            }
            let whole = stream::iter([Ok(bytes)])
                .chain(rest.unwrap_or_else(|| Body::empty().into_data_stream()));
            let to = UpstreamRequest::new(proxy, &parts, asked, &caller, &upstream, None);
            return match to.forward(Method::POST, whole, length).await {
                Ok(answer) => unread(&log, why, answer),
                Err(lost) => unreachable(proxy, Some(api), &log.host, &lost),
            };
        }
    };
    let speaks = speaks(&upstream, api);
    if speaks.is_some() && log.counts {
        return estimate(&log.model, &reading);
    }
    match (&mut reading, &upstream.model) {
        (Ok(request), Some(model)) => request.rename(model),
        (Err(unread), Some(model)) => unread.rename(model),
        (_, None) => {}
    }
    let requested = match requested_mode(&parts.headers) {
        Ok(requested) => {
            let configured = upstream.mode.or(proxy.config.mode);
            requested.or(configured).unwrap_or_else(|| proxy.settings.disclosure.into())
        }
        Err(text) => return error(api, StatusCode::BAD_REQUEST, &text),
    };
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
    let exchange = Exchange::new(api, &target, reading, setup);
    let to = UpstreamRequest::new(proxy, &parts, asked, &caller, &upstream, Some(api));
    Driver::new(log, to, exchange).respond().await
}

/// The context window that a client asks for, in tokens.
fn window(headers: &HeaderMap, reading: &Reading) -> Option<usize> {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let is_long =
        betas.flat_map(|value| value.split(',')).any(|beta| beta.trim().starts_with("context-1m"));
    let asked = reading.as_ref().ok().and_then(|request| request.window);
    asked.or_else(|| is_long.then_some(1_000_000))
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
fn needs_reading(proxy: &Proxy, caller: &Caller) -> Option<&'static str> {
    if caller.scope.is_narrow() {
        Some("this caller's tools are limited")
    } else if !proxy.config.routes.is_empty() {
        Some("the model decides where it goes")
    } else {
        None
    }
}

/// The response to a request whose body was not read.
fn unread(log: &RequestLog, why: Unreadable, answer: Answer) -> Response {
    let why = unreadable(why);
    let report = Report { mode: why.mode(), why: why.to_string(), ..Report::default() };
    let summary = Summary { rounds: 1, ..Summary::default() };
    log.done(&report, &summary, answer.status.as_u16());
    untouched(answer, Some(&report))
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
async fn pass_on(
    proxy: &Arc<Proxy>,
    parts: Parts,
    body: Body,
    asked: Asked,
    caller: &Caller,
) -> Response {
    if caller.scope.is_narrow()
        && parts.method == Method::POST
        && route::may_have_tools(parts.uri.path())
    {
        let text = "this caller's tools are limited, and bodies sent to this path are not read";
        return error(Api::Chat, StatusCode::FORBIDDEN, text);
    }
    let upstream = &Arc::new(proxy.routes.find(asked, None).clone());
    let to = UpstreamRequest::new(proxy, &parts, asked, caller, upstream, None);
    let length = body.size_hint().exact();
    match to.forward(parts.method, body.into_data_stream(), length).await {
        Ok(answer) => untouched(answer, None),
        Err(lost) => unreachable(proxy, asked.api, &upstream.host(), &lost),
    }
}

/// An answer as it came.
fn untouched(answer: Answer, report: Option<&Report>) -> Response {
    let mut headers = head::down(&answer.headers, true);
    if let Some(report) = report {
        head::write_report(report, &mut headers);
    }
    let mut response = Response::new(Body::from_stream(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    response
}

/// A body up to `limit` bytes, and the rest of a larger one.
async fn collect(
    body: Body,
    limit: usize,
) -> Result<(Bytes, Option<axum::body::BodyDataStream>), axum::Error> {
    // A stated length is believed up to a point: stating one costs a client nothing.
    let stated = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let mut read = BytesMut::with_capacity(stated.min(limit).min(RESERVED));
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.try_next().await? {
        read.extend_from_slice(&chunk);
        if read.len() > limit {
            return Ok((read.freeze(), Some(stream)));
        }
    }
    Ok((read.freeze(), None))
}

/// What a request's own header says about deferring.
fn requested_mode(headers: &HeaderMap) -> Result<Option<RequestedMode>, String> {
    let Some(value) = headers.get(MODE) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let names = || RequestedMode::NAMES.join(", ");
    let mode = RequestedMode::named(text);
    mode.map(Some).ok_or_else(|| format!("`{MODE}: {text}` is none of {}", names()))
}

/// What a client calls itself, without its version.
fn product(headers: &HeaderMap) -> String {
    let agent =
        headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default().to_owned()
}
