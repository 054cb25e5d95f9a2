//! How many clients share the servers of a pool.

/// How many clients the gateways of a pool have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolClients {
    /// No clients. The servers are started only to see whether they work, so a server that fails is not started again.
    None,
    /// One client, so every process is its own.
    One,
    /// Any number of clients. Servers that cannot be shared get a process for each client.
    Many,
}
