//! The log level that the gateway requests from a server.

use std::time::Duration;

use rmcp::model::{ClientRequest, LoggingLevel, SetLevelRequest, SetLevelRequestParams};

use super::Upstream;

/// Timeout of the request that sets the log level.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(10);

impl Upstream {
    /// Sends the requested log level to a server of the older protocol. In the newer protocol each request carries the
    /// level.
    pub(crate) async fn send_log_level(&self) {
        let level = *self.shared.log_level.lock();
        let (Some(level), Some(connection)) = (level, self.connection()) else { return };
        if !connection.uses_newer_protocol()
            && connection.server_info.capabilities.logging.is_some()
        {
            let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
            let request = ClientRequest::SetLevelRequest(request);
            let _ = connection.request(request, SET_LEVEL_TIMEOUT).await;
        }
    }
}

/// Returns the severity of a log level, from 0 (debug) to 7 (emergency).
pub(crate) fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
