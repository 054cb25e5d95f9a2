//! Signing in to upstream servers that require OAuth.
//!
//! The user signs in once, on the command line ([`Login`]). The gateway then uses the stored tokens ([`client_for`]) and
//! refreshes them automatically. The SDK implements the protocol: authorization code with PKCE, discovery by RFC 9728 and
//! 8414, the `resource` of RFC 8707, the `iss` of RFC 9207. This module decides what the SDK leaves open: where tokens
//! are stored, which addresses may be contacted, and that no token and no untrusted text reaches a log or an error.
//!
//! Credentials are per upstream server and come only from here. Nothing from a client's request is forwarded.

mod allowed_addresses;
mod login;
mod sign_in_http;
mod token_store;

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use rmcp::transport::streamable_http_client::AuthRequiredError;
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};
use url::Url;

pub use allowed_addresses::DisallowedAddress;
pub use login::Login;

use crate::Secret;
use allowed_addresses::check_endpoint;
use sign_in_http::SignInHttp;
use token_store::TokenStore;

/// Timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An upstream server that requires a sign-in.
#[derive(Debug, Clone)]
pub struct SignInTarget {
    /// Its name in the config.
    pub name: String,
    /// Its MCP endpoint. Each URL needs its own login.
    pub url: Url,
    /// How the gateway identifies itself to the authorization server.
    pub client: ClientIdentity,
    /// Scopes to request. If empty, those the server advertises.
    pub scopes: Vec<String>,
    /// Hosts that may have private addresses in addition to the server's own, such as a company's sign-in.
    pub trusted_hosts: Vec<String>,
}

impl SignInTarget {
    /// A server from the config; `None` if the URL is invalid.
    pub fn new(name: &str, url: &str, config: &crate::config::OAuth) -> Option<Self> {
        let client = match &config.client_id {
            Some(id) => {
                ClientIdentity::Configured { id: id.clone(), secret: config.client_secret.clone() }
            }
            None => ClientIdentity::Register,
        };
        Some(Self {
            name: name.to_owned(),
            url: Url::parse(url).ok()?,
            client,
            scopes: config.scopes.clone(),
            trusted_hosts: config.trusted_hosts.clone(),
        })
    }
}

/// How the gateway identifies itself to an authorization server.
#[derive(Debug, Clone, Default)]
pub enum ClientIdentity {
    /// Registers as a new client at each login.
    #[default]
    Register,
    /// Uses the client metadata document at this URL if the server supports that; registers otherwise.
    MetadataDocument(Url),
    /// Uses a client id from the config.
    Configured {
        /// The client id.
        id: String,
        /// The client secret, if there is one.
        secret: Option<Secret>,
    },
}

/// There are no credentials for a server, or they are no longer valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}` needs a login; run: toolcrib login {server}")]
pub struct NeedsLogin {
    /// The server's name in the config.
    pub server: String,
}

/// Why signing in, or using the stored tokens, failed. Never contains a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user must sign in (again).
    #[error(transparent)]
    NeedsLogin(#[from] NeedsLogin),
    /// The server does not advertise a sign-in.
    #[error("`{server}` does not say where to sign in")]
    NoMetadata {
        /// The server's name.
        server: String,
    },
    /// Discovering where to sign in failed.
    #[error("cannot discover where to sign in to `{server}`: {why}")]
    Discovery {
        /// The server's name.
        server: String,
        /// What went wrong, shortened and cleaned.
        why: String,
    },
    /// The response comes from another authorization server than expected.
    #[error("the sign-in of `{server}` answers as `{received}`, not as `{expected}`")]
    Issuer {
        /// The server's name.
        server: String,
        /// The expected issuer.
        expected: String,
        /// The issuer in the response.
        received: String,
    },
    /// The server's sign-in is at an address that is not allowed.
    #[error("`{server}` sends its sign-in to an address that is not allowed: {why}")]
    DisallowedAddress {
        /// The server's name.
        server: String,
        /// Why it is not allowed.
        why: DisallowedAddress,
    },
    /// The authorization server did not register the gateway as a client.
    #[error("the sign-in of `{server}` did not register Toolcrib as a client: {why}")]
    Registration {
        /// The server's name.
        server: String,
        /// Its error, shortened and cleaned.
        why: String,
    },
    /// The user or the authorization server denied access.
    #[error("the sign-in to `{server}` was refused: {why}")]
    Denied {
        /// The server's name.
        server: String,
        /// The reason given, shortened and cleaned.
        why: String,
    },
    /// The authorization code could not be exchanged for a token.
    #[error("the sign-in of `{server}` gave no usable token")]
    Exchange {
        /// The server's name.
        server: String,
    },
    /// The browser sent no callback in time.
    #[error("nobody signed in to `{server}` in time")]
    TimedOut {
        /// The server's name.
        server: String,
    },
    /// The token has expired, and refreshing it failed for now.
    #[error("the token for `{server}` cannot be refreshed right now")]
    Unavailable {
        /// The server's name.
        server: String,
    },
    /// The state folder cannot be used.
    #[error("a login to `{server}` cannot be stored: {source}")]
    State {
        /// The server's name.
        server: String,
        /// What is wrong with it.
        source: PrivateFileError,
    },
    /// The state folder or the callback's listener failed.
    #[error("signing in to `{server}`: {source}")]
    Io {
        /// The server's name.
        server: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NeedsLogin(NeedsLogin { server }) | Self::TimedOut { server } => {
                format!("run: toolcrib login {server}")
            }
            Self::NoMetadata { .. } => {
                "the server may want a fixed token: set it as a header in the config".to_owned()
            }
            Self::Discovery { .. } | Self::Unavailable { .. } => {
                "check the server's URL and the network, then try again".to_owned()
            }
            Self::Issuer { .. } | Self::Exchange { .. } => {
                "tell the server's operator: its sign-in is misconfigured".to_owned()
            }
            Self::DisallowedAddress { .. } => {
                "if the host is yours, add it to the server's `trusted_hosts`".to_owned()
            }
            Self::Registration { .. } => "set `client_id` for this server in the config".to_owned(),
            Self::Denied { .. } => "sign in again, and grant the requested access".to_owned(),
            Self::State { source, .. } => source.hint(),
            Self::Io { .. } => "check the state folder's permissions and free space".to_owned(),
        }
    }
}

/// A client that sends the stored token of `target` and refreshes it.
///
/// Use one per server: its clones share the token and refresh it once, however many calls find it expired. `http` must
/// not follow redirects, because it carries the token. A login by another process takes effect with the next
/// `client_for`; [`needs_login`] tells whether an error calls for that.
pub async fn client_for<C>(
    target: &SignInTarget,
    state: &PrivateFolder,
    http: C,
) -> Result<AuthClient<C>, Error>
where
    C: Clone + Send + Sync + 'static,
{
    let needs_login = || NeedsLogin { server: target.name.clone() };
    let store = TokenStore::new(state, &target.name, &target.url);
    let stored = store.client().ok_or_else(needs_login)?;
    let (mut manager, _) = manager_for(target, &store).await?;
    let failed = |error| sign_in_error(target, &error);
    if !manager.initialize_from_store().await.map_err(failed)? {
        return Err(needs_login().into());
    }
    let secret = match &target.client {
        // The server would reject the credentials of another client at the first refresh.
        ClientIdentity::Configured { id, .. } if *id != stored.client_id => {
            return Err(needs_login().into());
        }
        ClientIdentity::Configured { secret, .. } => secret.clone(),
        ClientIdentity::Register | ClientIdentity::MetadataDocument(_) => stored.client_secret,
    };
    if let Some(secret) = secret {
        let config = OAuthClientConfig::new(stored.client_id, target.url.as_str());
        manager.configure_client(config.with_client_secret(secret.expose())).map_err(failed)?;
    }
    let client = AuthClient::new(http, manager);
    // In a separate task: if a refresh is dropped before its response is stored, the refresh token is used up.
    let probe = client.clone();
    match tokio::spawn(async move { probe.get_access_token().await }).await {
        Ok(token) => token.map_err(failed)?,
        Err(_) => return Err(Error::Unavailable { server: target.name.clone() }),
    };
    Ok(client)
}

/// Whether there are stored tokens for `target`.
pub fn is_signed_in(target: &SignInTarget, state: &PrivateFolder) -> bool {
    TokenStore::new(state, &target.name, &target.url).client().is_some()
}

/// A client for requests that carry tokens: it follows no redirects.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    toolcrib_tls::client_builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Returns [`NeedsLogin`] if an error of a connection or call means that `server` requires a login.
pub fn needs_login(server: &str, error: &(dyn StdError + 'static)) -> Option<NeedsLogin> {
    let mut next = Some(error);
    while let Some(error) = next {
        let requires_login = error.is::<AuthRequiredError>()
            || matches!(
                error.downcast_ref(),
                Some(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_))
            );
        if requires_login {
            return Some(NeedsLogin { server: server.to_owned() });
        }
        // The SDK does not expose these two as sources.
        next = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(ClientInitializeError::TransportError { error, .. }), _)
            | (_, Some(ServiceError::TransportSend(error))) => Some(&*error.error),
            _ => error.source(),
        };
    }
    None
}

/// The SDK's state machine for `target` after discovery, with our token store and HTTP client.
async fn manager_for(
    target: &SignInTarget,
    store: &TokenStore,
) -> Result<(AuthorizationManager, AuthorizationMetadata), Error> {
    let server = || target.name.clone();
    let failed = |error| sign_in_error(target, &error);
    let http = SignInHttp::new(target, store.clone())
        .map_err(|error| Error::Discovery { server: server(), why: clean(&error.to_string()) })?;
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(target.url.clone(), Arc::new(http))
            .await
            .map_err(failed)?;
    manager.set_credential_store(store.clone());
    let resolved = manager.resolve_metadata().await.map_err(failed)?;
    // Guessed endpoints have no issuer to bind the credentials to.
    if !resolved.source.is_discovered() || resolved.metadata.issuer.is_none() {
        return Err(Error::NoMetadata { server: server() });
    }
    let AuthorizationMetadata { authorization_endpoint, token_endpoint, .. } = &resolved.metadata;
    let registration = resolved.metadata.registration_endpoint.as_ref();
    for endpoint in [authorization_endpoint, token_endpoint].into_iter().chain(registration) {
        check_endpoint(target, endpoint)
            .map_err(|why| Error::DisallowedAddress { server: server(), why })?;
    }
    manager.set_metadata(resolved.metadata.clone());
    Ok((manager, resolved.metadata))
}

/// Converts the SDK's error. Its text is repeated only if it cannot contain a token.
fn sign_in_error(target: &SignInTarget, error: &AuthError) -> Error {
    let server = target.name.clone();
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
            Error::NeedsLogin(NeedsLogin { server })
        }
        AuthError::MetadataError(why) => Error::Discovery { server, why: clean(why) },
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => {
            Error::Issuer {
                server,
                expected: clean(expected_issuer),
                received: clean(received_issuer),
            }
        }
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => Error::Issuer {
            server,
            expected: clean(expected_issuer),
            received: "nobody".to_owned(),
        },
        AuthError::PkceUnsupported => Error::Discovery { server, why: "no PKCE (S256)".to_owned() },
        AuthError::CredentialStoreError(why) => {
            Error::Io { server, source: io::Error::other(why.clone()) }
        }
        AuthError::TokenExchangeFailed(_) => Error::Exchange { server },
        _ => Error::Unavailable { server },
    }
}

/// Untrusted text for a terminal: one line of at most 200 printable ASCII characters.
fn clean(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(200).map(plain).collect()
}
