//! Signing in to upstream servers that require OAuth.
//!
//! The user signs in once, on the command line ([`Login`]). The gateway then uses the stored tokens ([`client_for`])
//! and refreshes them automatically. The SDK implements the protocol: authorization code with PKCE, discovery by RFC
//! 9728 and 8414, the `resource` of RFC 8707, the `iss` of RFC 9207. This module decides what the SDK leaves open:
//! where tokens are stored, and which addresses may be contacted. It also ensures that logs and errors contain no
//! token, and untrusted text only after cleaning.
//!
//! Each upstream server has its own tokens, and they come only from this module. A client's own credentials are never
//! forwarded to a server.

mod allowed_addresses;
mod error;
mod login;
mod sign_in_http;
mod token_store;

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use rmcp::transport::streamable_http_client::AuthRequiredError;
use toolcrib_server::private_file::PrivateFolder;
use url::Url;

pub use allowed_addresses::DisallowedAddress;
pub use error::{Error, NeedsLogin};
pub use login::Login;

use crate::Secret;
use allowed_addresses::check_endpoint;
use error::{clean, sign_in_error};
use sign_in_http::SignInHttp;
use token_store::TokenStore;

/// Timeout for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An upstream server that requires a sign-in.
#[derive(Debug, Clone)]
pub struct SignInTarget {
    /// The server's name in the config.
    pub name: String,
    /// The URL of the server's MCP endpoint. Each URL needs its own login.
    pub url: Url,
    /// How the gateway identifies itself to the authorization server.
    pub client: ClientIdentity,
    /// Scopes to request. If empty, the scopes that the server advertises are requested.
    pub scopes: Vec<String>,
    /// Hosts that may have private addresses, such as a company's sign-in. The server's own host may always have them.
    pub trusted_hosts: Vec<String>,
}

impl SignInTarget {
    /// Creates the target for a server from the config. Returns `None` if the URL is invalid.
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
    /// The gateway registers as a new client at each login.
    #[default]
    Register,
    /// The gateway uses a client id from the config.
    Configured {
        /// The client id.
        id: String,
        /// The client secret, if there is one.
        secret: Option<Secret>,
    },
}

/// Creates a client that sends the stored token of `target` and refreshes it.
///
/// Use one client per server. Its clones share the token and refresh it once, even if many calls find it expired.
/// `http` must not follow redirects, because its requests carry the token. A login by another process takes effect with
/// the next `client_for`. [`needs_login`] tells whether an error requires a login.
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
    let mut manager = manager_for(target, &store).await?;
    let failed = |error| sign_in_error(target, &error);
    if !manager.initialize_from_store().await.map_err(failed)? {
        return Err(needs_login().into());
    }
    let secret = match &target.client {
        // The stored credentials belong to a different client id, so the server would reject them at the first refresh.
        ClientIdentity::Configured { id, .. } if *id != stored.client_id => {
            return Err(needs_login().into());
        }
        ClientIdentity::Configured { secret, .. } => secret.clone(),
        ClientIdentity::Register => stored.client_secret,
    };
    if let Some(secret) = secret {
        let config = OAuthClientConfig::new(stored.client_id, target.url.as_str());
        manager.configure_client(config.with_client_secret(secret.expose())).map_err(failed)?;
    }
    let client = AuthClient::new(http, manager);
    // This runs in a separate task, so that it completes even if this future is dropped. If a refresh were interrupted
    // before its response is stored, the old refresh token would be used up and the new one lost.
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

/// Creates an HTTP client for requests that carry tokens. The client follows no redirects.
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
        // The SDK does not expose the errors inside these two errors as their sources.
        next = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(ClientInitializeError::TransportError { error, .. }), _)
            | (_, Some(ServiceError::TransportSend(error))) => Some(&*error.error),
            _ => error.source(),
        };
    }
    None
}

/// Creates the SDK's authorization manager for `target`, with our token store and HTTP client, and discovers where to
/// sign in.
async fn manager_for(
    target: &SignInTarget,
    store: &TokenStore,
) -> Result<AuthorizationManager, Error> {
    let server = || target.name.clone();
    let failed = |error| sign_in_error(target, &error);
    let http = SignInHttp::new(target, store.clone()).map_err(|error| Error::Discovery {
        server: server(),
        reason: clean(&error.to_string()),
    })?;
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(target.url.clone(), Arc::new(http))
            .await
            .map_err(failed)?;
    manager.set_credential_store(store.clone());
    let resolved = manager.resolve_metadata().await.map_err(failed)?;
    // If the endpoints were only guessed, there is no issuer that the credentials could be bound to.
    if !resolved.source.is_discovered() || resolved.metadata.issuer.is_none() {
        return Err(Error::NoMetadata { server: server() });
    }
    let AuthorizationMetadata { authorization_endpoint, token_endpoint, .. } = &resolved.metadata;
    let registration = resolved.metadata.registration_endpoint.as_ref();
    for endpoint in [authorization_endpoint, token_endpoint].into_iter().chain(registration) {
        check_endpoint(target, endpoint)
            .map_err(|reason| Error::DisallowedAddress { server: server(), reason })?;
    }
    manager.set_metadata(resolved.metadata);
    Ok(manager)
}
