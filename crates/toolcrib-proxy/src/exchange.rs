//! One request of a client, from its head to the first byte of its answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request as Incoming;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Body as _;
use toolcrib_core::json;
use toolcrib_dialect::decide::Wish;
use toolcrib_dialect::request::Reading;
use toolcrib_dialect::{Api, Request, request, turn};

use crate::answer::{error, no_key, no_socket, unreachable, untouched};
use crate::caller::Caller;
use crate::head::{self, Said};
use crate::metrics::Open;
use crate::prepare;
use crate::proxy::Proxy;
use crate::route::{self, Asked, Credential, Upstream, Vendor};
use crate::upstream::Line;
use crate::wire::Words;

/// Says for one request how tools are to be deferred, `off` included.
const MODE: &str = "x-toolcrib-mode";
/// Bytes that are set aside for a body before it comes.
const BELIEVED: usize = 1 << 20;

/// One request under way: who sent it, and where it goes.
pub(crate) struct Exchange {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) client: String,
    pub(crate) caller: Caller,
    pub(crate) host: String,
    pub(crate) line: Line,
    /// Whether only tokens are to be counted.
    pub(crate) counts: bool,
    pub(crate) said: Said,
    pub(crate) started: Instant,
    _open: Open,
}

/// Answers a request.
pub(crate) async fn exchange(proxy: &Arc<Proxy>, request: Incoming) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(caller) = proxy.callers.identify(&parts.uri, &parts.headers) else { return no_key() };
    let path = parts.uri.path();
    // What is ours, or means another path than it says, is nobody else's to answer.
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
    let api = asked.api.filter(|_| parts.method == Method::POST);
    let Some(api) = api else { return other(proxy, parts, body, asked, &caller).await };
    let length = body.size_hint().exact();
    let read = collect(body, proxy.config.request_bytes).await;
    let compressed = parts.headers.contains_key(header::CONTENT_ENCODING);
    // Otherwise the client went away while it was still speaking.
    let Ok((bytes, rest)) = read else { return StatusCode::BAD_REQUEST.into_response() };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    // Read once, whatever is to be known of it: a hundred kilobytes of tools are most of a request's cost.
    let (bytes, read) = match (compressed, &rest) {
        (false, None) => (Bytes::new(), Some(Request::read(api, &target, bytes.into()))),
        _ => (bytes, None),
    };
    let model = match &read {
        Some(Ok(request)) => Some(request.model.clone()),
        other => request::model(api, &target, other.as_ref().map(text).unwrap_or_default()),
    };
    let model = model.unwrap_or_default();
    let upstream = Arc::new(proxy.routes.find(asked, Some(&model)).clone());
    let mut exchange = Exchange {
        proxy: Arc::clone(proxy),
        api,
        client: caller.name.clone().unwrap_or_else(|| product(&parts.headers)),
        host: upstream.host(),
        line: line(proxy, &parts, asked, &caller, &upstream, Some(api)),
        model,
        caller,
        counts: turn::counts_at(api, parts.uri.path()),
        said: Said::default(),
        started: Instant::now(),
        _open: proxy.metrics.open(),
    };
    if exchange.line.words.speaks.is_some() && exchange.counts {
        // The upstream's API has no such question. What is answered is an estimate, and says so nowhere:
        // there is no place for it.
        let text = read.as_ref().map(text).unwrap_or_default();
        let tokens = prepare::counter(&exchange.model).count(text);
        let body = format!(r#"{{"input_tokens":{tokens}}}"#);
        return ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    let Some(mut read) = read else {
        let why =
            if compressed { "the body is compressed" } else { "the body is too large to be read" };
        // What cannot be read can be neither narrowed nor routed, and must not go astray.
        let needed = if exchange.caller.scope.is_narrow() {
            Some("this caller's tools are limited")
        } else if !proxy.config.routes.is_empty() {
            Some("the model decides where it goes")
        } else {
            None
        };
        if let Some(needed) = needed {
            let text = format!("{why}, and {needed}: send it uncompressed and within the limit");
            return error(api, StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        exchange.said = Said { mode: "bypass", why: why.into(), ..Said::default() };
        let whole = stream::iter([Ok(bytes)])
            .chain(rest.unwrap_or_else(|| Body::empty().into_data_stream()));
        exchange.line = line(proxy, &parts, asked, &exchange.caller, &upstream, None);
        return match exchange.line.forward(Method::POST, whole, length).await {
            Ok(answer) => exchange.passed(answer),
            Err(lost) => exchange.failed(&lost.into()),
        };
    };
    if let Some(model) = &upstream.model
        && let Some(renamed) = request::with_model(text(&read), model)
    {
        read = Request::read(api, &target, renamed.into_bytes());
    }
    let scope = exchange.caller.scope.clone();
    if scope.is_narrow() && json::Fields::read(&lossy(&read)).is_none() {
        // Somebody else may be able to read it.
        let text = "this caller's tools are limited, and the body is no JSON object";
        return error(api, StatusCode::BAD_REQUEST, text);
    }
    if scope.is_narrow()
        && let Some(narrowed) = toolcrib_dialect::narrowed(&lossy(&read), &|name| scope.sees(name))
    {
        read = Request::read(api, &target, narrowed.into_bytes());
    }
    Box::pin(exchange.rewrite(&parts.headers, &target, &upstream, read)).await
}

/// Passes on a request to a path whose bodies are not read.
async fn other(
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
    let line = line(proxy, &parts, asked, caller, upstream, None);
    let length = body.size_hint().exact();
    match line.forward(parts.method, body.into_data_stream(), length).await {
        Ok(answer) => untouched(answer, None),
        Err(lost) => unreachable(proxy, asked.api, upstream, &lost),
    }
}

/// A body as text; nothing for one that is none.
fn text(read: &Reading) -> &str {
    match read {
        Ok(request) => &request.text,
        Err((_, body)) => std::str::from_utf8(body).unwrap_or_default(),
    }
}

/// A body as text, whatever it is: what is kept from a caller is kept from it in broken text too.
fn lossy(read: &Reading) -> Cow<'_, str> {
    match read {
        Ok(request) => Cow::Borrowed(&request.text),
        Err((_, body)) => String::from_utf8_lossy(body),
    }
}

/// The line to an upstream. `read` names the API whose answer we read.
fn line(
    proxy: &Proxy,
    parts: &Parts,
    asked: Asked,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    read: Option<Api>,
) -> Line {
    let mut target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let credential = match (&upstream.credential, &caller.stands_in) {
        (Credential::Clients, Some(keys)) => {
            let key = match asked.vendor {
                Vendor::OpenAi => &keys.openai,
                Vendor::Anthropic => &keys.anthropic,
                Vendor::Google => &keys.gemini,
            };
            key.clone().map_or(Credential::None, Credential::Key)
        }
        (own, _) => own.clone(),
    };
    if credential != Credential::Clients {
        target = without_key(&target);
    }
    if let (Some(Api::Gemini), Some(model)) = (asked.api, &upstream.model) {
        target = request::with_model_in_path(&target, model);
    }
    let bare = matches!(asked.api, Some(Api::Chat | Api::Responses | Api::Messages));
    if bare && !target.starts_with("/v1/") {
        target = format!("/v1{target}");
    }
    let speaks = upstream.speaks.filter(|speaks| read.is_some_and(|api| api != *speaks));
    let vendor = speaks.map_or(asked.vendor, route::vendor);
    let mut headers = head::up(&parts.headers, vendor, &credential);
    if speaks.is_some() && credential == Credential::Clients {
        head::move_key(&mut headers, vendor);
    }
    Line {
        client: proxy.client.clone(),
        upstream: Arc::clone(upstream),
        target,
        headers,
        words: Words { speaks, ..Words::own(read.unwrap_or(Api::Chat)) },
    }
}

/// A target without the key that Google's clients put into it.
fn without_key(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let keys = ["key=", "access_token="];
    let secret = |pair: &&str| keys.iter().any(|key| pair.starts_with(key));
    let kept: Vec<&str> = query.split('&').filter(|pair| !secret(pair)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

/// A body up to `limit` bytes, and the rest of a larger one.
async fn collect(
    body: Body,
    limit: usize,
) -> Result<(Bytes, Option<axum::body::BodyDataStream>), axum::Error> {
    // What is said of the length is believed up to a point: it costs nothing to say.
    let said = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let mut read = BytesMut::with_capacity(said.min(limit).min(BELIEVED));
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
pub(crate) fn wished(headers: &HeaderMap) -> Result<Option<Wish>, String> {
    let Some(value) = headers.get(MODE) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    serde_json::from_value(serde_json::Value::from(text)).map(Some).map_err(|_| {
        format!("`{MODE}: {text}` is none of auto, off, bridge, reveal, terse, append, reference, hosted")
    })
}

/// What a client calls itself, without its version.
fn product(headers: &HeaderMap) -> String {
    let agent =
        headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default().to_owned()
}
