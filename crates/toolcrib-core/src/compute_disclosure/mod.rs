//! Working out what the model sees this turn.
//!
//! [`Crib::disclose`](crate::Crib::disclose) puts together the catalog, the policy, what was revealed
//! and the budget. Below activation the answer is "as it came", and whoever writes the request then
//! forwards its own bytes. Above it, each tool has a verdict, and the disclosure says what stands for
//! the deferred ones. When nothing has changed since the last turn, nothing is computed.

mod compute;
mod own_tools;
mod tools_array;
