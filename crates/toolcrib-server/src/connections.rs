//! How many connections there may be, in total and for each remote address, and which one must close when
//! there are too many.
//!
//! A stranger can open connections without a token, so a full table never refuses a newcomer while any
//! connection is idle: the longest idle one closes. Connections with a request in flight are never closed for
//! that. If all of them are busy, the newcomer gets one of [`SPARE_SLOTS`] places in which only the health check is
//! served and everything else is answered with 503.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::connection_activity::ConnectionActivity;
use crate::rate_limited_log::RateLimitedLog;

/// Places above the total for connections that get no service but the health check.
pub(crate) const SPARE_SLOTS: usize = 16;

/// Maximum numbers of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) total: usize,
    /// For one remote address. Loopback addresses have none: everybody on this machine shares them.
    pub(crate) per_address: usize,
}

/// Which limit was reached with every connection busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overload {
    Total,
    Address,
}

/// All open connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    table: Mutex<Table>,
    closed: Notify,
    total_log: RateLimitedLog,
    address_log: RateLimitedLog,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Open>,
    /// The number of open connections of each client that has any.
    by_client: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Open {
    client: Option<IpAddr>,
    activity: Arc<ConnectionActivity>,
}

impl Table {
    /// Closes the longest idle connection, of this client if one is named.
    fn evict_longest_idle(&self, client: Option<IpAddr>) -> bool {
        let of_client = self.open.values().filter(|open| client.is_none() || open.client == client);
        let idle = of_client.filter_map(|open| Some((open.activity.idle_since()?, open)));
        // A request may begin between the two looks; then nothing is closed and the newcomer is told so.
        idle.min_by_key(|(since, _)| *since).is_some_and(|(_, open)| open.activity.evict())
    }

    fn insert(&mut self, client: Option<IpAddr>, activity: Arc<ConnectionActivity>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id, Open { client, activity });
        if let Some(client) = client {
            *self.by_client.entry(client).or_default() += 1;
        }
        id
    }

    fn remove(&mut self, id: u64) {
        let client = self.open.remove(&id).and_then(|open| open.client);
        if let Some(client) = client
            && let Entry::Occupied(mut count) = self.by_client.entry(client)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether this client, or all clients together, have so many connections that are not being closed.
    fn has(&self, limit: usize, client: Option<IpAddr>) -> bool {
        let open = match &client {
            Some(client) => self.by_client.get(client).copied().unwrap_or_default(),
            None => self.open.len(),
        };
        // Only then is it worth looking at each of them.
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

    /// A place for a new connection. Waits only for connections that are about to close.
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
                // More newcomers than connections that have closed so far, or all spare places are taken.
                table.evict_longest_idle(None);
            }
            closed.await;
        }
    }

    /// Closes the longest idle connection, if there is one. For a process that has no file left.
    pub(crate) fn evict_longest_idle(&self) -> bool {
        self.lock().evict_longest_idle(None)
    }

    /// Completes when a connection has closed.
    pub(crate) async fn one_closed(&self) {
        self.closed.notified().await;
    }

    /// Keeps both limits with one more connection, or tells which one cannot be kept.
    fn make_room(&self, client: Option<IpAddr>) -> Option<Overload> {
        let ConnectionLimits { total, per_address } = self.limits;
        let table = self.lock();
        if client.is_some() && table.has(per_address, client) {
            let closes = table.evict_longest_idle(client);
            if let Some(times) = self.address_log.count() {
                tracing::warn!(
                    times,
                    limit = per_address,
                    "an address reached its limit of connections; {}",
                    outcome(closes)
                );
            }
            return (!closes).then_some(Overload::Address);
        }
        if table.has(total, None) {
            let closes = table.evict_longest_idle(None);
            if let Some(times) = self.total_log.count() {
                tracing::warn!(
                    times,
                    limit = total,
                    "the limit of connections is reached; {}",
                    outcome(closes)
                );
            }
            return (!closes).then_some(Overload::Total);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outcome(closes: bool) -> &'static str {
    if closes {
        "its longest idle connection is closed for a new one"
    } else {
        "all of them are busy, and new requests are answered with 503"
    }
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) activity: Arc<ConnectionActivity>,
    /// Why this connection gets no service but the health check.
    pub(crate) overload: Option<Overload>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
        self.connections.closed.notify_waiters();
    }
}

/// Whose share a connection counts against: the address, or for IPv6 its network of 64 bits, which is what one
/// customer of a provider has. `None` on loopback.
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
    async fn the_longest_idle_connection_gives_way_and_a_busy_one_never() {
        let connections = connections(3, 3);
        let busy = connections.admit(at("127.0.0.1")).await;
        let request = busy.activity.begin_request();
        let older = connections.admit(at("127.0.0.1")).await;
        let newer = connections.admit(at("127.0.0.1")).await;
        assert!(!older.activity.is_evicted(), "at the limit all stay");
        let fourth = connections.admit(at("127.0.0.1")).await;
        assert!(older.activity.is_evicted() && !newer.activity.is_evicted());
        assert_eq!(fourth.overload, None);
        drop(older);
        let requests = [newer.activity.begin_request(), fourth.activity.begin_request()];
        let fifth = connections.admit(at("127.0.0.1")).await;
        assert_eq!(fifth.overload, Some(Overload::Total), "all are busy");
        assert!([&busy, &newer, &fourth].iter().all(|slot| !slot.activity.is_evicted()));
        let sixth = connections.admit(at("127.0.0.1")).await;
        assert!(fifth.activity.is_evicted(), "a spare place, too, is only for who uses it");
        assert_eq!(sixth.overload, None, "its place was made by closing the fifth");
        drop((request, requests));
    }

    #[tokio::test]
    async fn an_address_has_a_share_and_loopback_has_all() {
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
            connections.lock().by_client.len(),
            0,
            "shares of clients that left are forgotten"
        );
    }

    #[tokio::test]
    async fn a_newcomer_waits_for_a_place_to_become_free() {
        let connections = connections(1, 1);
        let mut slots = vec![connections.admit(at("127.0.0.1")).await];
        for _ in 0..SPARE_SLOTS {
            slots.push(connections.admit(at("127.0.0.1")).await);
        }
        assert!(slots[..SPARE_SLOTS].iter().all(|slot| slot.activity.is_evicted()));
        let mut next = std::pin::pin!(connections.admit(at("127.0.0.1")));
        tokio::select! {
            biased;
            _ = &mut next => panic!("one more than there are places"),
            () = std::future::ready(()) => {}
        }
        slots.remove(0);
        next.await;
    }
}
