//! What a server is asked while its connection holds: whether it is there, and to tell of changes.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListToolsRequest, PingRequest, RequestNoParam, RequestOptionalParam,
    SubscribeRequest, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequest,
    UnsubscribeRequestParams,
};
use tokio::task::JoinHandle;

use super::failed::Failed;
use super::link::Link;

/// How long to wait before listening to a server again that stopped telling of changes.
const LISTEN_AGAIN: Duration = Duration::from_mins(1);

/// Whether a server is still there.
pub(super) async fn check(link: &Link, within: Duration) -> Result<(), Failed> {
    // The newer era has no ping, and the SDK answers `server/discover` from memory and lets nothing pass
    // while it asks. A page of a list is a request like any other.
    let asked = if link.is_modern() {
        let list: ListToolsRequest = RequestOptionalParam::default();
        ClientRequest::ListToolsRequest(list)
    } else {
        let ping: PingRequest = RequestNoParam::default();
        ClientRequest::PingRequest(ping)
    };
    match link.ask(asked, within).await {
        // A server that refuses has answered.
        Ok(_) | Err(Failed::Refused(_)) => Ok(()),
        Err(failed) => Err(failed),
    }
}

/// Asks a server of the older era to tell of a resource's changes, or no more.
pub(super) async fn subscribe(
    link: &Link,
    uri: &str,
    watch: bool,
    within: Duration,
) -> Result<(), Failed> {
    let request = if watch {
        ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri)))
    } else {
        ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(UnsubscribeRequestParams::new(
            uri,
        )))
    };
    link.ask(request, within).await.map(drop)
}

/// Listens for changes, where that has to be asked for.
pub(super) struct Listening(Option<JoinHandle<()>>);

impl Listening {
    /// Waits until it hears nothing any more.
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

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Listens to a server of the newer era; those of the older one tell by themselves.
pub(super) fn listen(link: &Link, resources: Vec<String>) -> Listening {
    let has = &link.info.capabilities;
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .resource_subscriptions(resources)
        .build()
        .supported_by(has);
    if !link.is_modern() || filter == SubscriptionFilter::default() {
        return Listening(None);
    }
    let (peer, tap) = (link.peer.clone(), Arc::clone(&link.tap));
    Listening(Some(tokio::spawn(async move {
        if let Ok(mut changes) = peer.listen(filter).await {
            // A change between the last fetch of the lists and now was not announced to us.
            tap.suspect_change();
            // The tap sees what changed; nothing of it comes out here.
            while let Ok(Some(_)) = changes.next().await {}
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    })))
}
