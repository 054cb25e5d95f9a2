//! State of the proxy that must outlive a request.
//!
//! The state consists of small records. From them, the proxy recognises a later request of the same conversation and
//! restores its history: which tools were revealed, and which messages the model saw but the client never did. A
//! record is stored under a [`Key`], which is a hash, and never changes: the same key always means the same bytes. So
//! there is no read-modify-write and nothing to lock, replicas that write at the same time write the same bytes, and
//! an old copy is as good as a new one.
//!
//! Records expire when they have not been read for a while. Any of them can be lost at any time: because they
//! expired, because memory is full, or because Redis is unavailable ([`StoreError`]). Conversations continue without
//! them: tools that the model had already found are deferred again, so it searches again, and the provider's prompt
//! cache misses from the first difference in the prompt on. A missing record never causes a wrong answer.
//!
//! Reading order: [`Store`] (the two operations), [`MemoryStore`] (one process), [`RedisStore`] (several replicas),
//! [`ConfiguredStore`] (the one that is configured).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod circuit_breaker;
mod configured_store;
mod key;
mod memory_store;
mod record_limits;
mod redis_store;
mod store;
mod store_error;
mod versioned_value;

pub use configured_store::ConfiguredStore;
pub use key::Key;
pub use memory_store::{MemoryLimits, MemoryStore};
pub use redis_store::{InvalidRedisUrl, RedisOptions, RedisStore};
pub use store::Store;
pub use store_error::StoreError;
