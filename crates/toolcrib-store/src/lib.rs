//! State of the proxy that must outlive a request.
//!
//! What is kept are small records that a later request of the same conversation is recognised by and
//! mended with: which tools were revealed, and what was said to the model that the client never saw.
//! A record lies under a [`Key`], which is a hash, and never changes: the same key always means the same
//! bytes. So there is no read-modify-write and nothing to lock, replicas that write at the same time
//! write the same thing, and an older copy is as good as a newer one.
//!
//! Records expire once nobody has read them for a while. All of it may be lost at any time, by expiry, by
//! the bound on memory, by a Redis that is away ([`Lost`]), and every conversation goes on: the model sees
//! tools deferred that it had already found and searches once more, and the provider's prompt cache pays
//! for the part of the prompt that came out different. Nothing wrong is ever answered for want of a record.
//!
//! Reading order: [`Store`] (the two verbs), [`Memory`] (one process), [`Redis`] (many replicas),
//! [`Shared`] (whichever of them was configured).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod circuit;
mod key;
mod lost;
mod memory;
mod record;
mod redis;
mod shared;
mod store;

pub use crate::redis::{BadUrl, Options, Redis};
pub use key::Key;
pub use lost::Lost;
pub use memory::{Limits, Memory};
pub use shared::Shared;
pub use store::Store;
