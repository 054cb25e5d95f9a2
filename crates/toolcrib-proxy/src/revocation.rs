//! Keys that are revoked while requests are under way.
//!
//! A caller that is removed from the config, or gets another key, must not go on with what it began: a stream may
//! last for an hour. Its open streams end with an error in the form of its API.

use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use toolcrib_dialect::Api;

use crate::error::event;
use crate::upstream::{Chunks, Lost};

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

    /// Revokes the key.
    pub(crate) fn revoke(&self) {
        self.0.iter().for_each(CancellationToken::cancel);
    }

    /// Waits until the key is revoked.
    pub(crate) async fn happens(&self) {
        match &self.0 {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// The same body, which ends if the key is revoked: with an event, if it is a stream of events of this API, and
    /// cut off otherwise.
    pub(crate) fn end(self, body: Chunks, events_of: Option<Api>) -> Chunks {
        let Some(token) = self.0 else { return body };
        let is_revoked = token.clone();
        let last = stream::once(ready(())).filter_map(move |()| {
            ready(is_revoked.is_cancelled().then(|| match events_of {
                // The stream may have stopped inside an event, which a blank line ends.
                Some(api) => Ok(Bytes::from([b"\n\n", event(api, REVOKED).as_slice()].concat())),
                None => Err(Lost::new(REVOKED)),
            }))
        });
        Box::pin(body.take_until(token.cancelled_owned()).chain(last))
    }
}
