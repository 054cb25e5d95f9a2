//! Collects the body of a request in memory, up to a maximum size. It counts towards the listener's total.

use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt as _;
use http_body::Body as _;
use toolcrib_dialect::{Api, Request};
use toolcrib_server::{BodyBudget, BodyPermit, BodyRejected};

use crate::error::error;

/// Maximum capacity reserved for a body, in bytes.
const RESERVED: usize = 1 << 20;

/// Why a body was not collected.
pub(crate) enum NotCollected {
    /// The client disconnected before its request was complete, or sent nothing for too long.
    Disconnected,
    /// There is no memory for it.
    Refused(BodyRejected),
}

impl NotCollected {
    /// The response, in the form of an API.
    pub(crate) fn respond(self, api: Api) -> Response {
        match self {
            Self::Disconnected => StatusCode::BAD_REQUEST.into_response(),
            Self::Refused(refused) => body_refused(api, refused),
        }
    }
}

/// A body up to `limit` bytes, the rest of a larger one, and the memory that it counts for.
pub(crate) async fn collect(
    body: Body,
    limit: usize,
    bodies: Option<&BodyBudget>,
) -> Result<(Bytes, Option<BodyDataStream>, Option<BodyPermit>), NotCollected> {
    let stated = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    let permit = bodies.map(|bodies| bodies.begin(stated)).transpose();
    let mut permit = permit.map_err(NotCollected::Refused)?;
    // A stated length is trusted only up to a maximum: stating one costs a client nothing.
    let mut read = BytesMut::with_capacity(stated.min(RESERVED));
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.try_next().await.map_err(|_| NotCollected::Disconnected)? {
        if let Some(permit) = &mut permit {
            permit.grow(chunk.len()).map_err(NotCollected::Refused)?;
        }
        read.extend_from_slice(&chunk);
        if read.len() > limit {
            return Ok((read.freeze(), Some(stream), permit));
        }
    }
    Ok((read.freeze(), None, permit))
}

/// Counts the memory that a conversation takes: many small messages take more than their text.
pub(crate) fn count_history(
    request: &Request,
    permit: Option<&mut BodyPermit>,
) -> Result<(), NotCollected> {
    let counted = permit.map_or(Ok(()), |permit| permit.grow(request.history_bytes()));
    counted.map_err(NotCollected::Refused)
}

/// The response to a request if there is no memory for its body.
fn body_refused(api: Api, refused: BodyRejected) -> Response {
    let status = match refused {
        BodyRejected::Busy => StatusCode::SERVICE_UNAVAILABLE,
        BodyRejected::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
    };
    let mut response = error(api, status, &refused.to_string());
    refused.set_retry(&mut response);
    response
}
