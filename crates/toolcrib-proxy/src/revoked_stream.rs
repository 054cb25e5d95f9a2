//! Bodies that end when the caller's key is revoked, with an error in the form of its API if there is a way to
//! write one.

use axum::http::StatusCode;
use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use toolcrib_dialect::Api;

use crate::api_error::error_event;
use crate::revocation::{REVOKED_MESSAGE, Revocation};
use crate::upstream_request::{BodyChunks, UpstreamError};

/// The same body, which ends if the key is revoked: with an event, if it is a stream of events of this API, and
/// cut off otherwise.
pub(crate) fn end_when_revoked(
    body: BodyChunks,
    revocation: Revocation,
    events_of: Option<Api>,
) -> BodyChunks {
    let is_revoked = revocation.clone();
    let last = stream::once(ready(())).filter_map(move |()| {
        ready(is_revoked.is_revoked().then(|| {
            match events_of {
                // The stream may have stopped inside an event, which a blank line ends.
                Some(api) => Ok(Bytes::from(
                    [
                        b"\n\n",
                        error_event(api, StatusCode::UNAUTHORIZED, REVOKED_MESSAGE).as_slice(),
                    ]
                    .concat(),
                )),
                None => Err(UpstreamError::new(REVOKED_MESSAGE)),
            }
        }))
    });
    let revoked = async move { revocation.revoked().await };
    Box::pin(body.take_until(Box::pin(revoked)).chain(last))
}
