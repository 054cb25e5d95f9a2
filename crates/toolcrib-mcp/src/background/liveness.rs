//! Notices that a gateway hangs.
//!
//! A gateway that ends closes its connections. One that hangs keeps them open, and its clients would wait forever. So
//! while a request of the client is open, the relay regularly checks on a second connection whether the gateway still
//! responds. The request itself proves nothing, because its server may take any time.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::connection::GatewayConnector;
use super::relay::Relay;

/// Returns when the gateway has not responded within `interval`. The gateway is checked once per `interval` while requests
/// are open.
pub(super) async fn until_unresponsive(
    relay: &Mutex<Relay>,
    connector: &impl GatewayConnector,
    interval: Duration,
) {
    loop {
        sleep(interval).await;
        let has_open_requests = relay.lock().has_open_requests();
        if has_open_requests && !timeout(interval, connector.responds()).await.unwrap_or(false) {
            tracing::warn!("the background gateway does not respond; `toolcrib stop` ends it");
            return;
        }
    }
}
