//! Why a request to a server has no result.

use rmcp::model::ErrorData;
use thiserror::Error;

/// Why a request to a server has no result.
#[derive(Debug, Clone, Error)]
pub(crate) enum Failed {
    /// The server refused. Its error goes to the client, without hidden characters.
    #[error("{}", .0.message)]
    Refused(ErrorData),
    /// The connection ended first.
    #[error("{0}")]
    Closed(String),
    /// It took too long.
    #[error("no answer within {0:.0} s")]
    Timeout(f64),
    /// The caller does not want it any more.
    #[error("cancelled")]
    Cancelled,
    /// What came back is no answer.
    #[error("{0}")]
    Odd(String),
}
