//! The transport to a server that offers only HTTP+SSE, the HTTP transport of protocol version 2024-11-05.
//!
//! The client opens one event stream. Its first event, `endpoint`, names the URL to which the client then posts its
//! messages. All messages of the server arrive on the stream, so the connection ends with it: the server keeps no
//! session that could be resumed. The URL must have the same origin as the configured URL. Otherwise a server could
//! make the gateway send the headers of the config, and with them credentials, to any other host.

use std::sync::Arc;

use futures::StreamExt as _;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpClient as _};
use sse_stream::Sse;
use tokio::sync::oneshot::error::TryRecvError;
use url::Url;

use super::http::{Error, Events, Headers};
use super::http_client::HttpClient;
use super::http_response::unexpected_response;
use super::inbound_messages::InboundMessages;
use super::sse_http::{EventTooLarge, SseHttp};
use super::stdio::until_cancelled;
use super::tap::Tap;

/// Maximum length of the URL that an `endpoint` event names, in bytes.
const ENDPOINT_BYTES: usize = 8 << 10;

/// The transport that connects the SDK to a server over HTTP+SSE.
pub(super) struct SseTransport {
    client: HttpClient<SseHttp>,
    headers: Headers,
    /// The URL to which messages are posted.
    endpoint: Arc<str>,
    events: Events,
    messages: InboundMessages,
    tap: Arc<Tap>,
}

impl SseTransport {
    /// Opens the event stream at `url`, and waits for its `endpoint` event. The caller limits how long this takes.
    pub(super) async fn open(
        client: HttpClient<SseHttp>,
        url: &str,
        headers: Headers,
        tap: Arc<Tap>,
        limit: usize,
    ) -> Result<Self, Error> {
        let mut events = client.get_stream(url.into(), None, None, None, headers.clone()).await?;
        let endpoint = loop {
            match events.next().await {
                Some(Ok(Sse { event: Some(name), data: Some(data), .. })) if name == "endpoint" => {
                    break endpoint_url(url, &data)?;
                }
                // Anything else before the endpoint is ignored, because there is no request that it could answer.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Error::Sse(error)),
                None => {
                    return Err(unexpected_response(
                        "it ended its event stream without an `endpoint` event",
                    ));
                }
            }
        };
        let messages = InboundMessages::new(Arc::clone(&tap), limit);
        Ok(Self { client, headers, endpoint, events, messages, tap })
    }

    /// Reads an event, and returns the message that the SDK should see, if any.
    fn read_event(&mut self, event: &Sse) -> Option<ServerJsonRpcMessage> {
        let data = event.data.as_deref().filter(|data| !data.trim().is_empty())?;
        match event.event.as_deref() {
            None | Some("" | "message") => self.messages.push(data.as_bytes()),
            // A second endpoint does not change where messages are sent. Servers have no reason to send one.
            Some("endpoint") => {
                self.tap.count_invalid();
                None
            }
            // Servers may send events of other names, such as heartbeats.
            Some(_) => None,
        }
    }
}

/// Resolves the URL of an `endpoint` event, which may be relative to the configured URL. Returns an error if it has
/// another origin.
fn endpoint_url(configured: &str, named: &str) -> Result<Arc<str>, Error> {
    let invalid = || unexpected_response("the URL in its `endpoint` event is not valid");
    if named.len() > ENDPOINT_BYTES {
        return Err(unexpected_response(format!(
            "the URL in its `endpoint` event is longer than {ENDPOINT_BYTES} bytes"
        )));
    }
    let base = Url::parse(configured).map_err(|_| invalid())?;
    let endpoint = base.join(named.trim()).map_err(|_| invalid())?;
    if endpoint.origin() != base.origin() {
        return Err(unexpected_response(format!(
            "its `endpoint` event names another origin, `{}`; messages are sent only to `{}`, because they may contain credentials",
            endpoint.origin().ascii_serialization(),
            base.origin().ascii_serialization(),
        )));
    }
    // User and password would replace the `Authorization` header of the config.
    if !endpoint.username().is_empty() || endpoint.password().is_some() {
        return Err(unexpected_response("the URL in its `endpoint` event contains credentials"));
    }
    Ok(endpoint.as_str().into())
}

impl Transport<RoleClient> for SseTransport {
    type Error = Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let mut cancelled = self.tap.register_request(&message, |_| false);
        let is_cancelled = cancelled
            .as_mut()
            .is_some_and(|cancelled| cancelled.try_recv() == Err(TryRecvError::Closed));
        let (client, endpoint) = (self.client.clone(), Arc::clone(&self.endpoint));
        let headers = self.headers.clone();
        async move {
            if is_cancelled {
                return Ok(());
            }
            tokio::select! {
                biased;
                posted = client.post_message(endpoint, message, None, None, headers) => {
                    posted.map(drop)
                }
                // Some servers never answer a POST, for example after they have lost the session. A cancelled request
                // must not stay in memory until then.
                () = until_cancelled(cancelled) => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while !self.messages.is_empty() {
                if let Some(message) = self.messages.inspect_next().await? {
                    return Some(message);
                }
            }
            let message = match self.events.next().await {
                Some(Ok(event)) => self.read_event(&event),
                Some(Err(SseError::Body(error))) if error.is::<EventTooLarge>() => {
                    let start = error.downcast_ref::<EventTooLarge>();
                    self.messages.skip_too_large(start.map_or(&[], |event| &event.start))
                }
                Some(Err(_)) => {
                    self.tap.close(Some("its event stream was cut off".into()));
                    return None;
                }
                None => {
                    self.tap.close(Some("it ended its event stream".into()));
                    return None;
                }
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        // Closing the stream ends the session on the server.
        self.events = futures::stream::empty().boxed();
        self.tap.close(None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_must_have_the_origin_of_the_configured_url() {
        let url = "https://a.example/v1/sse?key=1";
        let resolve = |named: &str| endpoint_url(url, named).map_err(|error| error.to_string());
        for (named, endpoint) in [
            ("/messages/?session_id=7", "https://a.example/messages/?session_id=7"),
            ("message?sessionId=7", "https://a.example/v1/message?sessionId=7"),
            ("https://a.example:443/post ", "https://a.example/post"),
        ] {
            assert_eq!(resolve(named).as_deref(), Ok(endpoint), "{named}");
        }
        for named in [
            "http://a.example/post",
            "https://a.example:8443/post",
            "https://a.example.evil/post",
            "//evil.example/post",
            "https:\\\\evil.example",
            "data:text/plain,x",
        ] {
            assert!(resolve(named).unwrap_err().contains("another origin"), "{named}");
        }
        let with_user = resolve("https://me@a.example/post").unwrap_err();
        assert!(with_user.contains("contains credentials"), "{with_user}");
        let longest = format!("/{}", "x".repeat(ENDPOINT_BYTES - 1));
        assert!(resolve(&longest).is_ok());
        assert!(resolve(&format!("{longest}x")).unwrap_err().contains("longer than 8192 bytes"));
    }
}
