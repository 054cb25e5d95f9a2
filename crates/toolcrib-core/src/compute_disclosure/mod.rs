//! Computing what the model sees in a turn.
//!
//! [`Crib::disclose`](crate::Crib::disclose) combines the catalog, the policy, the loaded tools and the budget. Below
//! activation, the result is a pass-through, and callers send their own bytes. Otherwise each tool has a verdict, and the
//! disclosure says what replaces the deferred ones. If nothing has changed since the last turn, nothing is computed.

mod compute;
mod own_tools;
mod tools_array;
