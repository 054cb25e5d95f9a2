//! Reads the body of a request into memory, up to a maximum size. The body counts towards the listener's budget for
//! bodies.

use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt as _;
use http_body::Body as _;
use toolcrib_dialect::{Api, Request};
use toolcrib_server::{BodyBudget, BodyPermit, BodyRejected};

use crate::api_error::error_response;

/// Maximum capacity that is allocated before the bytes of a body arrive, in bytes.
const MAX_RESERVED_BYTES: usize = 1 << 20;

/// Why a body could not be read.
pub(crate) enum ReadBodyError {
    /// The client disconnected before the body was complete, or sent nothing for too long.
    Disconnected,
    /// There is not enough memory for the body.
    NoMemory(BodyRejected),
}

impl ReadBodyError {
    /// Returns the error response in the format of `api`.
    pub(crate) fn into_response(self, api: Api) -> Response {
        match self {
            Self::Disconnected => StatusCode::BAD_REQUEST.into_response(),
            Self::NoMemory(error) => body_rejected(api, error),
        }
    }
}

/// Reads a body until it ends or is larger than `limit` bytes. Returns the bytes that were read, the unread rest if the
/// body is too large, and the permit for the memory of these bytes, if `bodies` is given.
pub(crate) async fn read_body(
    body: Body,
    limit: usize,
    bodies: Option<&BodyBudget>,
) -> Result<(Bytes, Option<BodyDataStream>, Option<BodyPermit>), ReadBodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    let permit = bodies.map(|bodies| bodies.begin(announced)).transpose();
    let mut permit = permit.map_err(ReadBodyError::NoMemory)?;
    // The announced length is trusted only up to a maximum, because announcing costs a client nothing.
    let mut read = BytesMut::with_capacity(announced.min(MAX_RESERVED_BYTES));
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.try_next().await.map_err(|_| ReadBodyError::Disconnected)? {
        if let Some(permit) = &mut permit {
            permit.grow(chunk.len()).map_err(ReadBodyError::NoMemory)?;
        }
        read.extend_from_slice(&chunk);
        if read.len() > limit {
            return Ok((read.freeze(), Some(stream), permit));
        }
    }
    Ok((read.freeze(), None, permit))
}

/// Counts the memory that a parsed conversation takes, because many small messages take more memory than their text.
pub(crate) fn count_history_memory(
    request: &Request,
    permit: Option<&mut BodyPermit>,
) -> Result<(), ReadBodyError> {
    let counted = permit.map_or(Ok(()), |permit| permit.grow(request.history_bytes()));
    counted.map_err(ReadBodyError::NoMemory)
}

/// Returns the error response for a request whose body does not fit into the memory budget.
fn body_rejected(api: Api, rejected: BodyRejected) -> Response {
    let status = match rejected {
        BodyRejected::Busy => StatusCode::SERVICE_UNAVAILABLE,
        BodyRejected::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
    };
    let mut response = error_response(api, status, &rejected.to_string());
    rejected.set_retry_after(&mut response);
    response
}
