//! Ends requests whose key is revoked.
//!
//! When a caller is removed from the config or gets another key, its open requests must end, because a stream may last
//! for an hour. The same applies to clients that use the listener's token.

use tokio_util::sync::CancellationToken;
use toolcrib_server::access::AcceptedCredential;

/// The error message for a client whose key was revoked.
pub(crate) const REVOKED_MESSAGE: &str = "the access of this client was revoked";

/// Whether a client's key or token is revoked. Requests can also wait for that.
#[derive(Debug, Clone)]
pub(crate) enum Revocation {
    /// The client uses the key of a caller in the config.
    Key(CancellationToken),
    /// The client uses the listener's token, or no token if none is required. Access without a token ends when the
    /// listener starts to require one.
    Listener(AcceptedCredential),
}

impl Revocation {
    /// Creates the `Revocation` of a new key, which is not revoked yet.
    pub(crate) fn for_new_key() -> Self {
        Self::Key(CancellationToken::new())
    }

    /// Revokes the key of a caller. Does nothing for the listener's token, which the listener itself revokes.
    pub(crate) fn revoke(&self) {
        if let Self::Key(token) = self {
            token.cancel();
        }
    }

    /// Whether the key or token is revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        match self {
            Self::Key(token) => token.is_cancelled(),
            Self::Listener(credential) => credential.is_revoked(),
        }
    }

    /// Completes when the key or token is revoked.
    pub(crate) async fn revoked(&self) {
        match self {
            Self::Key(token) => token.cancelled().await,
            Self::Listener(credential) => credential.clone().revoked().await,
        }
    }

    /// Waits for a future. Returns `None` if the key or token is revoked before the future completes.
    pub(crate) async fn unless_revoked<T>(&self, other: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.revoked() => None,
            other = other => Some(other),
        }
    }
}
