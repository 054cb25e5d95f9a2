//! Errors of requests to a server.

use rmcp::model::ErrorData;
use thiserror::Error;

/// Why a request to a server has no result.
#[derive(Debug, Clone, Error)]
pub(crate) enum UpstreamError {
    /// The server answered with an error, which is sent to the client without hidden characters.
    #[error("{}", .0.message)]
    Rejected(ErrorData),
    /// The connection ended before the server answered.
    #[error("{0}")]
    Closed(String),
    /// The server did not answer within this many seconds.
    #[error("no answer within {0:.0} s")]
    Timeout(f64),
    /// The caller cancelled the request.
    #[error("cancelled")]
    Cancelled,
    /// The server's message is not a valid answer.
    #[error("{0}")]
    Unexpected(String),
}
