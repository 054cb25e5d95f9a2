//! The connected clients of the older protocol, for questions that belong to no call.
//!
//! A server may request its client's roots as soon as it starts. If only one connected client can see the server, that
//! client is asked. If several clients can see it, none of them is asked.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::active_calls::{CLIENT_QUEUE, CallingClient, ServerMessage};

/// Returns whether a client may see the server of this name.
type ServerFilter = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The connected clients, by their ids.
#[derive(Default)]
pub(crate) struct ConnectedClients(Mutex<BTreeMap<u64, (CallingClient, ServerFilter)>>);

impl fmt::Debug for ConnectedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectedClients").field(&self.lock().len()).finish()
    }
}

/// The registration of one client. Dropping this value removes it.
#[derive(Debug)]
pub(crate) struct ConnectedClient {
    clients: Arc<ConnectedClients>,
    client: u64,
}

impl ConnectedClients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (CallingClient, ServerFilter)>> {
        self.0.lock()
    }

    /// Registers a client until the returned value is dropped. The returned receiver yields the messages that servers
    /// send to the client.
    pub(crate) fn register(
        self: &Arc<Self>,
        client: u64,
        can_see: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> (ConnectedClient, mpsc::Receiver<ServerMessage>) {
        let (messages, receiver) = mpsc::channel(CLIENT_QUEUE);
        let entry = CallingClient { client, client_group: client, messages };
        self.lock().insert(client, (entry, Box::new(can_see)));
        (ConnectedClient { clients: Arc::clone(self), client }, receiver)
    }

    /// Returns the client that may see this server, if there is exactly one.
    pub(crate) fn only_client_of(&self, server: &str) -> Option<CallingClient> {
        let clients = self.lock();
        let mut candidates = clients.values().filter(|(_, can_see)| can_see(server));
        let (client, _) = candidates.next()?;
        candidates.next().is_none().then(|| client.clone())
    }
}

impl Drop for ConnectedClient {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_chosen_only_if_no_other_can_see_the_server() {
        let clients = Arc::<ConnectedClients>::default();
        assert!(clients.only_client_of("files").is_none());
        let (_first, _) = clients.register(1, |server| server == "files");
        let (second, _) = clients.register(2, |_| true);
        assert!(clients.only_client_of("files").is_none());
        assert_eq!(clients.only_client_of("mail").unwrap().client, 2);
        drop(second);
        assert_eq!(clients.only_client_of("files").unwrap().client, 1);
        assert!(clients.only_client_of("mail").is_none());
    }
}
