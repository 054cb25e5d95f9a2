//! The HTTP requests of the HTTP+SSE transport: one GET that opens the event stream, and one POST for each message.
//!
//! This implements the SDK's trait for clients of Streamable HTTP, because the SDK's OAuth client can wrap any such
//! client: it adds the token, and refreshes the token if the server rejects it. As with Streamable HTTP, redirects are
//! not followed, because they would send the token elsewhere.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::event_splitter::{EventSplitter, StreamEvent};
use super::http::{EVENTS, Error, Events, Headers, JSON, has_type};
use super::http_response::{auth_challenge, status_error, unexpected_response, without_url};
use crate::raw_arguments::message_to_json;

/// Maximum number of bytes of a body that are read for an error.
const ERROR_BYTES: usize = 4 << 10;

/// An event that is larger than the limit. Unlike all other errors of the stream, it does not end the stream.
#[derive(Debug)]
pub(super) struct EventTooLarge {
    /// The first bytes of the event's data.
    pub(super) start: Vec<u8>,
}

impl fmt::Display for EventTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event is larger than the limit")
    }
}

impl std::error::Error for EventTooLarge {}

/// The client that sends the requests of one connection.
#[derive(Debug, Clone)]
pub(super) struct SseHttp {
    client: reqwest::Client,
    /// Maximum size of an event, in bytes.
    limit: usize,
}

impl SseHttp {
    pub(super) fn new(client: reqwest::Client, limit: usize) -> Self {
        Self { client, limit }
    }
}

/// Sends a request, and returns its response if the status is a success.
async fn send(
    mut request: RequestBuilder,
    token: Option<String>,
    headers: Headers,
) -> Result<Response, Error> {
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = request.send().await.map_err(without_url)?;
    if let Some(error) = auth_challenge(&response) {
        return Err(error);
    }
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await
        && body.len() < ERROR_BYTES
    {
        body.extend_from_slice(&chunk);
    }
    Err(status_error(status, &body))
}

/// Returns the events of a response. An event that is larger than `limit` bytes becomes [`EventTooLarge`].
fn events(response: Response, limit: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut splitter = EventSplitter::new(limit);
    let split = move |chunk: Result<bytes::Bytes, reqwest::Error>| {
        let events: Vec<_> = match &chunk {
            Ok(chunk) => {
                let mut chunk = &**chunk;
                std::iter::from_fn(|| splitter.next_event(&mut chunk)).map(to_sse).collect()
            }
            Err(_) => Vec::new(),
        };
        let failure = chunk.err().map(|error| Err(SseError::Body(Box::new(without_url(error)))));
        stream::iter(events.into_iter().chain(failure))
    };
    response.bytes_stream().flat_map(split).boxed()
}

fn to_sse(event: StreamEvent) -> Result<Sse, SseError> {
    match event {
        StreamEvent::Event { name, data } => {
            let data = String::from_utf8(data)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            Ok(Sse { event: Some(name), data: Some(data), id: None, retry: None })
        }
        StreamEvent::TooLarge { start } => Err(SseError::Body(Box::new(EventTooLarge { start }))),
    }
}

impl StreamableHttpClient for SseHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        _session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body =
            message_to_json(&message).map_err(|error| unexpected_response(error.to_string()))?;
        let request = self.client.post(&*uri).header(CONTENT_TYPE, JSON).body(body);
        // The body of the response is not read, because the answer arrives on the event stream.
        send(request, token, headers).await?;
        Ok(StreamableHttpPostResponse::Accepted)
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        _session: Arc<str>,
        _token: Option<String>,
        _headers: Headers,
    ) -> Result<(), Error> {
        // The end of the event stream ends the session.
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        _session: Option<Arc<str>>,
        _last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        let request = self.client.get(&*uri).header(ACCEPT, EVENTS);
        let response = send(request, token, headers).await?;
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        if !kind.as_deref().is_some_and(|kind| has_type(kind, EVENTS)) {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        Ok(events(response, self.limit))
    }
}
