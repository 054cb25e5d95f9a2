//! The HTTP transport to a server (Streamable HTTP), with every message inspected by the tap.
//!
//! The SDK implements the older and the newer protocol, with sessions and resumption. This client sends the requests.
//! It differs from the SDK's own client in three ways. Results are taken before they are parsed into types. Bodies have
//! a size limit, as events do. Redirects are not followed, because they would send the token elsewhere.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::Sse;
use tokio::time::Instant;

use super::http_events::{MIN_RECONNECT_DELAY, inspect_event, limited_events};
use super::http_response::{
    auth_challenge, excerpt, status_error, unexpected_response, without_url,
};
use super::tap::{Disposition, Tap};
use crate::json_memory::{TOO_MANY_VALUES, takes_too_much_memory};
use crate::raw_arguments::message_to_json;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";
const SESSION: &str = "Mcp-Session-Id";
/// Minimum time between two fetches of the lists that are caused by opening the change stream. A proxy between the
/// gateway and the server may close that stream every few seconds.
const MIN_REFETCH_INTERVAL: Duration = Duration::from_mins(1);

pub(super) type Error = StreamableHttpError<reqwest::Error>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Whether a `Content-Type` has this media type. Media types are case-insensitive.
pub(super) fn has_type(content_type: &str, mime: &str) -> bool {
    content_type.get(..mime.len()).is_some_and(|start| start.eq_ignore_ascii_case(mime))
}

/// The HTTP client that the SDK uses. Its messages pass through the tap.
#[derive(Debug, Clone)]
pub(crate) struct TappedHttp {
    client: reqwest::Client,
    tap: Arc<Tap>,
    /// Maximum size of a body, and of one event in a stream, in bytes.
    limit: usize,
    /// The earliest time at which opening a stream may cause another fetch of the lists.
    next_refetch: Arc<Mutex<Option<Instant>>>,
    /// Whether the handshake was rejected with status 400, 404 or 405, so the server may offer only HTTP+SSE.
    may_offer_only_sse: Arc<AtomicBool>,
}

/// Whether the SDK also needs the result of a request. It needs the tool list to know which parameters are sent as
/// headers.
fn sdk_needs_result(method: &str) -> bool {
    method == "tools/list"
}

/// Whether the answer to a handshake means that the server may offer only HTTP+SSE. The MCP specification names these
/// three statuses.
fn is_sse_rejection(sent: &ClientJsonRpcMessage, status: StatusCode) -> bool {
    let is_handshake = matches!(
        sent,
        JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::InitializeRequest(_))
    );
    let statuses = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
    is_handshake && statuses.contains(&status)
}

impl TappedHttp {
    pub(crate) fn new(client: reqwest::Client, tap: Arc<Tap>, limit: usize) -> Self {
        Self {
            client,
            tap,
            limit,
            next_refetch: Arc::default(),
            may_offer_only_sse: Arc::default(),
        }
    }

    /// Returns a flag that is set when the handshake is rejected in such a way that the server may offer only HTTP+SSE.
    pub(crate) fn may_offer_only_sse(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.may_offer_only_sse)
    }

    /// Makes the gateway fetch the lists again after the change stream was opened, because changes were not announced
    /// while there was no stream. The lists are fetched at once, or after the minimum interval if they were fetched for
    /// this reason shortly before.
    fn stream_opened(&self) {
        let now = Instant::now();
        let mut next = self.next_refetch.lock();
        match *next {
            // Scheduling a fetch moves `next_refetch` more than one interval ahead, so in this case a fetch is already
            // scheduled.
            Some(at) if at > now + MIN_REFETCH_INTERVAL => {}
            Some(at) if at > now => {
                *next = Some(at + MIN_REFETCH_INTERVAL);
                let tap = Arc::downgrade(&self.tap);
                tokio::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    if let Some(tap) = tap.upgrade() {
                        tap.mark_lists_changed();
                    }
                });
            }
            _ => {
                *next = Some(now + MIN_REFETCH_INTERVAL);
                self.tap.mark_lists_changed();
            }
        }
    }

    /// Returns the events that the SDK should see. An event that is a request of the server waits for an answer permit.
    /// Until it has one, the events after it on the same stream are not read.
    fn tapped(&self, events: Events, origin: Option<RequestId>) -> Events {
        let (tap, origin) = (Arc::clone(&self.tap), origin.map(Arc::new));
        let limit = self.limit;
        let inspect = move |event: Result<Sse, SseError>| {
            let (tap, origin) = (Arc::clone(&tap), origin.clone());
            async move {
                match event {
                    Ok(event) => Ok(inspect_event(&tap, event, origin.as_deref(), limit).await),
                    Err(error) => Err(error),
                }
            }
        };
        events.then(inspect).boxed()
    }

    async fn body(&self, response: reqwest::Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(without_url)?);
            if body.len() > self.limit {
                let limit = self.limit;
                return Err(unexpected_response(format!(
                    "the answer is larger than the limit of {limit} bytes"
                )));
            }
        }
        Ok(body)
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let _ = self.tap.register_request(&message, sdk_needs_result);
        let body =
            message_to_json(&message).map_err(|error| unexpected_response(error.to_string()))?;
        let mut request = self
            .client
            .post(&*uri)
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .header(CONTENT_TYPE, JSON)
            .body(body);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let has_session = session.is_some();
        if let Some(session) = session {
            request = request.header(SESSION, &*session);
        }
        let response = request.send().await.map_err(without_url)?;
        let status = response.status();
        if is_sse_rejection(&message, status) {
            self.may_offer_only_sse.store(true, Ordering::Relaxed);
        }
        if let Some(error) = auth_challenge(&response) {
            return Err(error);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let content_type = header(CONTENT_TYPE.as_str());
        let session = header(SESSION);
        let failed = (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
            .then(|| HttpStatusError::new(status.as_u16(), header(RETRY_AFTER.as_str())));
        let is = |mime: &str| content_type.as_deref().is_some_and(|kind| has_type(kind, mime));
        let origin = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        // The response to a notification or an answer is not read, because it could be a stream that stays open as long
        // as the server likes.
        if status.is_success() && origin.is_none() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_success() && is(EVENTS) {
            let events = limited_events(response, self.limit);
            return Ok(StreamableHttpPostResponse::Sse(self.tapped(events, origin), session));
        }
        let (is_json, content_type) = (is(JSON), content_type.clone());
        let body = self.body(response).await?;
        if takes_too_much_memory(&body, self.limit) {
            return Err(unexpected_response(TOO_MANY_VALUES));
        }
        if !status.is_success() {
            return error_response(&message, status, &body, has_session, failed, session);
        }
        if !is_json {
            return Err(StreamableHttpError::UnexpectedContentType(content_type));
        }
        let message = self.parse_body(&body, origin.as_ref()).await.map_err(unexpected_response)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    /// Parses a body that is one message.
    async fn parse_body(
        &self,
        body: &[u8],
        origin: Option<&RequestId>,
    ) -> Result<ServerJsonRpcMessage, String> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the answer is not JSON ({error}): {}", excerpt(body)))?;
        let closed =
            || self.tap.close_reason().unwrap_or_else(|| "the connection is closed".into());
        let permit = self.tap.admit(&value).await.map_err(|_| closed())?;
        match self.tap.inspect(value, origin, permit) {
            Disposition::ForSdk(value) => serde_json::from_value(value).map_err(|error| {
                format!("the answer is not a valid MCP message ({error}): {}", excerpt(body))
            }),
            Disposition::Answered(id) => Ok(super::inbound_messages::empty_response(id)),
            Disposition::Consumed => Err("the response does not answer the request".into()),
        }
    }
}

fn error_response(
    sent: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
    has_session: bool,
    failed: Option<HttpStatusError>,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Error> {
    let message = serde_json::from_slice::<ServerJsonRpcMessage>(body).ok();
    let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A server of the older protocol may reject the probe with any error, and the error may lack the probe's id. So the
    // error gets that id here.
    if let JsonRpcMessage::Request(request) = sent
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
        && !is_denied
    {
        let error = match message {
            Some(JsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
        };
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match (message, failed) {
        (Some(message @ JsonRpcMessage::Error(_)), _) if !is_denied => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        (_, Some(error)) => Err(error.into()),
        _ => Err(status_error(status, body)),
    }
}

fn error_without_url(error: Error) -> Error {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(without_url(error)),
        other => other,
    }
}

impl StreamableHttpClient for TappedHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post(uri, message, session, token, headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        self.client.delete_session(uri, session, token, headers).await.map_err(error_without_url)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        let limit = self.limit;
        let resumes = last_event.is_some();
        let origin = last_event.as_deref().and_then(|event| self.tap.find_by_event(event));
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, limit)
            .await
            .map_err(error_without_url)?;
        // A resumed stream repeats the missed events, so the lists need not be fetched again.
        if !resumes {
            self.stream_opened();
        }
        // After an error, the SDK opens the stream again at once, so the error is delayed.
        let delayed = |event: Result<Sse, SseError>| async move {
            if event.is_err() {
                tokio::time::sleep(MIN_RECONNECT_DELAY).await;
            }
            event
        };
        Ok(self.tapped(events.then(delayed).boxed(), origin))
    }
}
