//! A login on the command line: a URL for the browser, and a listener that waits for its return.
//!
//! The listener is on loopback, at a port of the system's choice. It takes one answer, and only one that
//! carries the `state` of this login; a page that merely guesses at ports cannot end or use it. Its own pages
//! are fixed texts: nothing from the request is ever shown in the browser.

use std::future::IntoFuture as _;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolcrib_server::access::Access;
use toolcrib_server::guard::Guard;
use toolcrib_server::private_file::PrivateFolder;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use url::{Url, form_urlencoded};

use super::store::Store;
use super::{ClientId, Error, Upstream, clean, failure, manager_for, reach};
use crate::Secret;

/// How long a person has for signing in.
const LIMIT: Duration = Duration::from_mins(5);
/// How long the browser has for fetching its last page.
const FAREWELL: Duration = Duration::from_secs(2);
const PATH: &str = "/callback";

/// A login that waits for the browser.
pub struct Login {
    upstream: Upstream,
    manager: AuthorizationManager,
    listener: TcpListener,
    url: Url,
    state: Secret,
    limit: Duration,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("server", &self.upstream.name).finish_non_exhaustive()
    }
}

impl Login {
    /// Finds out where to sign in, makes us known there, and opens the listener.
    pub fn start<'a>(
        upstream: &'a Upstream,
        state: &'a PrivateFolder,
    ) -> BoxFuture<'a, Result<Self, Error>> {
        async move {
            let io = |source| Error::Io { server: upstream.name.clone(), source };
            let store = Store::new(state, &upstream.name, &upstream.url);
            let unusable = |source| Error::State { server: upstream.name.clone(), source };
            store.prepare().map_err(unusable)?;
            let (mut manager, metadata) = manager_for(upstream, &store).await?;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(io)?;
            let port = listener.local_addr().map_err(io)?.port();
            let redirect = format!("http://127.0.0.1:{port}{PATH}");
            let scopes = match &*upstream.scopes {
                [] => manager.select_initial_scopes(&[]).await,
                scopes => scopes.to_vec(),
            };
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let secret = introduce(&mut manager, &metadata, upstream, (&redirect, &scopes)).await?;
            store.set_client_secret(secret);
            let failed = |error| failure(upstream, &error);
            let url = manager.get_authorization_url(&scopes).await.map_err(failed)?;
            let barred = |why| Error::Barred { server: upstream.name.clone(), why };
            reach::check_text(upstream, &url).map_err(barred)?;
            let url: Url = url.parse().map_err(|_| barred(reach::Barred::Malformed))?;
            // The last one: the endpoint's own query may have a `state` too.
            let state = url.query_pairs().filter(|(name, _)| name == "state").last();
            let state = state.map(|(_, value)| Secret::from(&*value));
            let state = state.ok_or_else(|| barred(reach::Barred::Malformed))?;
            Ok(Self { upstream: upstream.clone(), manager, listener, url, state, limit: LIMIT })
        }
        .boxed()
    }

    /// Where the person signs in: http or https. To be shown, never to be handed to a shell.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The same login with another limit than five minutes.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Waits for the browser, fetches the tokens and stores them.
    pub fn finish(self) -> BoxFuture<'static, Result<(), Error>> {
        async move {
            let server = || self.upstream.name.clone();
            let (sender, answer) = oneshot::channel();
            let desk = Desk { state: self.state, answer: Arc::new(Mutex::new(Some(sender))) };
            let routes = Router::new().route(PATH, get(receive)).with_state(desk);
            let guard = Guard::new(&[], &[], Access::Open).map_err(|error| Error::Io {
                server: server(),
                source: std::io::Error::other(error),
            })?;
            let (stop, stopped) = oneshot::channel::<()>();
            // Dropping `stop` ends the listener too, so a login that is given up leaves nothing behind.
            let serving = axum::serve(self.listener, guard.protect(routes))
                .with_graceful_shutdown(async move { drop(stopped.await) });
            let mut serving = tokio::spawn(serving.into_future());
            let answer = tokio::time::timeout(self.limit, answer).await;
            drop(stop);
            if tokio::time::timeout(FAREWELL, &mut serving).await.is_err() {
                serving.abort();
            }
            let answer = answer.map_err(|_| Error::TimedOut { server: server() })?;
            let callback = match answer.map_err(|_| Error::TimedOut { server: server() })? {
                Answer::Granted(callback) => callback,
                Answer::Denied(why) => return Err(Error::Denied { server: server(), why }),
            };
            let Callback { code, state, issuer } = &callback;
            let exchange = self.manager.exchange_code_for_token_with_issuer(
                code.expose(),
                state.expose(),
                issuer.as_deref(),
            );
            // rmcp writes the code and the answer's extra fields to the debug log: nobody listens here.
            let exchanged = exchange.with_subscriber(NoSubscriber::default()).await;
            exchanged.map(drop).map_err(|error| match error {
                AuthError::InternalError(_) => Error::Exchange { server: server() },
                error => failure(&self.upstream, &error),
            })
        }
        .boxed()
    }
}

/// Makes us known to the authorization server; the secret that a registration gave, if it did.
async fn introduce(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    upstream: &Upstream,
    (redirect, scopes): (&str, &[&str]),
) -> Result<Option<Secret>, Error> {
    let failed = |error| failure(upstream, &error);
    let reads_documents = metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|value| value == true);
    match &upstream.client {
        ClientId::Given { id, secret } => {
            let mut config = OAuthClientConfig::new(id, redirect);
            if let Some(secret) = secret {
                config = config.with_client_secret(secret.expose());
            }
            manager.configure_client(config).map_err(failed)?;
            Ok(None)
        }
        ClientId::Document(url) if reads_documents && url.scheme() == "https" => {
            let config = OAuthClientConfig::new(url.as_str(), redirect);
            manager.configure_client(config).map_err(failed)?;
            Ok(None)
        }
        ClientId::Document(_) | ClientId::Register => {
            let registered = manager.register_client("Toolcrib", redirect, scopes).await;
            let config = registered.map_err(|error| not_registered(upstream, &error))?;
            Ok(config.client_secret.map(Secret::from))
        }
    }
}

fn not_registered(upstream: &Upstream, error: &AuthError) -> Error {
    let why = match error {
        // A refusal's own words; a parser's words could quote the secret of an accepted one.
        AuthError::RegistrationFailed(why) if why.starts_with("HTTP ") => clean(why),
        AuthError::RegistrationFailed(why) if why.starts_with("Dynamic") => clean(why),
        _ => "its answer is not usable".to_owned(),
    };
    Error::Registration { server: upstream.name.clone(), why }
}

enum Answer {
    Granted(Callback),
    Denied(String),
}

struct Callback {
    code: Secret,
    state: Secret,
    issuer: Option<String>,
}

#[derive(Clone)]
struct Desk {
    state: Secret,
    answer: Arc<Mutex<Option<oneshot::Sender<Answer>>>>,
}

async fn receive(State(desk): State<Desk>, RawQuery(query): RawQuery) -> Response {
    let Some(answer) = read(&query.unwrap_or_default(), &desk.state) else {
        return page(StatusCode::BAD_REQUEST, "This is not the answer that Toolcrib waits for.");
    };
    let sender = desk.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    match sender.map(|sender| sender.send(answer)) {
        Some(Ok(())) => page(
            StatusCode::OK,
            "Toolcrib has the answer. Close this page; the terminal says how it went.",
        ),
        _ => page(StatusCode::GONE, "This login is over."),
    }
}

/// The answer in a query, if it belongs to this login and says each thing once.
fn read(query: &str, expected: &Secret) -> Option<Answer> {
    let field = |wanted: &str| {
        let mut values =
            form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == wanted);
        let value = values.next().map(|(_, value)| value.into_owned());
        if values.next().is_some() { Err(()) } else { Ok(value) }
    };
    let state = field("state").ok()??;
    if !expected.matches(&state) {
        return None;
    }
    if let Some(error) = field("error").ok()? {
        return Some(Answer::Denied(clean(&error)));
    }
    let code = field("code").ok()??.into();
    Some(Answer::Granted(Callback { code, state: state.into(), issuer: field("iss").ok()? }))
}

fn page(status: StatusCode, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ];
    (status, headers, text).into_response()
}
