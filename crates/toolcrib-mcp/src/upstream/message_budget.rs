//! A limit on the memory of the messages from one server that wait to be delivered.
//!
//! Progress, log lines, questions and answers wait in separate queues, each with a maximum number of messages. A single
//! message may take megabytes, so a limit on the number of messages is not enough. Every waiting message is also
//! charged to one budget per connection, in bytes of memory, and a message that does not fit is rejected or dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// The memory that the waiting messages of one connection may still take.
#[derive(Debug, Clone)]
pub(crate) struct MessageBudget {
    bytes_left: Arc<AtomicUsize>,
}

/// A part of a budget. Dropping this value returns it to the budget.
#[derive(Debug)]
pub(crate) struct MessageCharge {
    bytes_left: Arc<AtomicUsize>,
    bytes: usize,
}

impl MessageBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes_left: Arc::new(AtomicUsize::new(bytes)) }
    }

    /// Charges the memory of a message to the budget. Returns `None` if not enough is left.
    pub(crate) fn charge(&self, message: &Value) -> Option<MessageCharge> {
        self.take(memory_of(message))
    }

    fn take(&self, bytes: usize) -> Option<MessageCharge> {
        let less = |left: usize| left.checked_sub(bytes);
        self.bytes_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).ok()?;
        Some(MessageCharge { bytes_left: Arc::clone(&self.bytes_left), bytes })
    }
}

impl Drop for MessageCharge {
    fn drop(&mut self) {
        self.bytes_left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// Returns the memory that a value takes, in bytes, without the allocator's overhead. Rejected: the length of the
/// value's text, because a list of small numbers takes 16 times as much memory as its text.
pub(crate) fn memory_of(value: &Value) -> usize {
    /// Memory of a map entry without its value: the key, its hash and its index slot.
    const ENTRY: usize = size_of::<String>() + 2 * size_of::<usize>();
    /// Memory of a map's index, and of the entries that the map allocates at once.
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
    fn a_charge_reduces_the_budget_until_it_is_dropped() {
        let message = json!({"text": "x".repeat(1_000)});
        let size = memory_of(&message);
        assert!((1_000..1_500).contains(&size), "{size}");
        let budget = MessageBudget::new(2 * size);
        let first = budget.charge(&message);
        let second = budget.charge(&message);
        assert!(first.is_some() && second.is_some());
        assert!(budget.charge(&json!(1)).is_none(), "it is full to the last byte");
        drop(first);
        assert!(budget.charge(&message).is_some());
    }

    #[test]
    fn small_numbers_take_more_than_their_text() {
        let numbers = json!(vec![1; 1_000]);
        assert!(memory_of(&numbers) >= 10 * numbers.to_string().len());
    }

    proptest! {
        /// In any order of charges and drops, the charges never exceed the budget, and all of it is returned.
        #[test]
        fn charges_never_exceed_the_budget(steps in prop::collection::vec((any::<bool>(), 0_usize..400), 0..200)) {
            let budget = MessageBudget::new(1_000);
            let mut held: Vec<MessageCharge> = Vec::new();
            for (arrives, size) in steps {
                if arrives {
                    let before: usize = held.iter().map(|charge| charge.bytes).sum();
                    let taken = budget.take(size);
                    prop_assert_eq!(taken.is_some(), before + size <= 1_000);
                    held.extend(taken);
                } else if !held.is_empty() {
                    held.remove(size % held.len());
                }
            }
            drop(held);
            prop_assert_eq!(budget.bytes_left.load(Ordering::Acquire), 1_000);
        }
    }
}
