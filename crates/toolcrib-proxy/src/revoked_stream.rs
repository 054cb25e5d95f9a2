//! Bodies that end when the caller's key is revoked, with an error in the form of its API if there is a way to
//! write one.

use axum::http::StatusCode;
use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use toolcrib_dialect::Api;

use crate::error::event;
use crate::revocation::{REVOKED, Revocation};
use crate::upstream::{Chunks, Lost};

/// The same body, which ends if the key is revoked: with an event, if it is a stream of events of this API, and
/// cut off otherwise.
pub(crate) fn until_revoked(
    body: Chunks,
    revocation: Revocation,
    events_of: Option<Api>,
) -> Chunks {
    let is_revoked = revocation.clone();
    let last = stream::once(ready(())).filter_map(move |()| {
        ready(is_revoked.has_happened().then(|| match events_of {
            // The stream may have stopped inside an event, which a blank line ends.
            Some(api) => Ok(Bytes::from(
                [b"\n\n", event(api, StatusCode::UNAUTHORIZED, REVOKED).as_slice()].concat(),
            )),
            None => Err(Lost::new(REVOKED)),
        }))
    });
    let revoked = async move { revocation.happens().await };
    Box::pin(body.take_until(Box::pin(revoked)).chain(last))
}
