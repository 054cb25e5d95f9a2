//! A limit on the memory that one server's waiting messages take.
//!
//! Progress, log lines, questions and answers wait in queues of their own, each with a limit on their number. A
//! message may be megabytes, so a number alone limits little: everything that waits is also charged to one budget per
//! connection, in bytes of memory, and what does not fit is refused or dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// Bytes that one connection may still hold.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    left: Arc<AtomicUsize>,
}

/// A part of a budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    left: Arc<AtomicUsize>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(bytes)) }
    }

    /// Takes what a message needs, if that much is left.
    pub(crate) fn charge(&self, message: &Value) -> Option<Charge> {
        self.take(memory_of(message))
    }

    fn take(&self, bytes: usize) -> Option<Charge> {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).ok()?;
        Some(Charge { left: Arc::clone(&self.left), bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// The memory that a value takes, in bytes, without the allocator's overhead. A list of small numbers takes 16 times
/// the memory of its text, so the length of the text would not do.
pub(crate) fn memory_of(value: &Value) -> usize {
    /// A key of a map, its hash and its place in the index, in addition to the value.
    const ENTRY: usize = size_of::<String>() + 2 * size_of::<usize>();
    /// The index of a map, and the entries for which it reserves memory at once.
    const BLOCK: usize = 256;
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(memory_of).sum(),
        Value::Object(fields) if fields.is_empty() => 0,
        Value::Object(fields) => {
            let entries = fields.iter();
            BLOCK + entries.map(|(key, value)| ENTRY + key.len() + memory_of(value)).sum::<usize>()
        }
    };
    size_of::<Value>() + inside
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_held_counts_and_what_is_dropped_is_given_back() {
        let message = json!({"text": "x".repeat(1_000)});
        let size = memory_of(&message);
        assert!((1_000..1_500).contains(&size), "{size}");
        let budget = Budget::new(2 * size);
        let first = budget.charge(&message);
        let second = budget.charge(&message);
        assert!(first.is_some() && second.is_some());
        assert!(budget.charge(&json!(1)).is_none(), "it is full to the byte");
        drop(first);
        assert!(budget.charge(&message).is_some());
    }

    #[test]
    fn small_numbers_take_more_than_their_text() {
        let numbers = json!(vec![1; 1_000]);
        assert!(memory_of(&numbers) >= 10 * numbers.to_string().len());
    }

    proptest! {
        /// However messages come and go, what is held never exceeds the budget, and all of it comes back.
        #[test]
        fn the_budget_holds(steps in prop::collection::vec((any::<bool>(), 0_usize..400), 0..200)) {
            let budget = Budget::new(1_000);
            let mut held: Vec<Charge> = Vec::new();
            for (comes, size) in steps {
                if comes {
                    let before: usize = held.iter().map(|charge| charge.bytes).sum();
                    let taken = budget.take(size);
                    prop_assert_eq!(taken.is_some(), before + size <= 1_000);
                    held.extend(taken);
                } else if !held.is_empty() {
                    held.remove(size % held.len());
                }
            }
            drop(held);
            prop_assert_eq!(budget.left.load(Ordering::Acquire), 1_000);
        }
    }
}
