//! Errors of signing in.

use std::io;

use rmcp::transport::auth::AuthError;
use toolcrib_server::private_file::PrivateFileError;

use super::{DisallowedAddress, SignInTarget};

/// The error that there are no credentials for a server, or that they are no longer valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}` needs a login; run: toolcrib login {server}")]
pub struct NeedsLogin {
    /// The server's name in the config.
    pub server: String,
}

/// Why signing in, or using the stored tokens, failed. An error never contains a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user must sign in, for the first time or again.
    #[error(transparent)]
    NeedsLogin(#[from] NeedsLogin),
    /// The server does not advertise where to sign in.
    #[error("`{server}` does not advertise where to sign in")]
    NoMetadata {
        /// The server's name.
        server: String,
    },
    /// Discovering where to sign in failed.
    #[error("cannot discover where to sign in to `{server}`: {reason}")]
    Discovery {
        /// The server's name.
        server: String,
        /// The error's text, shortened and cleaned.
        reason: String,
    },
    /// The response is from a different authorization server than expected.
    #[error(
        "the authorization server of `{server}` identifies itself as `{received}`, not as `{expected}`"
    )]
    Issuer {
        /// The server's name.
        server: String,
        /// The expected issuer.
        expected: String,
        /// The issuer in the response.
        received: String,
    },
    /// The server's sign-in is at an address that is not allowed.
    #[error("`{server}` directs the sign-in to an address that is not allowed: {reason}")]
    DisallowedAddress {
        /// The server's name.
        server: String,
        /// Why the address is not allowed.
        reason: DisallowedAddress,
    },
    /// The authorization server did not register the gateway as a client.
    #[error(
        "the authorization server of `{server}` did not register Toolcrib as a client: {reason}"
    )]
    Registration {
        /// The server's name.
        server: String,
        /// The authorization server's error, shortened and cleaned.
        reason: String,
    },
    /// The user or the authorization server denied access.
    #[error("the sign-in to `{server}` was refused: {reason}")]
    Denied {
        /// The server's name.
        server: String,
        /// The reason that the authorization server gave, shortened and cleaned.
        reason: String,
    },
    /// The authorization code could not be exchanged for a token.
    #[error("the authorization server of `{server}` issued no usable token")]
    Exchange {
        /// The server's name.
        server: String,
    },
    /// The browser did not call back in time.
    #[error("the sign-in to `{server}` timed out")]
    TimedOut {
        /// The server's name.
        server: String,
    },
    /// The token has expired, and refreshing it failed. A later attempt may succeed.
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
        /// What is wrong with the folder.
        source: PrivateFileError,
    },
    /// Reading or writing the stored login, or listening for the callback, failed.
    #[error("signing in to `{server}`: {source}")]
    Io {
        /// The server's name.
        server: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::NeedsLogin(NeedsLogin { server }) | Self::TimedOut { server } => {
                format!("run: toolcrib login {server}")
            }
            Self::NoMetadata { .. } => {
                "the server may require a fixed token: set it as a header in the config".to_owned()
            }
            Self::Discovery { .. } | Self::Unavailable { .. } => {
                "check the server's URL and the network, then try again".to_owned()
            }
            Self::Issuer { .. } | Self::Exchange { .. } => {
                "report this to the server's operator: its sign-in is misconfigured".to_owned()
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

/// Converts the SDK's error. The error's text is repeated only if it cannot contain a token.
pub(super) fn sign_in_error(target: &SignInTarget, error: &AuthError) -> Error {
    let server = target.name.clone();
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
            Error::NeedsLogin(NeedsLogin { server })
        }
        AuthError::MetadataError(reason) => Error::Discovery { server, reason: clean(reason) },
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
            received: "(no issuer)".to_owned(),
        },
        AuthError::PkceUnsupported => {
            Error::Discovery { server, reason: "no PKCE (S256)".to_owned() }
        }
        AuthError::CredentialStoreError(reason) => {
            Error::Io { server, source: io::Error::other(reason.clone()) }
        }
        AuthError::TokenExchangeFailed(_) => Error::Exchange { server },
        _ => Error::Unavailable { server },
    }
}

/// Makes untrusted text safe for a terminal: one line of at most 200 printable ASCII characters.
pub(super) fn clean(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(200).map(plain).collect()
}
