//! The clients of the older era that are connected, for questions that belong to no call.
//!
//! A server may ask for its client's roots as soon as it starts. With one client there is no doubt who is
//! meant; with several nobody is asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::callers::{Caller, QUESTIONS, Said};

/// Whether a client may know of a server.
type Knows = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The clients that are connected.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<u64, (Caller, Knows)>>);

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.lock().len()).finish()
    }
}

/// Takes its client off the list when dropped.
#[derive(Debug)]
pub(crate) struct Present {
    sessions: Arc<Sessions>,
    client: u64,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (Caller, Knows)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a client for as long as the returned value lives; what servers say to it comes out of the
    /// receiver.
    pub(crate) fn enter(
        self: &Arc<Self>,
        client: u64,
        knows: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> (Present, mpsc::Receiver<Said>) {
        let (questions, said) = mpsc::channel(QUESTIONS);
        self.lock().insert(client, (Caller { client, kin: client, questions }, Box::new(knows)));
        (Present { sessions: Arc::clone(self), client }, said)
    }

    /// The only client that may know of a server.
    pub(crate) fn sole(&self, server: &str) -> Option<Caller> {
        let sessions = self.lock();
        let mut knowing = sessions.values().filter(|(_, knows)| knows(server));
        let (caller, _) = knowing.next()?;
        knowing.next().is_none().then(|| caller.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_client_that_knows_a_server_is_meant_and_otherwise_nobody() {
        let sessions = Arc::<Sessions>::default();
        assert!(sessions.sole("files").is_none());
        let (_first, _) = sessions.enter(1, |server| server == "files");
        let (second, _) = sessions.enter(2, |_| true);
        assert!(sessions.sole("files").is_none());
        assert_eq!(sessions.sole("mail").unwrap().client, 2);
        drop(second);
        assert_eq!(sessions.sole("files").unwrap().client, 1);
        assert!(sessions.sole("mail").is_none());
    }
}
