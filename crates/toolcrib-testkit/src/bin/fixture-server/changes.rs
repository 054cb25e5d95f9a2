//! Lists that change, and the notifications of these changes.
//!
//! Some tools change a list by adding or removing one tool or prompt. The list must really change, because a gateway
//! may compare the old and the new list and forward the notification only if they differ. Clients of the older protocol
//! are notified without subscribing, clients of the newer protocol only through a subscription.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleServer;
use rmcp::model::{
    PromptListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification, ToolListChangedNotification,
};
use rmcp::service::{Peer, SubscriptionContext, SubscriptionSendError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// Maximum number of unread changes that are kept for a slow subscriber.
const BACKLOG: usize = 64;

#[derive(Clone)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resource(String),
}

impl Change {
    fn into_notification(self) -> ServerNotification {
        match self {
            Self::Tools => ServerNotification::ToolListChangedNotification(
                ToolListChangedNotification::default(),
            ),
            Self::Prompts => ServerNotification::PromptListChangedNotification(
                PromptListChangedNotification::default(),
            ),
            Self::Resource(uri) => ServerNotification::ResourceUpdatedNotification(
                ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri)),
            ),
        }
    }
}

/// The state of the lists that change, and the subscribers to notify.
pub(crate) struct Changes {
    sender: Sender<Change>,
    extra_tool: AtomicBool,
    extra_prompt: AtomicBool,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            sender: Sender::new(BACKLOG),
            extra_tool: AtomicBool::new(false),
            extra_prompt: AtomicBool::new(false),
        }
    }
}

impl Changes {
    pub(crate) fn extra_tool(&self) -> bool {
        self.extra_tool.load(Ordering::SeqCst)
    }

    pub(crate) fn extra_prompt(&self) -> bool {
        self.extra_prompt.load(Ordering::SeqCst)
    }

    /// Applies a change and notifies the subscribers.
    pub(crate) fn make(&self, change: Change) {
        match &change {
            Change::Tools => {
                self.extra_tool.fetch_xor(true, Ordering::SeqCst);
            }
            Change::Prompts => {
                self.extra_prompt.fetch_xor(true, Ordering::SeqCst);
            }
            Change::Resource(_) => {}
        }
        // Sending fails if there are no subscribers, which is not an error.
        let _ = self.sender.send(change);
    }

    pub(crate) fn subscribe(&self) -> Receiver<Change> {
        self.sender.subscribe()
    }
}

/// Notifies a client of the older protocol of every changed list, and of updates to the resources that it has subscribed
/// to. Returns when the client disconnects.
pub(crate) async fn notify_client_of_older_protocol(
    mut changes: Receiver<Change>,
    client: Peer<RoleServer>,
    watched: Arc<Mutex<BTreeSet<String>>>,
) {
    while let Some(change) = next(&mut changes).await {
        let wanted = match &change {
            Change::Resource(uri) => watched.lock().contains(uri),
            Change::Tools | Change::Prompts => true,
        };
        if wanted && client.send_notification(change.into_notification()).await.is_err() {
            return;
        }
    }
}

/// Notifies a client of the newer protocol of the changes that it has subscribed to, until the subscription ends.
pub(crate) async fn notify_subscriber(
    mut changes: Receiver<Change>,
    context: &SubscriptionContext,
) {
    loop {
        let change = tokio::select! {
            () = context.cancelled() => return,
            change = next(&mut changes) => change,
        };
        let Some(change) = change else { return };
        match context.sink().send(change.into_notification()).await {
            Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
            Err(_) => return,
        }
    }
}

async fn next(changes: &mut Receiver<Change>) -> Option<Change> {
    loop {
        match changes.recv().await {
            Ok(change) => return Some(change),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}
