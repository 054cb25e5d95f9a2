//! Checks whether a connected server still answers.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListToolsRequest, PingRequest, RequestNoParam, RequestOptionalParam,
};

use super::connection_handle::ConnectionHandle;
use super::upstream_error::UpstreamError;

/// Sends a small request. Any answer, even an error, shows that the server still answers.
pub(super) async fn check(
    connection: &ConnectionHandle,
    timeout: Duration,
) -> Result<(), UpstreamError> {
    // The newer protocol has no ping. `server/discover` cannot be used: the SDK's own method for it may answer from a
    // cache, and over HTTP the SDK sends nothing else while such a request is in progress. So one page of the tool list
    // is requested.
    let request = if connection.uses_newer_protocol() {
        let list: ListToolsRequest = RequestOptionalParam::default();
        ClientRequest::ListToolsRequest(list)
    } else {
        let ping: PingRequest = RequestNoParam::default();
        ClientRequest::PingRequest(ping)
    };
    match connection.request(request, timeout).await {
        Ok(_) | Err(UpstreamError::Rejected(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
