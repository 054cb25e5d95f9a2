//! Forwards requests whose bodies are not searched for tools, and responses that stay unchanged.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toolcrib_dialect::Api;
use toolcrib_dialect::exchange::action::DecisionReport;

use crate::admission::AdmittedRequest;
use crate::api_error::error_response;
use crate::caller::Caller;
use crate::endpoint::EndpointKind;
use crate::headers;
use crate::object_ownership;
use crate::proxy::Proxy;
use crate::read_body::read_body;
use crate::request_log::{ForwardLog, upstream_unreachable};
use crate::revocation::REVOKED_MESSAGE;
use crate::revoked_stream::end_when_revoked;
use crate::upstream_request::{UpstreamRequest, UpstreamResponse, can_append_event};

/// Forwards a request with its body unchanged. The body is read only if a caller with a limited scope counts tokens:
/// then it may contain only the conversation, because tools cannot be checked here.
pub(crate) async fn forward_other_path(
    proxy: &Arc<Proxy>,
    admitted: AdmittedRequest,
    body: Body,
) -> Response {
    let AdmittedRequest { parts, endpoint, caller, .. } = &admitted;
    let api = endpoint.api.unwrap_or(endpoint.vendor.error_api());
    let length = body.size_hint().exact();
    let mut body_permit = None;
    let body = if caller.scope.is_narrow() && endpoint.kind == EndpointKind::Count {
        if headers::is_compressed(&parts.headers) {
            let text =
                "the body is compressed, and this caller's tools are limited: send it uncompressed";
            return error_response(api, StatusCode::PAYLOAD_TOO_LARGE, text);
        }
        match read_body(body, proxy.config.request_bytes, admitted.bodies()).await {
            Ok((bytes, None, permit)) if is_only_contents(&bytes) => {
                body_permit = permit;
                Body::from(bytes)
            }
            Ok(_) => {
                let text = "this caller's tools are limited, and tools cannot be checked here: send only `contents`";
                return error_response(api, StatusCode::FORBIDDEN, text);
            }
            Err(why) => return why.into_response(api),
        }
    } else {
        body
    };
    let upstream = &Arc::new(proxy.routes.find(*endpoint, None).clone());
    if object_ownership::shares_account(caller, upstream)
        && let Err(error) = object_ownership::check_path(proxy, &admitted).await
    {
        return error.into_response();
    }
    let upstream_request = UpstreamRequest::new(proxy, &admitted, upstream, None);
    let mut log = ForwardLog::new(&admitted, upstream.host());
    let response = upstream_request.forward(parts.method.clone(), body.into_data_stream(), length);
    let response = caller.revocation().unless_revoked(response).await;
    // The body has been sent, so its memory is given back.
    drop(body_permit);
    match response {
        Some(Ok(response)) => {
            log.status = Some(response.status.as_u16());
            unchanged_response(response, None, api, caller)
        }
        Some(Err(error)) => upstream_unreachable(proxy, api, &log.host, &error),
        None => error_response(api, StatusCode::UNAUTHORIZED, REVOKED_MESSAGE),
    }
}

/// Whether a body is an object with `contents` (the conversation) and nothing else.
fn is_only_contents(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OnlyContents {
        #[serde(rename = "contents")]
        _contents: IgnoredAny,
    }
    serde_json::from_slice::<OnlyContents>(body).is_ok()
}

/// Returns the upstream's response unchanged. The response ends early if the caller's key is revoked.
pub(crate) fn unchanged_response(
    upstream: UpstreamResponse,
    report: Option<&DecisionReport>,
    api: Api,
    caller: &Caller,
) -> Response {
    let mut headers = headers::for_client(&upstream.headers, true);
    if let Some(report) = report {
        headers::write_report(report, &mut headers);
    }
    let events_of = can_append_event(&upstream.headers).then_some(api);
    let body = end_when_revoked(upstream.body, caller.revocation(), events_of);
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = upstream.status;
    *response.headers_mut() = headers;
    response
}
