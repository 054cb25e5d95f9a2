//! Streamable HTTP to a server, with the bodies looked at as they come.
//!
//! The SDK runs the protocol (sessions, resumption, both eras); this is the part that moves bytes. It
//! differs from the SDK's own in three ways: results are taken before they are typed, a body has a
//! limit as an event has, and no redirect is followed, since it would take the token elsewhere.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use reqwest::StatusCode;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::{Value, json};
use sse_stream::Sse;
use tokio::time::Instant;

use super::server_requests::is_request;
use super::tap::{Seen, Tap};
use crate::json_memory::{TOO_MANY_VALUES, takes_too_much_memory};
use crate::raw_arguments::message_to_json;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "Mcp-Session-Id";
/// Minimum time between two fetches of the lists because the stream for changes was opened again. A proxy in
/// between may end that stream every few seconds.
const OPENED_AGAIN: Duration = Duration::from_mins(1);
/// Minimum time before a stream that ended is opened again. A server chooses the time with `retry`, and zero would
/// mean reconnecting without a pause.
const REOPEN: Duration = Duration::from_secs(1);
/// Characters of a body that an error quotes.
const QUOTED: usize = 200;

pub(super) type Error = StreamableHttpError<reqwest::Error>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The SDK's HTTP client, tapped.
#[derive(Debug, Clone)]
pub(crate) struct TappedHttp {
    client: reqwest::Client,
    tap: Arc<Tap>,
    /// Bytes of a body, and of one event in a stream.
    limit: usize,
    /// When the opening of a stream may next cause a fetch of the lists.
    fetches_again: Arc<Mutex<Option<Instant>>>,
}

/// Of a list of tools the SDK needs to know which parameters travel in headers.
fn shares(method: &str) -> bool {
    method == "tools/list"
}

impl TappedHttp {
    pub(crate) fn new(client: reqwest::Client, tap: Arc<Tap>, limit: usize) -> Self {
        Self { client, tap, limit, fetches_again: Arc::default() }
    }

    /// A change while there was no stream was not announced to us, so the lists are fetched again: at once, or,
    /// if that was done shortly before, once the minimum time has passed.
    fn opened(&self) {
        let now = Instant::now();
        let mut next = self.fetches_again.lock().unwrap_or_else(PoisonError::into_inner);
        match *next {
            // Later than the minimum time from now: a fetch is due already.
            Some(at) if at > now + OPENED_AGAIN => {}
            Some(at) if at > now => {
                *next = Some(at + OPENED_AGAIN);
                let tap = Arc::downgrade(&self.tap);
                tokio::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    if let Some(tap) = tap.upgrade() {
                        tap.suspect_change();
                    }
                });
            }
            _ => {
                *next = Some(now + OPENED_AGAIN);
                self.tap.suspect_change();
            }
        }
    }

    /// The events that are for the SDK. A request of the server waits for a permit for its answer, and the events
    /// after it on the same stream wait with it.
    fn tapped(&self, events: Events, origin: Option<RequestId>) -> Events {
        let (tap, origin) = (Arc::clone(&self.tap), origin.map(Arc::new));
        let limit = self.limit;
        let seen = move |event: Result<Sse, SseError>| {
            let (tap, origin) = (Arc::clone(&tap), origin.clone());
            async move {
                match event {
                    Ok(event) => Ok(see_event(&tap, event, origin.as_deref(), limit).await),
                    Err(error) => Err(error),
                }
            }
        };
        events.then(seen).boxed()
    }

    async fn body(&self, response: reqwest::Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(nameless)?);
            if body.len() > self.limit {
                let limit = self.limit;
                return Err(odd(format!("the answer is larger than the limit of {limit} bytes")));
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
        let _ = self.tap.sending(&message, shares);
        let body = message_to_json(&message).map_err(|error| odd(error.to_string()))?;
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
        let response = request.send().await.map_err(nameless)?;
        let status = response.status();
        if let Some(error) = challenge(&response) {
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
        let kind = header(CONTENT_TYPE.as_str());
        let session = header(SESSION);
        let failed = (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
            .then(|| HttpStatusError::new(status.as_u16(), header(RETRY_AFTER.as_str())));
        let is = |mime: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(mime));
        let origin = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        // A notification or an answer needs no reply. One that is a stream would stay open for as long as the server
        // likes, one for each.
        if status.is_success() && origin.is_none() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_success() && is(EVENTS) {
            let events = rmcp_events(response, self.limit);
            return Ok(StreamableHttpPostResponse::Sse(self.tapped(events, origin), session));
        }
        let (is_json, kind) = (is(JSON), kind.clone());
        let body = self.body(response).await?;
        if takes_too_much_memory(&body, self.limit) {
            return Err(odd(TOO_MANY_VALUES));
        }
        if !status.is_success() {
            return unsuccessful(&message, status, &body, has_session, failed, session);
        }
        if !is_json {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let message = self.read(&body, origin.as_ref()).await.map_err(odd)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    /// A body that is one message.
    async fn read(
        &self,
        body: &[u8],
        origin: Option<&RequestId>,
    ) -> Result<ServerJsonRpcMessage, String> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the answer is not JSON ({error}): {}", quoted(body)))?;
        let over = || self.tap.why().unwrap_or_else(|| "the connection is closed".into());
        let permit = self.tap.admit(&value).await.map_err(|_| over())?;
        match self.tap.see(value, origin, permit) {
            Seen::Whole(value) => serde_json::from_value(value).map_err(|error| {
                format!("the answer is no MCP message ({error}): {}", quoted(body))
            }),
            Seen::Answered(id) => Ok(super::stdio::answered(id)),
            Seen::Done => Err("what came is no answer to the request".into()),
        }
    }
}

fn unsuccessful(
    sent: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
    has_session: bool,
    failed: Option<HttpStatusError>,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Error> {
    let said = serde_json::from_slice::<ServerJsonRpcMessage>(body).ok();
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A server of the older era refuses the probe in its own way, without its id.
    if let JsonRpcMessage::Request(request) = sent
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
        && !refused
    {
        let error = match said {
            Some(JsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
        };
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match (said, failed) {
        (Some(message @ JsonRpcMessage::Error(_)), _) if !refused => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        (_, Some(error)) => Err(error.into()),
        _ if status.is_redirection() => {
            Err(odd(format!("HTTP {status}: it is at another address now; put that into `url`")))
        }
        _ => Err(odd(format!("HTTP {status}: {}", quoted(body)))),
    }
}

/// One event as the SDK is to see it: one that is dealt with has nothing in it any more.
async fn see_event(tap: &Tap, mut event: Sse, origin: Option<&RequestId>, limit: usize) -> Sse {
    if let (Some(origin), Some(id)) = (origin, &event.id) {
        tap.saw_event(origin, id);
    }
    let minimum = REOPEN.as_millis().try_into().unwrap_or(u64::MAX);
    event.retry = event.retry.map(|retry| retry.max(minimum));
    let Some(data) = event.data.as_deref().filter(|data| !data.trim().is_empty()) else {
        return event;
    };
    if takes_too_much_memory(data.as_bytes(), limit) {
        tap.skipped(limit, "the server sent an event that takes too much memory");
        let refused = |id: &RequestId| {
            let error = ErrorData::internal_error(TOO_MANY_VALUES, None);
            serde_json::to_string(&ServerJsonRpcMessage::error(error, Some(id.clone()))).ok()
        };
        event.data = origin.and_then(refused);
        return event;
    }
    let Ok(value) = serde_json::from_str::<Value>(data) else {
        tap.noise();
        event.data = None;
        return event;
    };
    if is_request(&value) {
        // The SDK does not see it, and its text must not take memory while it waits.
        event.data = None;
    }
    let Ok(permit) = tap.admit(&value).await else { return event };
    match tap.see(value, origin, permit) {
        Seen::Whole(_) => {}
        Seen::Answered(id) => {
            event.data = Some(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
        }
        // The event's id still counts for a stream that is taken up again.
        Seen::Done => event.data = None,
    }
    event
}

fn rmcp_events(response: reqwest::Response, limit: usize) -> Events {
    let mut size = 0usize;
    let mut last = b'\n';
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| std::io::Error::other(nameless(error)))?;
        for &byte in &*chunk {
            // An empty line ends an event.
            size =
                if byte == b'\n' && last == b'\n' { 0 } else { size + usize::from(byte != b'\r') };
            if byte != b'\r' {
                last = byte;
            }
            if size > limit {
                return Err(std::io::Error::other(format!("an event larger than {limit} bytes")));
            }
        }
        Ok(chunk)
    });
    sse_stream::SseStream::from_bytes_stream(bytes).boxed()
}

fn challenge(response: &reqwest::Response) -> Option<Error> {
    let header = response.headers().get(WWW_AUTHENTICATE);
    let text = header.map(|header| String::from_utf8_lossy(header.as_bytes()).into_owned());
    match response.status() {
        // Some say no more than that.
        StatusCode::UNAUTHORIZED => {
            let error = AuthRequiredError::new(text.unwrap_or_default());
            Some(StreamableHttpError::AuthRequired(error))
        }
        StatusCode::FORBIDDEN => {
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(text?, None)))
        }
        _ => None,
    }
}

/// An error without the address it is about, which may hold a key and goes to logs and clients.
fn nameless(error: reqwest::Error) -> reqwest::Error {
    error.without_url()
}

fn cleaned(error: Error) -> Error {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(nameless(error)),
        other => other,
    }
}

fn odd(problem: impl Into<Cow<'static, str>>) -> Error {
    StreamableHttpError::UnexpectedServerResponse(problem.into())
}

fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = toolcrib_text::clean::one_line(&text);
    if text.is_empty() { "empty".into() } else { text.chars().take(QUOTED).collect() }
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
        self.client.delete_session(uri, session, token, headers).await.map_err(cleaned)
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
        let origin = last_event.as_deref().and_then(|event| self.tap.origin_of(event));
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, limit)
            .await
            .map_err(cleaned)?;
        // A stream that resumes repeats what we missed.
        if !resumes {
            self.opened();
        }
        // After an error, the SDK opens the stream again at once.
        let delayed = |event: Result<Sse, SseError>| async move {
            if event.is_err() {
                tokio::time::sleep(REOPEN).await;
            }
            event
        };
        Ok(self.tapped(events.then(delayed).boxed(), origin))
    }
}
