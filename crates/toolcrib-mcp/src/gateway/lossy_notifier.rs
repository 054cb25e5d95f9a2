//! Sends progress and log messages to a client that may not read them.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::upstream::MessageCharge;

/// Maximum time that a request waits until a message is written to its client. After that, the request continues.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends progress and log messages to a client. A client that does not read them cannot block the request: at most one
/// message waits, and further messages are dropped until it is written.
#[derive(Default)]
pub(super) struct LossyNotifier {
    /// The message that waits to be written.
    unwritten: Option<BoxFuture<'static, ()>>,
}

impl LossyNotifier {
    /// Sends a message. `charge`, the message's part of the server's memory budget, is held until the message is
    /// written. The gateway's own messages have none.
    pub(super) async fn notify(
        &mut self,
        message: impl Future<Output = ()> + Send + 'static,
        charge: Option<MessageCharge>,
    ) {
        if self.unwritten.as_mut().is_some_and(|last| last.now_or_never().is_none()) {
            return;
        }
        let mut sending = Box::pin(async move {
            message.await;
            drop(charge);
        });
        let written = tokio::time::timeout(NOTIFY_TIMEOUT, &mut sending).await;
        self.unwritten = if written.is_ok() { None } else { Some(sending) };
    }
}
