//! Notifies a server that the roots of its client changed.

use rmcp::model::{ClientNotification, RootsListChangedNotification};

use super::Upstream;

impl Upstream {
    /// Notifies a server of the older protocol that its client's roots changed.
    ///
    /// A client may keep changing its roots while the server does not read, so at most one notification waits while
    /// another is being sent. The waiting notification covers all changes up to the time when it is sent.
    pub(crate) async fn notify_roots_changed(&self) {
        let Ok(waiting) = self.roots_waiting.try_lock() else { return };
        let _sending = self.roots_sending.lock().await;
        drop(waiting);
        if let Some(connection) =
            self.connection().filter(|connection| !connection.uses_newer_protocol())
        {
            let changed = RootsListChangedNotification::default();
            let changed = ClientNotification::RootsListChangedNotification(changed);
            let _ = connection.peer.send_notification(changed).await;
        }
    }
}
