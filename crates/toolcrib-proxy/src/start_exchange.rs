//! Handles a client's request until its exchange starts: chooses the upstream, finds out whether the body can be read,
//! and chooses the settings of the exchange. This module also has the proxy's HTTP routes: the statistics, and a
//! fallback for every other path.

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
use toolcrib_dialect::exchange::action::{DecisionReport, ExchangeConfig};
use toolcrib_dialect::passthrough::{PassthroughReason, Unreadable};
use toolcrib_dialect::{Api, Exchange, ReadResult, Request, ScopeViolation, TurnSummary};
use toolcrib_server::BodyPermit;

use crate::admission::AdmittedRequest;
use crate::api_error::{RequestError, error_response, websocket_unsupported};
use crate::blocking;
use crate::caller::Caller;
use crate::caller_scope::CallerScope;
use crate::exchange_loop::ExchangeLoop;
use crate::forward_other_path::{forward_other_path, unchanged_response};
use crate::headers;
use crate::object_ownership;
use crate::proxy::Proxy;
use crate::read_body::{count_history_memory, read_body};
use crate::request_log::{RequestLog, upstream_unreachable};
use crate::revocation::REVOKED_MESSAGE;
use crate::toolset_cache;
use crate::upstream_request::{UpstreamRequest, UpstreamResponse, translation_target};

impl Proxy {
    /// Returns the HTTP routes: the statistics, and a fallback for every other path. The handlers check keys
    /// themselves.
    pub fn router(self: &Arc<Self>) -> Router {
        let fallback = |State(proxy): State<Arc<Self>>, request: Incoming| async move {
            Box::pin(dispatch(&proxy, request)).await
        };
        Router::new()
            .route("/toolcrib/stats", get(stats))
            .fallback(fallback)
            .with_state(Arc::clone(self))
    }
}

async fn stats(State(proxy): State<Arc<Proxy>>, request: Incoming) -> Response {
    match proxy.callers().stats_view(request.uri(), request.headers()) {
        Ok(view) => {
            let json = serde_json::to_string(&proxy.totals(&view)).unwrap_or_default();
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Err(why) => RequestError::unidentified(Api::Chat, &why).into_response(),
    }
}

/// Answers a request to any path except the statistics.
async fn dispatch(proxy: &Arc<Proxy>, request: Incoming) -> Response {
    let (parts, body) = request.into_parts();
    let admitted = match AdmittedRequest::admit(&proxy.callers(), parts) {
        Ok(admitted) => admitted,
        Err(error) => return error.into_response(),
    };
    if let Some(api) = admitted.endpoint.api
        && headers::is_websocket_upgrade(&admitted.parts.headers)
    {
        return websocket_unsupported(api);
    }
    match admitted.endpoint.api.filter(|_| admitted.parts.method == Method::POST) {
        Some(api) => start_exchange(proxy, admitted, body, api).await,
        None => forward_other_path(proxy, admitted, body).await,
    }
}

/// Answers a request to an API that has tools.
async fn start_exchange(
    proxy: &Arc<Proxy>,
    admitted: AdmittedRequest,
    body: Body,
    api: Api,
) -> Response {
    let length = body.size_hint().exact();
    let limit = proxy.config.request_bytes;
    let (bytes, rest, body_permit) = match read_body(body, limit, admitted.bodies()).await {
        Ok(collected) => collected,
        Err(why) => return why.into_response(api),
    };
    let AdmittedRequest { parts, endpoint, caller, target, .. } = &admitted;
    let is_compressed = headers::is_compressed(&parts.headers);
    let (reading, mut body_permit) = match (is_compressed, rest) {
        (false, None) => match parse_body(api, target, bytes, &caller.scope, body_permit).await {
            (Ok(reading), permit) => (unread_body(reading), permit),
            (Err(violation), _) => {
                let hint = violation.hint();
                tracing::info!(%api, client = caller.name(), %violation, "request rejected");
                let text = format!("this caller's tools are limited, and {violation}: {hint}");
                return error_response(api, StatusCode::BAD_REQUEST, &text);
            }
        },
        (true, rest) => (Err((Unreadable::Compressed, bytes, rest)), body_permit),
        (false, rest) => (Err((Unreadable::TooLarge, bytes, rest)), body_permit),
    };
    if let Ok(Ok(request)) = &reading
        && let Err(why) = count_history_memory(request, body_permit.as_mut())
    {
        return why.into_response(api);
    }
    let model = match &reading {
        Ok(Ok(request)) => request.model.clone(),
        Ok(Err(unread)) => unread.model.clone().unwrap_or_default(),
        Err(_) => String::new(),
    };
    let upstream = Arc::new(proxy.routes.find(*endpoint, Some(&model)).clone());
    let shares_account = object_ownership::has_stored_objects(api)
        && object_ownership::shares_account(caller, &upstream);
    let body_permit = body_permit.map(Arc::new);
    let log = RequestLog::new(proxy, api, model, &admitted, upstream.host(), body_permit.clone());
    let mut reading = match reading {
        Ok(reading) => reading,
        Err((why, bytes, rest)) => {
            if let Some(needed) = why_body_must_be_read(proxy, caller, shares_account) {
                return body_must_be_read(api, why, needed);
            }
            let complete_body = stream::iter([Ok(bytes)])
                .chain(rest.unwrap_or_else(|| Body::empty().into_data_stream()));
            let upstream_request = UpstreamRequest::new(proxy, &admitted, &upstream, None);
            log.sent();
            let response = upstream_request.forward(Method::POST, complete_body, length);
            return match caller.revocation().unless_revoked(response).await {
                Some(Ok(response)) => unreadable_body_response(&log, why, caller, response),
                Some(Err(error)) => upstream_unreachable(proxy, api, &log.host, &error),
                None => error_response(api, StatusCode::UNAUTHORIZED, REVOKED_MESSAGE),
            };
        }
    };
    let speaks = translation_target(&upstream, api);
    if speaks.is_some() && log.only_counts_tokens {
        return estimate_tokens(&log.model, reading, body_permit).await;
    }
    if shares_account {
        reading =
            match object_ownership::check_body(proxy, &admitted, api, reading, body_permit).await {
                Ok(reading) => reading,
                Err(error) => return error.into_response(),
            };
    }
    match (&mut reading, &upstream.model) {
        (Ok(request), Some(model)) => request.set_model(model),
        (Err(unread), Some(model)) => unread.set_model(model),
        (_, None) => {}
    }
    let configured = upstream.mode.or(proxy.config.mode);
    let requested =
        admitted.mode.or(configured).unwrap_or_else(|| proxy.settings.disclosure.into());
    let model = reading.as_ref().map_or(&log.model, |request| &request.model);
    let mut config = ExchangeConfig::new(&log.host, toolset_cache::token_counter(model));
    config.settings = Arc::clone(&proxy.settings);
    config.requested = requested;
    config.upstream.other_api = speaks;
    config.upstream.overrides = upstream.native.clone();
    config.upstream.context_window =
        upstream.context.or_else(|| requested_context_window(&parts.headers, &reading));
    config.caller = caller.record_owner_id();
    config.max_hidden_rounds = proxy.config.rounds;
    config.limits = proxy.config.limits();
    config.checks_calls = caller.scope.is_narrow();
    (config.learned, config.now) = (proxy.learned(), proxy.now());
    let exchange = Exchange::new(api, target, reading, config);
    let upstream_request = UpstreamRequest::new(proxy, &admitted, &upstream, Some(api));
    let exchange_loop = ExchangeLoop::new(log, upstream_request, exchange, caller.revocation());
    let exchange_loop =
        if shares_account { exchange_loop.record_ownership_for(caller.id) } else { exchange_loop };
    exchange_loop.respond().await
}

/// Returns the context window that a client requests, in tokens; `None` if the client requests none.
fn requested_context_window(headers: &HeaderMap, reading: &ReadResult) -> Option<usize> {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let is_long =
        betas.flat_map(|value| value.split(',')).any(|beta| beta.trim().starts_with("context-1m"));
    let requested = reading.as_ref().ok().and_then(|request| request.context_window);
    requested.or_else(|| is_long.then_some(1_000_000))
}

/// Returns the reason and the body as an error if the body could not be read, and otherwise `reading` unchanged.
fn unread_body(
    reading: ReadResult,
) -> Result<ReadResult, (Unreadable, Bytes, Option<BodyDataStream>)> {
    match reading {
        Err(unread) if let PassthroughReason::Unreadable(why) = unread.reason => {
            Err((why, unread.body.into(), None))
        }
        reading => Ok(reading),
    }
}

/// Parses a body, without the tools that are outside the caller's scope.
async fn parse_body(
    api: Api,
    target: &str,
    body: Bytes,
    scope: &CallerScope,
    permit: Option<BodyPermit>,
) -> (Result<ReadResult, ScopeViolation>, Option<BodyPermit>) {
    let (target, scope) = (target.to_owned(), scope.clone());
    blocking::run(body.len(), permit, move || {
        if scope.is_narrow() {
            Request::read_in_scope(api, &target, body.into(), &|names| scope.sees_tool(names))
        } else {
            Ok(Request::read(api, &target, body.into()))
        }
    })
    .await
}

/// Returns why a body must be read; `None` if it may be forwarded unread.
fn why_body_must_be_read(
    proxy: &Proxy,
    caller: &Caller,
    shares_account: bool,
) -> Option<&'static str> {
    if caller.scope.is_narrow() {
        Some("this caller's tools are limited")
    } else if shares_account {
        Some("the stored objects that it refers to must be this caller's own")
    } else if !proxy.config.routes.is_empty() {
        Some("its model decides which upstream it goes to")
    } else {
        None
    }
}

/// Returns the error for a request whose body must be read but cannot be.
fn body_must_be_read(api: Api, why: Unreadable, needed: &str) -> Response {
    let hint = match why {
        Unreadable::TooManyValues => "send fewer values",
        Unreadable::Compressed | Unreadable::TooLarge => {
            "send it uncompressed and within the limit"
        }
    };
    let text = format!("{}, and {needed}: {hint}", PassthroughReason::from(why));
    error_response(api, StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// Reports a request whose body was not read, and returns the upstream's response.
fn unreadable_body_response(
    log: &RequestLog,
    why: Unreadable,
    caller: &Caller,
    response: UpstreamResponse,
) -> Response {
    let why = PassthroughReason::from(why);
    let report = DecisionReport::without_tools(why.mode_name(), why.to_string());
    let summary = TurnSummary { rounds: 1, ..TurnSummary::default() };
    log.done(&report, &summary, response.status.as_u16());
    unchanged_response(response, Some(&report), log.api, caller)
}

/// Answers a request to count tokens if the upstream's API cannot count them. The number is an estimate, but the format
/// of the response has no field to say so.
async fn estimate_tokens(
    model: &str,
    reading: ReadResult,
    permit: Option<Arc<BodyPermit>>,
) -> Response {
    let text = match reading {
        Ok(request) => request.text,
        Err(unread) => String::from_utf8(unread.body).unwrap_or_default(),
    };
    let counter = toolset_cache::token_counter(model);
    let (tokens, _) = blocking::run(text.len(), permit, move || counter.count(&text)).await;
    let body = format!(r#"{{"input_tokens":{tokens}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
