//! A login on the command line: a URL for the browser, and a listener for the callback.
//!
//! The listener is on loopback, on a port that the system chooses. It accepts one callback, which must carry the
//! `state` of this login, so a page that only guesses ports cannot end or use the login. The pages it serves are fixed
//! texts: nothing from the request is shown in the browser.

use parking_lot::Mutex;
use std::future::IntoFuture as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolcrib_server::access::Access;
use toolcrib_server::guard::Guard;
use toolcrib_server::private_file::PrivateFolder;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use url::{Url, form_urlencoded};

use super::allowed_addresses::{DisallowedAddress, check_endpoint};
use super::error::{clean, sign_in_error};
use super::token_store::TokenStore;
use super::{ClientIdentity, Error, SignInTarget, manager_for};
use crate::Secret;

/// How long the user has to sign in, by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// How long the browser has to fetch the page that ends the login.
const LAST_PAGE_TIMEOUT: Duration = Duration::from_secs(2);
const CALLBACK_PATH: &str = "/callback";

/// A login that waits for the browser's callback.
pub struct Login {
    target: SignInTarget,
    manager: AuthorizationManager,
    listener: TcpListener,
    url: Url,
    state: Secret,
    timeout: Duration,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("server", &self.target.name).finish_non_exhaustive()
    }
}

impl Login {
    /// Discovers where to sign in, registers with the authorization server, and opens the listener.
    pub fn start<'a>(
        target: &'a SignInTarget,
        state: &'a PrivateFolder,
    ) -> BoxFuture<'a, Result<Self, Error>> {
        async move {
            let io = |source| Error::Io { server: target.name.clone(), source };
            let store = TokenStore::new(state, &target.name, &target.url);
            let unusable = |source| Error::State { server: target.name.clone(), source };
            store.prepare().map_err(unusable)?;
            let mut manager = manager_for(target, &store).await?;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(io)?;
            let port = listener.local_addr().map_err(io)?.port();
            let redirect = format!("http://127.0.0.1:{port}{CALLBACK_PATH}");
            let scopes = match &*target.scopes {
                [] => manager.select_initial_scopes(&[]).await,
                scopes => scopes.to_vec(),
            };
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let secret = register_client(&mut manager, target, (&redirect, &scopes)).await?;
            store.set_client_secret(secret);
            let failed = |error| sign_in_error(target, &error);
            let url = manager.get_authorization_url(&scopes).await.map_err(failed)?;
            let disallowed =
                |reason| Error::DisallowedAddress { server: target.name.clone(), reason };
            check_endpoint(target, &url).map_err(disallowed)?;
            let url: Url = url.parse().map_err(|_| disallowed(DisallowedAddress::Malformed))?;
            // If the endpoint's own query also has a `state`, the `state` of this login is the last one.
            let state = url.query_pairs().filter(|(name, _)| name == "state").last();
            let state = state.map(|(_, value)| Secret::from(&*value));
            let state = state.ok_or_else(|| disallowed(DisallowedAddress::Malformed))?;
            Ok(Self {
                target: target.clone(),
                manager,
                listener,
                url,
                state,
                timeout: DEFAULT_TIMEOUT,
            })
        }
        .boxed()
    }

    /// Returns the http or https URL where the user signs in. Show the URL, but never pass it to a shell.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sets a timeout other than the default of five minutes.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Waits for the browser, fetches the tokens and stores them.
    pub fn finish(self) -> BoxFuture<'static, Result<(), Error>> {
        async move {
            let server = || self.target.name.clone();
            let (sender, result) = oneshot::channel();
            let callback =
                CallbackState { state: self.state, result: Arc::new(Mutex::new(Some(sender))) };
            let routes =
                Router::new().route(CALLBACK_PATH, get(handle_callback)).with_state(callback);
            let guard = Guard::new(&[], &[], Access::Open).map_err(|error| Error::Io {
                server: server(),
                source: std::io::Error::other(error),
            })?;
            let (stop, stopped) = oneshot::channel::<()>();
            // If the login is abandoned, `stop` is dropped with this future. That ends the listener, so nothing keeps
            // running.
            let serving = axum::serve(self.listener, guard.protect(routes))
                .with_graceful_shutdown(async move { drop(stopped.await) });
            let mut serving = tokio::spawn(serving.into_future());
            let result = tokio::time::timeout(self.timeout, result).await;
            drop(stop);
            if tokio::time::timeout(LAST_PAGE_TIMEOUT, &mut serving).await.is_err() {
                serving.abort();
            }
            let result = result.map_err(|_| Error::TimedOut { server: server() })?;
            let code = match result.map_err(|_| Error::TimedOut { server: server() })? {
                CallbackResult::Granted(code) => code,
                CallbackResult::Denied(reason) => {
                    return Err(Error::Denied { server: server(), reason });
                }
            };
            let AuthorizationCode { code, state, issuer } = &code;
            let exchange = self.manager.exchange_code_for_token_with_issuer(
                code.expose(),
                state.expose(),
                issuer.as_deref(),
            );
            // The SDK writes the authorization code and extra fields of the response to the debug log, so logging is
            // disabled here.
            let exchanged = exchange.with_subscriber(NoSubscriber::default()).await;
            exchanged.map(drop).map_err(|error| match error {
                AuthError::InternalError(_) => Error::Exchange { server: server() },
                error => sign_in_error(&self.target, &error),
            })
        }
        .boxed()
    }
}

/// Identifies the gateway to the authorization server. Returns the client secret, if a registration issued one.
async fn register_client(
    manager: &mut AuthorizationManager,
    target: &SignInTarget,
    (redirect, scopes): (&str, &[&str]),
) -> Result<Option<Secret>, Error> {
    let failed = |error| sign_in_error(target, &error);
    match &target.client {
        ClientIdentity::Configured { id, secret } => {
            let mut config = OAuthClientConfig::new(id, redirect);
            if let Some(secret) = secret {
                config = config.with_client_secret(secret.expose());
            }
            manager.configure_client(config).map_err(failed)?;
            Ok(None)
        }
        ClientIdentity::Register => {
            let registered = manager.register_client("Toolcrib", redirect, scopes).await;
            let config = registered.map_err(|error| registration_error(target, &error))?;
            Ok(config.client_secret.map(Secret::from))
        }
    }
}

fn registration_error(target: &SignInTarget, error: &AuthError) -> Error {
    let reason = match error {
        // Only two kinds of errors are repeated: HTTP errors, which may quote the server's own error, and the SDK's
        // error that registration is not supported. A parser's error could quote the secret in a successful response.
        AuthError::RegistrationFailed(reason) if reason.starts_with("HTTP ") => clean(reason),
        AuthError::RegistrationFailed(reason) if reason.starts_with("Dynamic") => clean(reason),
        _ => "its response is not usable".to_owned(),
    };
    Error::Registration { server: target.name.clone(), reason }
}

enum CallbackResult {
    Granted(AuthorizationCode),
    Denied(String),
}

struct AuthorizationCode {
    code: Secret,
    state: Secret,
    issuer: Option<String>,
}

#[derive(Clone)]
struct CallbackState {
    state: Secret,
    result: Arc<Mutex<Option<oneshot::Sender<CallbackResult>>>>,
}

async fn handle_callback(
    State(callback): State<CallbackState>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(result) = parse_callback(&query.unwrap_or_default(), &callback.state) else {
        return page(StatusCode::BAD_REQUEST, "This is not the callback that Toolcrib waits for.");
    };
    let sender = callback.result.lock().take();
    match sender.map(|sender| sender.send(result)) {
        Some(Ok(())) => page(
            StatusCode::OK,
            "Toolcrib has received the callback. Close this page; the result is shown in the terminal.",
        ),
        _ => page(StatusCode::GONE, "This login is over."),
    }
}

/// Parses the callback's query. Returns `None` if the query does not belong to this login, or has a field twice.
fn parse_callback(query: &str, expected: &Secret) -> Option<CallbackResult> {
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
        return Some(CallbackResult::Denied(clean(&error)));
    }
    let code = field("code").ok()??.into();
    Some(CallbackResult::Granted(AuthorizationCode {
        code,
        state: state.into(),
        issuer: field("iss").ok()?,
    }))
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
