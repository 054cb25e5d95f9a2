//! Errors of requests that are forwarded to a server.

use rmcp::model::{ErrorCode, ErrorData};

use super::question::{self, QuestionError};
use crate::upstream::{PermitError, Upstream, UpstreamError};

/// Why a forwarded request has no result.
#[derive(Debug)]
pub(crate) enum ForwardError {
    /// A JSON-RPC error for the client, either from the server or from the gateway.
    Rpc(ErrorData),
    /// The server is unavailable, has disconnected, or took too long. The text is for the model.
    Failed(String),
}

impl ForwardError {
    /// Returns the error for a request that the client has cancelled, or that ends because the gateway stops.
    pub(super) fn cancelled() -> Self {
        let problem =
            "cancelled before the server answered; the call may or may not have been executed";
        Self::Failed(problem.into())
    }

    /// Returns the error for a request that was not sent.
    pub(super) fn not_sent(upstream: &Upstream, error: &PermitError) -> Self {
        Self::Failed(match error {
            PermitError::ServerDown(reason) => {
                format!("`{}` is not available: {reason}", upstream.name)
            }
            PermitError::QueueFull(error) => error.to_string(),
        })
    }

    /// Returns the error for a request that the server did not answer with a result. After a disconnect or a timeout,
    /// this also requests a health check of the server.
    pub(super) fn from_upstream(upstream: &Upstream, error: &UpstreamError) -> Self {
        let name = &upstream.name;
        match error {
            UpstreamError::Rejected(error) => {
                let shown = question::prepare_url_error(name, error.clone(), upstream.limits());
                Self::Rpc(shown.unwrap_or_else(|error| question_rejected(&error)))
            }
            UpstreamError::Closed(reason) => {
                upstream.request_health_check();
                Self::Failed(format!(
                    "`{name}` disconnected before it answered ({reason}); the call may or may not have been executed"
                ))
            }
            UpstreamError::Timeout(_) => {
                upstream.request_health_check();
                Self::Failed(format!("`{name}`: {error}; the call was cancelled"))
            }
            UpstreamError::Cancelled | UpstreamError::Unexpected(_) => {
                Self::Failed(format!("`{name}`: {error}"))
            }
        }
    }

    /// Converts this to an error for the client, in the form that its protocol version requires.
    pub(super) fn into_error_data(self, uses_newer_protocol: bool) -> ErrorData {
        match self {
            Self::Rpc(error) => adapt_error(error, uses_newer_protocol),
            Self::Failed(reason) => ErrorData::internal_error(reason, None),
        }
    }
}

/// Returns the error that a server gets if its question is not forwarded to the client.
pub(super) fn question_rejected(error: &QuestionError) -> ErrorData {
    ErrorData::invalid_params(format!("the question was not forwarded: {error}"), None)
}

/// Adapts an error to the client's protocol version. Only the older protocol has an error code for missing resources.
pub(super) fn adapt_error(mut error: ErrorData, uses_newer_protocol: bool) -> ErrorData {
    if uses_newer_protocol && error.code == ErrorCode::RESOURCE_NOT_FOUND {
        error.code = ErrorCode::INVALID_PARAMS;
    }
    error
}
