//! The connected clients of the older protocol, for questions that belong to no call.
//!
//! A server may request its client's roots as soon as it starts. If only one connected client uses the server, that
//! client is asked. If several clients use it, none of them is asked.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::active_calls::{CLIENT_QUEUE, CallingClient, ServerMessage};

/// Returns whether a client uses the server with this id and name.
type ServerFilter = Box<dyn Fn(u64, &str) -> bool + Send + Sync>;

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
        uses: impl Fn(u64, &str) -> bool + Send + Sync + 'static,
    ) -> (ConnectedClient, mpsc::Receiver<ServerMessage>) {
        let (messages, receiver) = mpsc::channel(CLIENT_QUEUE);
        let entry = CallingClient { client, client_group: client, messages };
        self.lock().insert(client, (entry, Box::new(uses)));
        (ConnectedClient { clients: Arc::clone(self), client }, receiver)
    }

    /// Returns a client by its id.
    pub(crate) fn client(&self, id: u64) -> Option<CallingClient> {
        self.lock().get(&id).map(|(client, _)| client.clone())
    }

    /// Returns the client that uses the server with this id and name, if there is exactly one.
    pub(crate) fn only_client_of(&self, id: u64, name: &str) -> Option<CallingClient> {
        let clients = self.lock();
        let mut candidates = clients.values().filter(|(_, uses)| uses(id, name));
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
    fn a_client_is_chosen_only_if_no_other_uses_the_server() {
        let clients = Arc::<ConnectedClients>::default();
        assert!(clients.only_client_of(7, "files").is_none());
        let (_first, _) = clients.register(1, |id, server| id == 7 && server == "files");
        let (second, _) = clients.register(2, |_, _| true);
        assert!(clients.only_client_of(7, "files").is_none());
        assert_eq!(clients.only_client_of(7, "mail").unwrap().client, 2);
        drop(second);
        assert_eq!(clients.only_client_of(7, "files").unwrap().client, 1);
        assert!(clients.only_client_of(7, "mail").is_none());
        assert!(clients.only_client_of(8, "files").is_none(), "another process of the server");
        assert_eq!(clients.client(1).unwrap().client, 1);
        assert!(clients.client(2).is_none());
    }
}
