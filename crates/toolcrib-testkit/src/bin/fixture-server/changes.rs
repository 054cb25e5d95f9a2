//! Lists that change, and who hears of it.
//!
//! A trigger really changes a list, by one tool or one prompt that comes and goes: a gateway that
//! compares lists before it passes a notification on must find a difference. Legacy clients hear
//! of it unasked, modern ones on the subscription they opened.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    PromptListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification, ToolListChangedNotification,
};
use rmcp::service::{Peer, SubscriptionContext, SubscriptionSendError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// Changes a slow listener may fall behind before it misses some.
const BACKLOG: usize = 64;

/// Something a client may want to fetch again.
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

/// The changeable part of the lists, and the listeners.
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

    /// Makes the change, then tells of it.
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
        // Nobody listening is no error.
        let _ = self.sender.send(change);
    }

    pub(crate) fn hear(&self) -> Receiver<Change> {
        self.sender.subscribe()
    }
}

/// Tells a legacy client of every change, and of updates to the resources it watches, until the
/// connection is gone.
pub(crate) async fn tell_legacy(
    mut heard: Receiver<Change>,
    client: Peer<RoleServer>,
    watched: Arc<Mutex<BTreeSet<String>>>,
) {
    while let Some(change) = next(&mut heard).await {
        let wanted = match &change {
            Change::Resource(uri) => {
                watched.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
            }
            Change::Tools | Change::Prompts => true,
        };
        if wanted && client.send_notification(change.into_notification()).await.is_err() {
            return;
        }
    }
}

/// Tells a modern client what its subscription asked for, until it ends the subscription.
pub(crate) async fn tell_subscriber(mut heard: Receiver<Change>, context: &SubscriptionContext) {
    loop {
        let change = tokio::select! {
            () = context.cancelled() => return,
            change = next(&mut heard) => change,
        };
        let Some(change) = change else { return };
        match context.sink().send(change.into_notification()).await {
            Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
            Err(_) => return,
        }
    }
}

async fn next(heard: &mut Receiver<Change>) -> Option<Change> {
    loop {
        match heard.recv().await {
            Ok(change) => return Some(change),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}
