//! Computing what the model sees in a turn.
//!
//! [`Crib::disclose`](crate::Crib::disclose) combines the catalog, the policy, the loaded tools and the budget. If
//! deferral is not activated, the result is a pass-through, and callers send their own bytes. Otherwise each tool has a
//! verdict, and the disclosure contains what replaces the deferred tools. If nothing has changed since the last turn,
//! the last disclosure is returned.

mod compute;
mod own_tools;
mod search_cost;
mod tools_array;
