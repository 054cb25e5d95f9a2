//! Requests to an upstream, and its responses.

use std::pin::Pin;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode, header};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, StreamExt as _};
use toolcrib_dialect::exchange::action::OutgoingRequest;
use toolcrib_dialect::{Api, request};

use crate::account_redaction;
use crate::admission::AdmittedRequest;
use crate::endpoint::Vendor;
use crate::headers;
use crate::proxy::Proxy;
use crate::query;
use crate::route::{LlmUpstream, UpstreamCredential};

/// The chunks of a body as they arrive.
pub(crate) type BodyChunks = Pin<Box<dyn Stream<Item = Result<Bytes, UpstreamFailure>> + Send>>;

/// A response of an upstream.
pub(crate) struct UpstreamResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: BodyChunks,
}

impl UpstreamResponse {
    /// Whether the body is an event stream.
    pub(crate) fn is_event_stream(&self) -> bool {
        is_event_stream(&self.headers)
    }
}

/// Whether a response with these headers is an event stream.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("text/event-stream"))
}

/// Whether the proxy can append an event to a body with these headers.
pub(crate) fn can_append_event(headers: &HeaderMap) -> bool {
    let fixed = [header::CONTENT_LENGTH, header::CONTENT_ENCODING];
    is_event_stream(headers) && !fixed.iter().any(|name| headers.contains_key(name))
}

/// Why an upstream could not be reached, or why its response is incomplete. The text leaves out the URL, which may
/// contain a key.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UpstreamFailure(String);

impl UpstreamFailure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl From<reqwest::Error> for UpstreamFailure {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        // The outermost error says only that the request failed; the innermost has the reason.
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            text = inner.to_string();
            source = inner.source();
        }
        Self(text)
    }
}

/// The part of a request to an upstream that is the same in all rounds of a turn.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamRequest {
    pub(crate) client: reqwest::Client,
    pub(crate) upstream: Arc<LlmUpstream>,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    /// The credential in the headers.
    credential: UpstreamCredential,
    /// Whether the proxy reads every response. If so, no response may be compressed.
    pub(crate) is_read: bool,
}

impl UpstreamRequest {
    /// Creates the request to an upstream. `read` is the client's API if the proxy has read the request's body, which
    /// it may then translate.
    pub(crate) fn new(
        proxy: &Proxy,
        admitted: &AdmittedRequest,
        upstream: &Arc<LlmUpstream>,
        read: Option<Api>,
    ) -> Self {
        let AdmittedRequest { endpoint, caller, .. } = admitted;
        let mut target = admitted.target.clone();
        let credential = upstream.credential_for(caller, endpoint.vendor);
        if credential != UpstreamCredential::FromClient {
            target = query::without_credentials(&target);
        }
        if let (Some(Api::Gemini), Some(model)) = (endpoint.api, &upstream.model) {
            target = with_model(&target, model);
        }
        if endpoint.lacks_version {
            target = format!("/v1{target}");
        }
        let speaks = read.and_then(|api| translation_target(upstream, api));
        let vendor = speaks.map_or(endpoint.vendor, Vendor::of);
        let mut headers = headers::for_upstream(
            &admitted.parts.headers,
            vendor,
            &credential,
            caller.is_limited(),
        );
        if caller.is_limited() && admitted.is_json() {
            headers::declare_json(&mut headers);
        }
        if speaks.is_some() && credential == UpstreamCredential::FromClient {
            headers::move_credential(&mut headers, vendor);
        }
        if matches!(credential, UpstreamCredential::Key(_)) {
            // The provider may repeat the key in an error. The error must not be compressed, so that the key can be
            // masked.
            headers::request_uncompressed(&mut headers);
        }
        let (client, upstream) = (proxy.client.clone(), Arc::clone(upstream));
        Self { client, upstream, target, headers, credential, is_read: false }
    }

    /// Sends the request of one round.
    pub(crate) fn post(
        &self,
        outgoing: OutgoingRequest,
    ) -> BoxFuture<'static, Result<UpstreamResponse, UpstreamFailure>> {
        let mut headers = self.headers.clone();
        if outgoing.is_read || self.is_read {
            headers::request_uncompressed(&mut headers);
        }
        headers::add_betas(&mut headers, outgoing.betas);
        let url = self.upstream.at(outgoing.path.unwrap_or(&self.target));
        let response = self.client.post(url).headers(headers).body(outgoing.body).send();
        let credential = self.credential.clone();
        async move { redact_response(response.await?, credential) }.boxed()
    }

    /// Forwards a request body as it arrives, with the length that the client announced, if any.
    pub(crate) async fn forward<E>(
        &self,
        method: Method,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        length: Option<u64>,
    ) -> Result<UpstreamResponse, UpstreamFailure>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let url = self.upstream.at(&self.target);
        let mut request = self.client.request(method, url).headers(self.headers.clone());
        if let Some(length) = length.filter(|length| *length > 0) {
            request = request.header(header::CONTENT_LENGTH, length);
        }
        if length != Some(0) {
            request = request.body(reqwest::Body::wrap_stream(body));
        }
        redact_response(request.send().await?, self.credential.clone())
    }
}

/// Removes data about the account from the response to a request with this credential.
fn redact_response(
    response: reqwest::Response,
    credential: UpstreamCredential,
) -> Result<UpstreamResponse, UpstreamFailure> {
    let status = response.status();
    if status.is_informational() {
        return Err(UpstreamFailure::new(
            "it switched to another protocol, which was not requested",
        ));
    }
    let mut headers = response.headers().clone();
    let body = response.bytes_stream().map(|chunk| chunk.map_err(UpstreamFailure::from));
    if credential != UpstreamCredential::FromClient {
        account_redaction::remove_account_headers(&mut headers);
    }
    let UpstreamCredential::Key(key) = credential else {
        return Ok(UpstreamResponse { status, headers, body: Box::pin(body) });
    };
    account_redaction::mask_headers(&mut headers, &key);
    if status.is_success() {
        return Ok(UpstreamResponse { status, headers, body: Box::pin(body) });
    }
    headers.remove(header::CONTENT_LENGTH);
    Ok(UpstreamResponse {
        status,
        headers,
        body: Box::pin(account_redaction::mask_body(body, key)),
    })
}

/// Returns the API that a request must be translated to; `None` if the upstream supports the client's API.
pub(crate) fn translation_target(upstream: &LlmUpstream, api: Api) -> Option<Api> {
    upstream.speaks.filter(|speaks| api != *speaks)
}

/// Replaces the model in a path. The query is left alone, although it may contain the same text.
fn with_model(target: &str, model: &str) -> String {
    match target.split_once('?') {
        Some((path, query)) => format!("{}?{query}", request::with_model_in_path(path, model)),
        None => request::with_model_in_path(target, model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_streams_are_recognised_case_insensitively_and_with_parameters() {
        let is_event_stream = |kind: &'static str| {
            let value = header::HeaderValue::from_static(kind);
            is_event_stream(&HeaderMap::from_iter([(header::CONTENT_TYPE, value)]))
        };
        let kinds =
            ["text/event-stream", " Text/Event-Stream", "text/event-stream ; charset=utf-8"];
        assert!(kinds.into_iter().all(is_event_stream));
        assert!(!["text/event-streams", "application/json", ""].into_iter().any(is_event_stream));
    }

    #[test]
    fn the_model_is_replaced_in_the_path_and_not_in_the_query() {
        let target = "/v1beta/models/a:generateContent?alt=sse&x=/models/b:c";
        assert_eq!(
            with_model(target, "gemini-x"),
            "/v1beta/models/gemini-x:generateContent?alt=sse&x=/models/b:c"
        );
        assert_eq!(with_model("/v1/models/a:b", "m"), "/v1/models/m:b");
    }
}
