//! The moment at which a key is revoked.
//!
//! A caller that is removed from the config, or gets another key, must not go on with what it began: a stream may
//! last for an hour.

use tokio_util::sync::CancellationToken;

/// What a client with a revoked key reads.
pub(crate) const REVOKED: &str = "the key of this caller was revoked";

/// The revocation of one key. By default it never happens: a client without a key of ours has none to lose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Revocation(Option<CancellationToken>);

impl Revocation {
    /// For a key that can be revoked.
    pub(crate) fn possible() -> Self {
        Self(Some(CancellationToken::new()))
    }

    /// Whether there is a key that can be revoked.
    pub(crate) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Revokes the key.
    pub(crate) fn revoke(&self) {
        self.0.iter().for_each(CancellationToken::cancel);
    }

    /// Whether the key is revoked.
    pub(crate) fn has_happened(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Waits until the key is revoked.
    pub(crate) async fn happens(&self) {
        match &self.0 {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }
}
