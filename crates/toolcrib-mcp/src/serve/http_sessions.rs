//! The HTTP sessions of clients of the older protocol. Their number is limited, and idle sessions are ended to make
//! room for new ones.
//!
//! A session takes memory even if its client is silent, so a client that opens sessions and abandons them must not keep
//! others out. When a new session would exceed a limit, an idle session is ended. If the limit is the one for each
//! client, an idle session of the same client is ended. If it is the limit for all clients, an idle session of the
//! client with the most sessions is ended. Sessions that were never used after their handshake are ended first, then
//! the session that has been idle for the longest time. A client whose session was ended gets status 404 and begins
//! another session, as the protocol prescribes. A new session is refused only if every session that could be ended is
//! busy.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use toolcrib_server::access::AcceptedCredential;

use crate::config::GatewayLimits;
use crate::gateway::ClientDisconnected;

/// Minimum time between two searches for sessions that the SDK has ended.
const MIN_PRUNE_INTERVAL: Duration = Duration::from_secs(1);

/// The address of a session's client. It is `None` for clients on loopback, which cannot be told apart.
pub(super) type ClientAddress = Option<IpAddr>;

/// Why a new session is refused: this limit is reached, and no session that could be ended is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionLimitReached {
    #[error("this address has {0} sessions, and all of them are busy")]
    PerClient(usize),
    #[error("there are {0} sessions, and all of them are busy")]
    Total(usize),
}

/// All sessions of all profiles.
#[derive(Default)]
pub(super) struct HttpSessions {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<String, HttpSession>,
    /// The number of handshakes in progress, by client.
    beginning: HashMap<ClientAddress, usize>,
    pruned: Option<Instant>,
    /// The credential whose revocation a task waits for.
    watched: Option<AcceptedCredential>,
}

struct HttpSession {
    client: ClientAddress,
    credential: AcceptedCredential,
    manager: Arc<LocalSessionManager>,
    /// Cancelled when the session ends, because the session's calls must end with it.
    disconnected: ClientDisconnected,
    /// Number of requests in flight and open streams.
    active: usize,
    /// Whether any request followed the handshake.
    is_used: bool,
    idle_since: Instant,
}

impl Table {
    fn count(&self, of: Option<ClientAddress>) -> usize {
        let is_of = |client: &ClientAddress| of.is_none_or(|of| of == *client);
        let open = self.open.values().filter(|session| is_of(&session.client)).count();
        let beginning = self.beginning.iter().filter(|(client, _)| is_of(client));
        open + beginning.map(|(_, count)| count).sum::<usize>()
    }

    /// Returns the limit that one more session of this client would exceed, and the client whose idle session may be
    /// ended to make room. If that client is `None`, an idle session of any client may be ended. Returns `None` if no
    /// limit would be exceeded.
    fn exceeded(
        &self,
        client: ClientAddress,
        limits: &GatewayLimits,
    ) -> Option<(SessionLimitReached, Option<ClientAddress>)> {
        let of_client = limits.sessions_per_client;
        if client.is_some() && self.count(Some(client)) >= of_client {
            return Some((SessionLimitReached::PerClient(of_client), Some(client)));
        }
        let in_total = limits.sessions;
        let total = self.open.len() + self.beginning.values().sum::<usize>();
        (total >= in_total).then_some((SessionLimitReached::Total(in_total), None))
    }

    /// Removes and returns a session, if it belongs to this manager. A request can name any session at the path of any
    /// profile. If a session of another profile were removed here, it would stay open without being counted.
    fn take(&mut self, id: &str, manager: &Arc<LocalSessionManager>) -> Option<HttpSession> {
        let session = self.open.get(id)?;
        Arc::ptr_eq(&session.manager, manager).then(|| self.open.remove(id)).flatten()
    }

    /// Removes and returns the idle session that should be ended to make room for another one. If `of` is a client,
    /// only sessions of that client are considered. Returns `None` if no session is idle.
    fn take_idle(&mut self, of: Option<ClientAddress>) -> Option<(String, HttpSession)> {
        let mut counts: HashMap<ClientAddress, usize> = HashMap::new();
        for session in self.open.values() {
            *counts.entry(session.client).or_default() += 1;
        }
        let idle = self.open.iter().filter(|(_, session)| session.active == 0);
        let idle = idle.filter(|(_, session)| of.is_none_or(|client| client == session.client));
        let order = |session: &HttpSession| {
            let most = counts.get(&session.client).copied().unwrap_or_default();
            (std::cmp::Reverse(most), session.is_used, session.idle_since)
        };
        let id = idle.min_by_key(|(_, session)| order(session)).map(|(id, _)| id.clone())?;
        self.open.remove_entry(&id)
    }
}

impl HttpSessions {
    /// Admits a new session, and ends an idle one if necessary.
    pub(super) async fn admit(
        self: &Arc<Self>,
        client: ClientAddress,
        limits: &GatewayLimits,
    ) -> Result<SessionAdmission, SessionLimitReached> {
        if self.lock().exceeded(client, limits).is_some() {
            self.prune().await;
        }
        let ended = {
            let mut table = self.lock();
            let ended = match table.exceeded(client, limits) {
                None => None,
                Some((limit, of)) => Some(table.take_idle(of).ok_or(limit)?),
            };
            *table.beginning.entry(client).or_default() += 1;
            ended
        };
        if let Some((id, session)) = ended {
            session.end(id).await;
        }
        Ok(SessionAdmission { sessions: Arc::clone(self), client })
    }

    /// Records that a request of a session has arrived. Returns `None` if there is no such session.
    pub(super) async fn enter(
        self: &Arc<Self>,
        id: &str,
        manager: &Arc<LocalSessionManager>,
    ) -> Option<SessionUse> {
        let is_live = manager.sessions.read().await.contains_key(id);
        let mut table = self.lock();
        if !is_live {
            table.take(id, manager);
            return None;
        }
        let session = table.open.get_mut(id)?;
        session.active += 1;
        session.is_used = true;
        let disconnected = session.disconnected.clone();
        Some(SessionUse { sessions: Arc::clone(self), id: id.to_owned(), disconnected })
    }

    /// Ends a session at its client's request.
    pub(super) fn delete(&self, id: &str, manager: &Arc<LocalSessionManager>) {
        let session = self.lock().take(id, manager);
        if let Some(session) = session {
            session.disconnected.0.cancel();
        }
    }

    /// Ends the sessions whose credential is revoked.
    async fn end_revoked(&self) {
        let revoked: Vec<_> = {
            let is_revoked =
                |_: &String, session: &mut HttpSession| session.credential.is_revoked();
            self.lock().open.extract_if(is_revoked).collect()
        };
        if !revoked.is_empty() {
            tracing::info!(sessions = revoked.len(), "ended the sessions of a revoked token");
        }
        for (id, session) in revoked {
            session.end(id).await;
        }
    }

    /// Removes the sessions that the SDK has ended because they were idle for too long.
    async fn prune(&self) {
        let managers: Vec<Arc<LocalSessionManager>> = {
            let mut table = self.lock();
            if table.pruned.is_some_and(|at| at.elapsed() < MIN_PRUNE_INTERVAL) {
                return;
            }
            table.pruned = Some(Instant::now());
            let mut managers: Vec<_> =
                table.open.values().map(|session| Arc::clone(&session.manager)).collect();
            managers.sort_by_key(Arc::as_ptr);
            managers.dedup_by(|one, other| Arc::ptr_eq(one, other));
            managers
        };
        for manager in managers {
            let live = manager.sessions.read().await;
            self.lock().open.retain(|id, session| {
                !Arc::ptr_eq(&session.manager, &manager) || live.contains_key(&**id)
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl HttpSession {
    async fn end(self, id: String) {
        self.disconnected.0.cancel();
        // An error means that the session has already ended.
        let _ = self.manager.close_session(&id.into()).await;
    }
}

/// An admitted session whose handshake is in progress.
pub(super) struct SessionAdmission {
    sessions: Arc<HttpSessions>,
    client: ClientAddress,
}

impl SessionAdmission {
    /// Records that the handshake was answered and the session has an id.
    pub(super) fn begin(
        self,
        id: String,
        manager: Arc<LocalSessionManager>,
        credential: AcceptedCredential,
    ) {
        let session = HttpSession {
            client: self.client,
            credential: credential.clone(),
            manager,
            disconnected: ClientDisconnected::default(),
            active: 0,
            is_used: false,
            idle_since: Instant::now(),
        };
        // One task for each credential waits until the credential is revoked. When the token changes, there is a new
        // credential, and a new task.
        let is_watched = {
            let mut table = self.sessions.lock();
            table.open.insert(id, session);
            table
                .watched
                .replace(credential.clone())
                .is_some_and(|known| known.is_same_as(&credential))
        };
        if !is_watched {
            let sessions = Arc::clone(&self.sessions);
            tokio::spawn(async move {
                credential.revoked().await;
                sessions.end_revoked().await;
            });
        }
    }
}

impl Drop for SessionAdmission {
    fn drop(&mut self) {
        let mut table = self.sessions.lock();
        if let Some(count) = table.beginning.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                table.beginning.remove(&self.client);
            }
        }
    }
}

/// A request in flight or an open stream of a session.
pub(super) struct SessionUse {
    sessions: Arc<HttpSessions>,
    id: String,
    pub(super) disconnected: ClientDisconnected,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.lock().open.get_mut(&self.id) {
            session.active -= 1;
            session.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    struct TestSessions {
        sessions: Arc<HttpSessions>,
        manager: Arc<LocalSessionManager>,
        limits: GatewayLimits,
    }

    impl TestSessions {
        fn new(total: usize, per_client: usize) -> Self {
            let limits = GatewayLimits {
                sessions: total,
                sessions_per_client: per_client,
                ..GatewayLimits::default()
            };
            Self { sessions: Arc::default(), manager: Arc::default(), limits }
        }

        /// Begins a session. The session's transport is leaked, because dropping it would end the session.
        async fn begin(&self, client: ClientAddress) -> Result<String, SessionLimitReached> {
            let admission = self.sessions.admit(client, &self.limits).await?;
            let (id, transport) = self.manager.create_session().await.unwrap();
            std::mem::forget(transport);
            admission.begin(
                id.to_string(),
                Arc::clone(&self.manager),
                AcceptedCredential::default(),
            );
            Ok(id.to_string())
        }

        fn has(&self, id: &str) -> bool {
            self.sessions.lock().open.contains_key(id)
        }
    }

    const ONE: ClientAddress = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    const TWO: ClientAddress = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
    const THREE: ClientAddress = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)));

    #[tokio::test]
    async fn a_client_at_its_limit_loses_its_own_idle_sessions() {
        let fixture = TestSessions::new(10, 2);
        let other = fixture.begin(TWO).await.unwrap();
        let first = fixture.begin(ONE).await.unwrap();
        let second = fixture.begin(ONE).await.unwrap();
        let busy = fixture.sessions.enter(&first, &fixture.manager).await.unwrap();
        let third = fixture.begin(ONE).await.unwrap();
        assert!(fixture.has(&other) && fixture.has(&first) && fixture.has(&third));
        assert!(!fixture.has(&second), "the older of the two has a request in flight");
        assert!(!fixture.manager.has_session(&second.into()).await.unwrap(), "it is closed");
        let also_busy = fixture.sessions.enter(&third, &fixture.manager).await.unwrap();
        assert_eq!(fixture.begin(ONE).await.unwrap_err(), SessionLimitReached::PerClient(2));
        drop(busy);
        fixture.begin(ONE).await.unwrap();
        assert!(!fixture.has(&first));
        drop(also_busy);
        for _ in 0..5 {
            fixture.begin(None).await.unwrap();
        }
        assert_eq!(fixture.sessions.lock().open.len(), 8, "loopback has no share");
    }

    #[tokio::test]
    async fn at_the_total_limit_the_client_with_the_most_sessions_loses_one() {
        let fixture = TestSessions::new(4, 3);
        let quiet = fixture.begin(TWO).await.unwrap();
        let mut many = Vec::new();
        for _ in 0..3 {
            many.push(fixture.begin(ONE).await.unwrap());
        }
        drop(fixture.sessions.enter(&many[0], &fixture.manager).await);
        fixture.begin(THREE).await.unwrap();
        assert!(fixture.has(&quiet), "it is the longest idle, but its client has only one");
        assert!(
            fixture.has(&many[0]) && !fixture.has(&many[1]),
            "those that were never used end first"
        );
    }

    #[tokio::test]
    async fn failed_handshakes_and_ended_sessions_do_not_count() {
        let fixture = TestSessions::new(2, 2);
        let one = fixture.sessions.admit(None, &fixture.limits).await.unwrap();
        let _two = fixture.sessions.admit(None, &fixture.limits).await.unwrap();
        let refused = fixture.sessions.admit(None, &fixture.limits).await.err().unwrap();
        assert_eq!(refused, SessionLimitReached::Total(2), "handshakes in progress count");
        drop(one);
        let id = fixture.begin(None).await.unwrap();
        let busy = fixture.sessions.enter(&id, &fixture.manager).await.unwrap();
        assert!(fixture.begin(None).await.is_err());
        fixture.sessions.delete(&id, &fixture.manager);
        assert!(busy.disconnected.0.is_cancelled());
        fixture.begin(None).await.unwrap();
    }
}
