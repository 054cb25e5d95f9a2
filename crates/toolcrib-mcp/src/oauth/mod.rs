//! Signing in to upstream servers that ask for OAuth.
//!
//! A person signs in once, on the command line ([`Login`]); the gateway then uses what was stored
//! ([`client_for`]) and refreshes it on its own. The protocol itself (authorization code with PKCE,
//! discovery by RFC 9728 and 8414, the `resource` of RFC 8707, the `iss` of RFC 9207) is rmcp's. Ours is
//! what rmcp leaves open: where tokens lie, which addresses may be asked, and that no
//! token and no foreign text reaches a log or an error.
//!
//! Credentials are per upstream and come only from here: nothing an inbound request carries goes up.

mod login;
mod reach;
mod store;

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

pub use login::Login;
pub use reach::Barred;

use crate::Secret;
use reach::Reach;
use store::Store;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// An upstream server, as far as signing in to it goes.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Its name in the config.
    pub name: String,
    /// Its MCP endpoint. Another URL is another server, and needs a login of its own.
    pub url: Url,
    /// How we are known to its authorization server.
    pub client: ClientId,
    /// Scopes to ask for; none means those that the server names.
    pub scopes: Vec<String>,
    /// Hosts besides the server's own that may have private addresses, such as a company's sign-in.
    pub trusted_hosts: Vec<String>,
}

impl Upstream {
    /// A server as the config describes it; `None` where the address is none.
    pub fn new(name: &str, url: &str, config: &crate::config::OAuth) -> Option<Self> {
        let client = match &config.client_id {
            Some(id) => ClientId::Given { id: id.clone(), secret: config.client_secret.clone() },
            None => ClientId::Register,
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

/// How we are known to an authorization server.
#[derive(Debug, Clone, Default)]
pub enum ClientId {
    /// By registering ourselves at each login.
    #[default]
    Register,
    /// By a document at this address, where that is understood; by registering elsewhere.
    Document(Url),
    /// By an id that the owner got from the server's makers.
    Given {
        /// The id.
        id: String,
        /// The secret, for clients that have one.
        secret: Option<Secret>,
    },
}

/// There are no credentials for a server, or they are no longer good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}` needs a login; run: toolcrib login {server}")]
pub struct NeedsLogin {
    /// The server's name in the config.
    pub server: String,
}

/// Why signing in, or using what was stored, did not work. Never carries a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A person must sign in (again).
    #[error(transparent)]
    NeedsLogin(#[from] NeedsLogin),
    /// Nothing says where to sign in.
    #[error("`{server}` does not say where to sign in")]
    NoMetadata {
        /// The server's name.
        server: String,
    },
    /// Asking where to sign in failed.
    #[error("where to sign in to `{server}` cannot be found out: {why}")]
    Discovery {
        /// The server's name.
        server: String,
        /// What went wrong, cut and cleaned.
        why: String,
    },
    /// The authorization server is not who it should be.
    #[error("the sign-in of `{server}` answers as `{received}`, not as `{expected}`")]
    Issuer {
        /// The server's name.
        server: String,
        /// The issuer that was asked.
        expected: String,
        /// The issuer that answered.
        received: String,
    },
    /// The server sends us to an address that we do not open.
    #[error("`{server}` sends its sign-in to an address that is not allowed: {why}")]
    Barred {
        /// The server's name.
        server: String,
        /// Which rule it breaks.
        why: Barred,
    },
    /// The authorization server did not take us as a client.
    #[error("the sign-in of `{server}` does not register us: {why}")]
    Registration {
        /// The server's name.
        server: String,
        /// What it said, cut and cleaned.
        why: String,
    },
    /// The person or the authorization server said no.
    #[error("the sign-in to `{server}` was refused: {why}")]
    Denied {
        /// The server's name.
        server: String,
        /// The reason given, cut and cleaned.
        why: String,
    },
    /// The code was not exchanged for a token.
    #[error("the sign-in of `{server}` gave no usable token")]
    Exchange {
        /// The server's name.
        server: String,
    },
    /// Nobody came back from the browser.
    #[error("nobody signed in to `{server}` in time")]
    TimedOut {
        /// The server's name.
        server: String,
    },
    /// The token is old, and fetching a new one failed for now.
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
        /// What the system said.
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
                "tell the server's operator: its sign-in is set up wrongly".to_owned()
            }
            Self::Barred { .. } => {
                "if the host is yours, add it to the server's `trusted_hosts`".to_owned()
            }
            Self::Registration { .. } => "set `client_id` for this server in the config".to_owned(),
            Self::Denied { .. } => "sign in again, and grant what is asked".to_owned(),
            Self::State { source, .. } => source.hint(),
            Self::Io { .. } => "check the state folder's permissions and free space".to_owned(),
        }
    }
}

/// A client that carries the stored token of `upstream` and keeps it fresh.
///
/// One per upstream: clones share the token and refresh it once, however many calls find it old.
/// `http` must not follow redirects, for it carries the token. A login made meanwhile by another process
/// is seen by the next `client_for`; [`needs_login`] tells from an error that it is time for one.
pub async fn client_for<C>(
    upstream: &Upstream,
    state: &PrivateFolder,
    http: C,
) -> Result<AuthClient<C>, Error>
where
    C: Clone + Send + Sync + 'static,
{
    let needs_login = || NeedsLogin { server: upstream.name.clone() };
    let store = Store::new(state, &upstream.name, &upstream.url);
    let stored = store.read().ok_or_else(needs_login)?;
    let (mut manager, _) = manager_for(upstream, &store).await?;
    let failed = |error| failure(upstream, &error);
    if !manager.initialize_from_store().await.map_err(failed)? {
        return Err(needs_login().into());
    }
    let secret = match &upstream.client {
        // Credentials of another client would be refused at the first refresh.
        ClientId::Given { id, .. } if *id != stored.client_id => return Err(needs_login().into()),
        ClientId::Given { secret, .. } => secret.clone(),
        ClientId::Register | ClientId::Document(_) => stored.client_secret,
    };
    if let Some(secret) = secret {
        let config = OAuthClientConfig::new(stored.client_id, upstream.url.as_str());
        manager.configure_client(config.with_client_secret(secret.expose())).map_err(failed)?;
    }
    let client = AuthClient::new(http, manager);
    // In a task of its own: a refresh that is dropped half-way has spent the refresh token for nothing.
    let probe = client.clone();
    match tokio::spawn(async move { probe.get_access_token().await }).await {
        Ok(token) => token.map_err(failed)?,
        Err(_) => return Err(Error::Unavailable { server: upstream.name.clone() }),
    };
    Ok(client)
}

/// Whether somebody has signed in to `upstream` before.
pub fn is_signed_in(upstream: &Upstream, state: &PrivateFolder) -> bool {
    Store::new(state, &upstream.name, &upstream.url).read().is_some()
}

/// A client for requests that carry tokens: it follows no redirect.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    toolcrib_tls::client_builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Whether an error of an upstream connection or call means that `server` needs a login.
pub fn needs_login(server: &str, error: &(dyn StdError + 'static)) -> Option<NeedsLogin> {
    let mut next = Some(error);
    while let Some(error) = next {
        let login = error.is::<AuthRequiredError>()
            || matches!(
                error.downcast_ref(),
                Some(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_))
            );
        if login {
            return Some(NeedsLogin { server: server.to_owned() });
        }
        // rmcp does not name these two as sources.
        next = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(ClientInitializeError::TransportError { error, .. }), _)
            | (_, Some(ServiceError::TransportSend(error))) => Some(&*error.error),
            _ => error.source(),
        };
    }
    None
}

/// rmcp's state machine for `upstream`, with our store and our reach, after discovery.
async fn manager_for(
    upstream: &Upstream,
    store: &Store,
) -> Result<(AuthorizationManager, AuthorizationMetadata), Error> {
    let server = || upstream.name.clone();
    let failed = |error| failure(upstream, &error);
    let reach = Reach::new(upstream, store.clone())
        .map_err(|error| Error::Discovery { server: server(), why: clean(&error.to_string()) })?;
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(upstream.url.clone(), Arc::new(reach))
            .await
            .map_err(failed)?;
    manager.set_credential_store(store.clone());
    let found = manager.resolve_metadata().await.map_err(failed)?;
    // Guessed endpoints have no issuer that the credentials could be bound to.
    if !found.source.is_discovered() || found.metadata.issuer.is_none() {
        return Err(Error::NoMetadata { server: server() });
    }
    let AuthorizationMetadata { authorization_endpoint, token_endpoint, .. } = &found.metadata;
    let registration = found.metadata.registration_endpoint.as_ref();
    for endpoint in [authorization_endpoint, token_endpoint].into_iter().chain(registration) {
        reach::check_text(upstream, endpoint)
            .map_err(|why| Error::Barred { server: server(), why })?;
    }
    manager.set_metadata(found.metadata.clone());
    Ok((manager, found.metadata))
}

/// Our error for one of rmcp's. Its text is repeated only where no token can be in it.
fn failure(upstream: &Upstream, error: &AuthError) -> Error {
    let server = upstream.name.clone();
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

/// A stranger's text for a terminal: printable ASCII, one line, not long.
fn clean(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(200).map(plain).collect()
}
