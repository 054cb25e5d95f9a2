//! Connects to a server over HTTP, and decides between Streamable HTTP and HTTP+SSE.
//!
//! Without a choice in the config, this follows the compatibility rules of the MCP specification. Streamable HTTP is
//! tried first. If the server rejects the handshake with status 400, 404 or 405, an event stream is opened at the same
//! URL, and the server offers HTTP+SSE if an `endpoint` event arrives. The result is remembered for later connections.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::mpsc;

use super::connect::{handshake_error, newer_then_older, start_service};
use super::connection::Connection;
use super::connection_failure::ConnectionFailure;
use super::http::{Headers, TappedHttp};
use super::http_client::HttpClient;
use super::secrets::Secrets;
use super::server_requests::AcceptedRequests;
use super::sse_http::SseHttp;
use super::sse_transport::SseTransport;
use super::tap::Tap;
use super::{Upstream, error_text};
use crate::Secret;
use crate::config::{HttpVariant, OAuth, Transport};
use crate::oauth;

/// How long to wait for the `endpoint` event of a server that may not offer HTTP+SSE at all. A server of Streamable
/// HTTP may answer the same request with a stream that stays silent. Without this limit, the start timeout would hide
/// why the server rejected the handshake.
const ENDPOINT_WAIT: Duration = Duration::from_secs(5);

/// A server with a URL. The references in its config are expanded.
pub(super) struct RemoteServer<'a> {
    pub(super) upstream: &'a Upstream,
    pub(super) url: &'a str,
    pub(super) headers: Headers,
    pub(super) oauth: &'a OAuth,
    pub(super) resource_updates: mpsc::Sender<String>,
    pub(super) secrets: &'a Secrets,
}

/// Why a connection over Streamable HTTP failed.
struct StreamableFailure {
    failure: ConnectionFailure,
    /// Whether the handshake was rejected with status 400, 404 or 405, so the server may offer only HTTP+SSE.
    may_offer_sse: bool,
}

/// Converts the headers of the config.
pub(super) fn request_headers(
    configured: &BTreeMap<String, Secret>,
) -> Result<Headers, ConnectionFailure> {
    let mut headers = HashMap::new();
    for (name, value) in configured {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value.expose()).ok());
        let (header, mut value) = pair
            .ok_or_else(|| ConnectionFailure::new(format!("the header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

impl Upstream {
    /// Returns the name of the transport: `stdio`, `http`, or `sse` if the config chooses HTTP+SSE or the server was
    /// found to offer nothing else.
    pub(crate) fn transport_name(&self) -> &'static str {
        match self.config().transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { variant: HttpVariant::Sse, .. } => "sse",
            Transport::Http { variant: HttpVariant::Auto, .. }
                if self.uses_sse.load(Ordering::Relaxed) =>
            {
                "sse"
            }
            Transport::Http { .. } => "http",
        }
    }
}

impl RemoteServer<'_> {
    /// Connects with the configured variant of HTTP.
    pub(super) async fn connect(
        &self,
        variant: HttpVariant,
    ) -> Result<Connection, ConnectionFailure> {
        let remembered = &self.upstream.uses_sse;
        if variant == HttpVariant::Sse || remembered.load(Ordering::Relaxed) {
            let connected = self.connect_sse(None).await;
            // The server may offer Streamable HTTP by now, so the next attempt tries that first.
            remembered.store(connected.is_ok(), Ordering::Relaxed);
            return connected;
        }
        let StreamableFailure { failure, may_offer_sse } = match self.connect_streamable().await {
            Ok(connection) => return Ok(connection),
            Err(failure) => failure,
        };
        if variant == HttpVariant::Streamable || !may_offer_sse {
            return Err(failure);
        }
        match self.connect_sse(Some(ENDPOINT_WAIT)).await {
            Ok(connection) => {
                remembered.store(true, Ordering::Relaxed);
                Ok(connection)
            }
            Err(second) if second.needs_login => Err(second),
            Err(second) => {
                let reason = format!("{}; over HTTP+SSE: {}", failure.reason, second.reason);
                Err(ConnectionFailure { hint: failure.hint, ..ConnectionFailure::new(reason) })
            }
        }
    }

    async fn connect_streamable(&self) -> Result<Connection, StreamableFailure> {
        let limits = &self.upstream.shared.limits;
        let failed = |failure| StreamableFailure { failure, may_offer_sse: false };
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url)
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(limits.server_calls);
        config.channel_buffer_capacity = limits.server_calls;
        let (tap, accepted) = self.new_tap();
        let http =
            TappedHttp::new(http_client().map_err(failed)?, Arc::clone(&tap), limits.message_bytes);
        let may_offer_only_sse = http.may_offer_only_sse();
        let client = self.signed_in(http).await.map_err(failed)?;
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let started = (Arc::clone(&tap), accepted);
        match start_service(self.upstream, transport, started, newer_then_older()).await {
            Ok((service, handle)) => {
                Ok(Connection { handle, service, process: None, secrets: self.secrets.clone() })
            }
            Err(error) => Err(StreamableFailure {
                failure: self.failure(&tap, &error, || handshake_error(&error)),
                may_offer_sse: may_offer_only_sse.load(Ordering::Relaxed),
            }),
        }
    }

    /// Connects over HTTP+SSE. `endpoint_wait` limits how long this waits for the `endpoint` event. Without it, only
    /// the start timeout does.
    async fn connect_sse(
        &self,
        endpoint_wait: Option<Duration>,
    ) -> Result<Connection, ConnectionFailure> {
        let limit = self.upstream.shared.limits.message_bytes;
        let (tap, accepted) = self.new_tap();
        let client = self.signed_in(SseHttp::new(http_client()?, limit)).await?;
        let opening =
            SseTransport::open(client, self.url, self.headers.clone(), Arc::clone(&tap), limit);
        let opened = match endpoint_wait {
            None => opening.await,
            Some(wait) => tokio::time::timeout(wait, opening).await.map_err(|_| {
                let seconds = wait.as_secs();
                ConnectionFailure::new(format!("no `endpoint` event within {seconds} s"))
            })?,
        };
        let transport =
            opened.map_err(|error| self.failure(&tap, &error, || error_text(&error)))?;
        let started = (Arc::clone(&tap), accepted);
        // The newer protocol does not exist over HTTP+SSE, so there is no probe for it.
        let mode = ClientLifecycleMode::Initialize;
        match start_service(self.upstream, transport, started, mode).await {
            Ok((service, handle)) => {
                Ok(Connection { handle, service, process: None, secrets: self.secrets.clone() })
            }
            Err(error) => Err(self.failure(&tap, &error, || {
                // The reason why the stream ended says more than the SDK's error.
                tap.close_reason().unwrap_or_else(|| handshake_error(&error))
            })),
        }
    }

    fn new_tap(&self) -> (Arc<Tap>, AcceptedRequests) {
        let upstream = self.upstream;
        Tap::new(
            Arc::clone(&upstream.active_calls),
            Arc::clone(&upstream.log),
            self.secrets.clone(),
            &upstream.shared.limits,
            self.resource_updates.clone(),
        )
    }

    /// Adds the token of a login to a client, if there is a login and the config contains no `Authorization` header.
    async fn signed_in<C>(&self, http: C) -> Result<HttpClient<C>, ConnectionFailure>
    where
        C: Clone + Send + Sync + 'static,
    {
        let state = self.upstream.shared.environment.state_folder.as_ref();
        let state = state.filter(|_| !self.headers.contains_key(&AUTHORIZATION));
        let target = oauth::SignInTarget::new(&self.upstream.name, self.url, self.oauth);
        let (Some(target), Some(state)) = (target, state) else {
            return Ok(HttpClient::Plain(http));
        };
        if !oauth::is_signed_in(&target, state) {
            return Ok(HttpClient::Plain(http));
        }
        let client = oauth::client_for(&target, state, http).await;
        client.map(HttpClient::SignedIn).map_err(|error| match &error {
            oauth::Error::NeedsLogin(login) => ConnectionFailure::login_required(login),
            error => ConnectionFailure::with_hint(error, error.hint()),
        })
    }

    /// Converts an error of the handshake, or of opening the event stream.
    fn failure(
        &self,
        tap: &Tap,
        error: &(dyn std::error::Error + 'static),
        text: impl FnOnce() -> String,
    ) -> ConnectionFailure {
        if let Some(reason) = tap.violation() {
            return ConnectionFailure::limit_violation(reason);
        }
        match oauth::needs_login(&self.upstream.name, error) {
            Some(_) if self.headers.contains_key(&AUTHORIZATION) => ConnectionFailure::with_hint(
                "it rejected the `Authorization` header of the config",
                "correct `headers` of this server",
            ),
            Some(login) => ConnectionFailure::login_required(&login),
            None => ConnectionFailure::new(text()),
        }
    }
}

fn http_client() -> Result<reqwest::Client, ConnectionFailure> {
    oauth::http_client().map_err(|error| ConnectionFailure::new(error_text(&error)))
}
