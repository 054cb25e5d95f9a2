//! Limits the number of connections, in total and for each remote address, and evicts an idle connection when a limit
//! is reached.
//!
//! Anyone can open connections without a token. Therefore a full table never rejects a new connection while another one
//! is idle: the connection that has been idle longest is evicted. A connection with a request in flight is never
//! evicted. If all connections are busy, a new connection gets one of [`SPARE_SLOTS`] extra slots, in which only the
//! health check is served and every other request gets 503.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::Notify;

use crate::connection_activity::ConnectionActivity;
use crate::rate_limited_log::RateLimitedLog;

/// Number of slots in addition to the limit, in which only the health check is served.
pub(crate) const SPARE_SLOTS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) total: usize,
    /// Maximum for one remote address. It does not apply to loopback, because all programs on this machine share that
    /// address.
    pub(crate) per_address: usize,
}

/// Which limit was reached when no connection could be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overload {
    Total,
    Address,
}

/// All open connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    table: Mutex<ConnectionTable>,
    closed: Notify,
    total_log: RateLimitedLog,
    address_log: RateLimitedLog,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    next: u64,
    open: HashMap<u64, OpenConnection>,
    /// The number of open connections by client. Clients without any are not in the map.
    count_by_client: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct OpenConnection {
    client: Option<IpAddr>,
    activity: Arc<ConnectionActivity>,
}

impl ConnectionTable {
    /// Evicts the connection that has been idle longest, among those of `client` if it is given. Returns whether a
    /// connection was evicted.
    fn evict_longest_idle(&self, client: Option<IpAddr>) -> bool {
        let of_client = self.open.values().filter(|open| client.is_none() || open.client == client);
        let idle = of_client.filter_map(|open| Some((open.activity.idle_since()?, open)));
        // A request may start on the connection after it was selected. Then nothing is evicted, and the result is
        // `false`.
        idle.min_by_key(|(since, _)| *since).is_some_and(|(_, open)| open.activity.evict())
    }

    fn insert(&mut self, client: Option<IpAddr>, activity: Arc<ConnectionActivity>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id, OpenConnection { client, activity });
        if let Some(client) = client {
            *self.count_by_client.entry(client).or_default() += 1;
        }
        id
    }

    fn remove(&mut self, id: u64) {
        let client = self.open.remove(&id).and_then(|open| open.client);
        if let Some(client) = client
            && let Entry::Occupied(mut count) = self.count_by_client.entry(client)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether `client`, or all clients together if it is `None`, have at least `limit` connections that are not
    /// evicted.
    fn is_at_limit(&self, limit: usize, client: Option<IpAddr>) -> bool {
        let open = match &client {
            Some(client) => self.count_by_client.get(client).copied().unwrap_or_default(),
            None => self.open.len(),
        };
        // The cheap check comes first, because `count` looks at every connection.
        open >= limit && self.count(client) >= limit
    }

    fn count(&self, client: Option<IpAddr>) -> usize {
        let of_client = self.open.values().filter(|open| client.is_none() || open.client == client);
        of_client.filter(|open| !open.activity.is_evicted()).count()
    }
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            table: Mutex::default(),
            closed: Notify::new(),
            total_log: RateLimitedLog::default(),
            address_log: RateLimitedLog::default(),
        })
    }

    /// Returns a slot for a new connection. If all slots are taken, including the spare ones, waits until a connection
    /// closes.
    pub(crate) async fn admit(self: &Arc<Self>, remote: SocketAddr) -> ConnectionSlot {
        let client = client_of(remote.ip());
        let overload = self.make_room(client);
        loop {
            let mut closed = std::pin::pin!(self.closed.notified());
            closed.as_mut().enable();
            {
                let mut table = self.lock();
                if table.open.len() < self.limits.total + SPARE_SLOTS {
                    let activity = Arc::new(ConnectionActivity::new());
                    let id = table.insert(client, Arc::clone(&activity));
                    return ConnectionSlot {
                        connections: Arc::clone(self),
                        id,
                        activity,
                        overload,
                    };
                }
                // All slots are taken, because evicted connections have not closed yet or because too many connections
                // are busy.
                table.evict_longest_idle(None);
            }
            closed.await;
        }
    }

    /// Evicts the connection that has been idle longest, if any, and returns whether a connection was evicted. Used
    /// when the process has run out of file descriptors.
    pub(crate) fn evict_longest_idle(&self) -> bool {
        self.lock().evict_longest_idle(None)
    }

    /// Completes when a connection has closed.
    pub(crate) async fn one_closed(&self) {
        self.closed.notified().await;
    }

    /// Evicts an idle connection if a new connection would exceed a limit. If no connection can be evicted, returns the
    /// limit that was reached.
    fn make_room(&self, client: Option<IpAddr>) -> Option<Overload> {
        let ConnectionLimits { total, per_address } = self.limits;
        let table = self.lock();
        if client.is_some() && table.is_at_limit(per_address, client) {
            let is_evicted = table.evict_longest_idle(client);
            if let Some(times) = self.address_log.count() {
                tracing::warn!(
                    times,
                    limit = per_address,
                    "an address has reached its limit on connections; {}",
                    outcome(is_evicted)
                );
            }
            return (!is_evicted).then_some(Overload::Address);
        }
        if table.is_at_limit(total, None) {
            let is_evicted = table.evict_longest_idle(None);
            if let Some(times) = self.total_log.count() {
                tracing::warn!(
                    times,
                    limit = total,
                    "the limit on connections is reached; {}",
                    outcome(is_evicted)
                );
            }
            return (!is_evicted).then_some(Overload::Total);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock()
    }
}

fn outcome(is_evicted: bool) -> &'static str {
    if is_evicted {
        "the longest idle connection is closed for a new one"
    } else {
        "all of them are busy, and new requests get 503"
    }
}

/// The slot of one connection. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) activity: Arc<ConnectionActivity>,
    /// If set, only the health check is served on this connection.
    pub(crate) overload: Option<Overload>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
        self.connections.closed.notify_waiters();
    }
}

/// Returns the address by which connections are counted. For IPv6, this is the /64 network, which is what an internet
/// provider usually assigns to one customer. Returns `None` on loopback, where connections are not counted by address.
pub(crate) fn client_of(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(address.into()),
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            Some(Ipv6Addr::from(network).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 1)
    }

    fn connections(total: usize, per_address: usize) -> Arc<Connections> {
        Connections::new(ConnectionLimits { total, per_address })
    }

    #[tokio::test]
    async fn the_longest_idle_connection_is_evicted_and_a_busy_one_never() {
        let connections = connections(3, 3);
        let busy = connections.admit(at("127.0.0.1")).await;
        let request = busy.activity.begin_request();
        let older = connections.admit(at("127.0.0.1")).await;
        let newer = connections.admit(at("127.0.0.1")).await;
        assert!(!older.activity.is_evicted(), "at the limit none is evicted");
        let fourth = connections.admit(at("127.0.0.1")).await;
        assert!(older.activity.is_evicted() && !newer.activity.is_evicted());
        assert_eq!(fourth.overload, None);
        drop(older);
        let requests = [newer.activity.begin_request(), fourth.activity.begin_request()];
        let fifth = connections.admit(at("127.0.0.1")).await;
        assert_eq!(fifth.overload, Some(Overload::Total), "all are busy");
        assert!([&busy, &newer, &fourth].iter().all(|slot| !slot.activity.is_evicted()));
        let sixth = connections.admit(at("127.0.0.1")).await;
        assert!(fifth.activity.is_evicted(), "an idle connection in a spare slot is evicted, too");
        assert_eq!(sixth.overload, None, "evicting the fifth made room for it");
        drop((request, requests));
    }

    #[tokio::test]
    async fn an_address_has_a_limit_and_loopback_has_none() {
        let connections = connections(8, 2);
        for (one, other) in [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8:0:1::1")] {
            let first = connections.admit(at(one)).await;
            let second = connections.admit(at(one)).await;
            let neighbour = connections.admit(at(other)).await;
            assert!(!first.activity.is_evicted());
            let third = connections.admit(at(one)).await;
            assert!(first.activity.is_evicted() && third.overload.is_none());
            drop(first);
            let requests = [second.activity.begin_request(), third.activity.begin_request()];
            let fourth = connections.admit(at(one)).await;
            assert_eq!(fourth.overload, Some(Overload::Address));
            assert!(!neighbour.activity.is_evicted());
            drop(requests);
        }
        let mut local = Vec::new();
        for _ in 0..8 {
            local.push(connections.admit(at("::ffff:127.0.0.1")).await);
        }
        assert!(local.iter().all(|slot| !slot.activity.is_evicted() && slot.overload.is_none()));
        assert_eq!(
            connections.lock().count_by_client.len(),
            0,
            "no counts are kept for clients without connections"
        );
    }

    #[tokio::test]
    async fn a_new_connection_waits_for_a_free_slot() {
        let connections = connections(1, 1);
        let mut slots = vec![connections.admit(at("127.0.0.1")).await];
        for _ in 0..SPARE_SLOTS {
            slots.push(connections.admit(at("127.0.0.1")).await);
        }
        assert!(slots[..SPARE_SLOTS].iter().all(|slot| slot.activity.is_evicted()));
        let mut next = std::pin::pin!(connections.admit(at("127.0.0.1")));
        tokio::select! {
            biased;
            _ = &mut next => panic!("admitted without a free slot"),
            () = std::future::ready(()) => {}
        }
        slots.remove(0);
        next.await;
    }
}
