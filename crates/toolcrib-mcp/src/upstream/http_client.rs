//! The HTTP client of one server, with or without an OAuth token.
//!
//! There is one type for both cases, because the SDK's transport and everything above it are compiled once for each
//! type of client, and a second type adds 8 s to the release build. The SDK's limit on the size of an event is not
//! passed on, because the inner client has the same limit.

use std::sync::Arc;

use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::AuthClient;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse};

use super::http::{Error, Events, Headers};

/// `C` sends the requests: [`super::http::TappedHttp`] or [`super::sse_http::SseHttp`].
#[derive(Clone)]
pub(super) enum HttpClient<C> {
    /// A client that sends no token.
    Plain(C),
    /// A client that sends the token of a login with each request, and refreshes the token when it expires.
    SignedIn(AuthClient<C>),
}

impl<C> StreamableHttpClient for HttpClient<C>
where
    C: StreamableHttpClient<Error = reqwest::Error> + Sync,
{
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        match self {
            Self::Plain(http) => http.post_message(uri, message, session, token, headers).await,
            Self::SignedIn(http) => http.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        match self {
            Self::Plain(http) => http.delete_session(uri, session, token, headers).await,
            Self::SignedIn(http) => http.delete_session(uri, session, token, headers).await,
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        match self {
            Self::Plain(http) => http.get_stream(uri, session, last_event, token, headers).await,
            Self::SignedIn(http) => http.get_stream(uri, session, last_event, token, headers).await,
        }
    }
}
