//! The moment at which a key is revoked.
//!
//! A caller that is removed from the config, or gets another key, must not go on with what it began: a stream may
//! last for an hour. The same applies to clients that were let in with the listener's token.

use tokio_util::sync::CancellationToken;
use toolcrib_server::access::Credential;

/// The error that a client with a revoked key reads.
pub(crate) const REVOKED_MESSAGE: &str = "the access of this client was revoked";

/// The revocation of what a client was let in with.
#[derive(Debug, Clone)]
pub(crate) enum Revocation {
    /// Of the key of a caller in the config.
    Key(CancellationToken),
    /// Of the listener's token, or of free access to a listener that now requires one.
    Listener(Credential),
}

impl Revocation {
    /// For a key that was not seen before.
    pub(crate) fn for_new_key() -> Self {
        Self::Key(CancellationToken::new())
    }

    /// Revokes the key of a caller. The listener revokes its own token.
    pub(crate) fn revoke(&self) {
        if let Self::Key(token) = self {
            token.cancel();
        }
    }

    /// Whether it is revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        match self {
            Self::Key(token) => token.is_cancelled(),
            Self::Listener(credential) => credential.is_revoked(),
        }
    }

    /// Waits until it is revoked.
    pub(crate) async fn revoked(&self) {
        match self {
            Self::Key(token) => token.cancelled().await,
            Self::Listener(credential) => credential.clone().revoked().await,
        }
    }

    /// Waits for another future. Returns `None` if the key is revoked meanwhile.
    pub(crate) async fn unless_revoked<T>(&self, other: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.revoked() => None,
            other = other => Some(other),
        }
    }
}
