//! Requests that are passed on to a provider without being read, and responses that are passed on unchanged.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toolcrib_dialect::Api;
use toolcrib_dialect::exchange::action::Report;

use crate::caller::Caller;
use crate::collect::collect;
use crate::endpoint::Endpoint;
use crate::error::error;
use crate::head;
use crate::inbound::Inbound;
use crate::log::{PassLog, unreachable};
use crate::proxy::Proxy;
use crate::revocation::REVOKED;
use crate::revoked_stream::until_revoked;
use crate::stored;
use crate::upstream::{Answer, UpstreamRequest, writable_events};

/// Passes on a request to a path whose bodies are not read.
pub(crate) async fn pass_on(proxy: &Arc<Proxy>, inbound: Inbound, body: Body) -> Response {
    let Inbound { parts, asked, caller, .. } = &inbound;
    let api = asked.api.unwrap_or(asked.vendor.error_form());
    let length = body.size_hint().exact();
    let mut body_permit = None;
    let body = if caller.scope.is_narrow() && asked.endpoint == Endpoint::Count {
        if head::is_compressed(&parts.headers) {
            let text =
                "the body is compressed, and this caller's tools are limited: send it uncompressed";
            return error(api, StatusCode::PAYLOAD_TOO_LARGE, text);
        }
        match collect(body, proxy.config.request_bytes, inbound.bodies()).await {
            Ok((bytes, None, permit)) if is_only_contents(&bytes) => {
                body_permit = permit;
                Body::from(bytes)
            }
            Ok(_) => {
                let text = "this caller's tools are limited, and tools cannot be checked here: send only `contents`";
                return error(api, StatusCode::FORBIDDEN, text);
            }
            Err(why) => return why.respond(api),
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
    let answer = caller.revocation().unless_happens(answer).await;
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

/// An answer, unchanged, for as long as the caller's key is valid.
pub(crate) fn untouched(
    answer: Answer,
    report: Option<&Report>,
    api: Api,
    caller: &Caller,
) -> Response {
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
