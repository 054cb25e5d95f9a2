//! Response bodies that end when the caller's key is revoked, if possible with an error event in the format of the
//! client's API.

use axum::http::StatusCode;
use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use toolcrib_dialect::Api;

use crate::api_error::error_event;
use crate::revocation::{REVOKED_MESSAGE, Revocation};
use crate::upstream_request::{BodyChunks, UpstreamFailure};

/// Returns the same body, but ends it when the key is revoked. If the body is an event stream of the API `events_of`,
/// it ends with an error event; otherwise it is cut off.
pub(crate) fn end_when_revoked(
    body: BodyChunks,
    revocation: Revocation,
    events_of: Option<Api>,
) -> BodyChunks {
    let is_revoked = revocation.clone();
    let last = stream::once(ready(())).filter_map(move |()| {
        ready(is_revoked.is_revoked().then(|| {
            match events_of {
                // The stream may have stopped in the middle of an event. The blank line ends that event.
                Some(api) => Ok(Bytes::from(
                    [
                        b"\n\n",
                        error_event(api, StatusCode::UNAUTHORIZED, REVOKED_MESSAGE).as_slice(),
                    ]
                    .concat(),
                )),
                None => Err(UpstreamFailure::new(REVOKED_MESSAGE)),
            }
        }))
    });
    let revoked = async move { revocation.revoked().await };
    Box::pin(body.take_until(Box::pin(revoked)).chain(last))
}
