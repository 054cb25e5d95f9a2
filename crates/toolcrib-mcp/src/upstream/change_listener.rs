//! Listens for changes that a server of the newer protocol announces. Servers of the older protocol announce changes
//! without a subscription.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use tokio::task::JoinHandle;

use super::connection_handle::ConnectionHandle;

/// How long to wait before listening again after the server ended the stream.
const LISTEN_AGAIN: Duration = Duration::from_mins(1);

/// A task that reads a `subscriptions/listen` stream of a server of the newer protocol. For a server of the older
/// protocol there is no task. Dropping this value stops the task.
pub(super) struct ChangeListener(Option<JoinHandle<()>>);

impl ChangeListener {
    /// Listens for changes of the server's lists and of these resources, as far as the server supports this.
    pub(super) fn start(connection: &ConnectionHandle, resources: Vec<String>) -> Self {
        let filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_list_changed()
            .resource_subscriptions(resources)
            .build()
            .supported_by(&connection.server_info.capabilities);
        if !connection.uses_newer_protocol() || filter == SubscriptionFilter::default() {
            return Self(None);
        }
        let (peer, tap) = (connection.peer.clone(), Arc::clone(&connection.tap));
        Self(Some(tokio::spawn(async move {
            if let Ok(mut changes) = peer.listen(filter).await {
                // A change between the last fetch of the lists and the start of this stream was not announced, so the
                // lists are fetched again.
                tap.mark_lists_changed();
                // The tap has already handled each change, so the stream only has to be drained.
                while let Ok(Some(_)) = changes.next().await {}
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        })))
    }

    /// Waits until the stream has ended and it is time to listen again.
    pub(super) async fn ended(&mut self) {
        match &mut self.0 {
            Some(task) => {
                let _ = task.await;
                self.0 = None;
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
