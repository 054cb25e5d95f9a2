//! How many clients share the servers of a pool.

/// How many clients can use the servers of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolClients {
    /// No clients. The servers are started only to check whether they work, so a server that fails is not started
    /// again.
    None,
    /// One client, which does not share any process.
    One,
    /// Any number of clients. Servers that cannot be shared get a process for each client.
    Many,
}
