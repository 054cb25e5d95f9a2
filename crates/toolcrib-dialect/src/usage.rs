//! Adds up the token usage of several rounds.
//!
//! Every API has its own names and nesting for token counts, and all APIs add keys over time. So numbers under the same
//! key are added, and any other value is taken from the later round.

use serde_json::{Number, Value};

/// Maximum size of a usage object, in bytes. Real usage objects have a few hundred bytes. The size is limited because a
/// parsed value takes many times the memory of its text.
const MAX_BYTES: usize = 16 << 10;

/// Parses a usage object. Returns `None` if the value is not an object or is too large.
pub(crate) fn parse(raw: &str) -> Option<Value> {
    if raw.len() > MAX_BYTES {
        return None;
    }
    serde_json::from_str::<Value>(raw).ok().filter(Value::is_object)
}

/// Adds the counts of a later round to those of the earlier rounds.
pub(crate) fn add(sum: &mut Value, later: &Value) {
    match (sum, later) {
        (Value::Object(sum), Value::Object(later)) => {
            for (key, value) in later {
                match sum.get_mut(key) {
                    Some(known) => add(known, value),
                    None => {
                        sum.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Number(sum), Value::Number(later)) => *sum = add_numbers(sum, later),
        // A round that omits a count does not change the sum.
        (_, Value::Null) => {}
        (sum, later) => *sum = later.clone(),
    }
}

fn add_numbers(a: &Number, b: &Number) -> Number {
    let integer = a.as_u64().zip(b.as_u64()).and_then(|(a, b)| a.checked_add(b));
    let number = integer.map(Number::from).or_else(|| {
        let sum = a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default();
        Number::from_f64(sum)
    });
    number.unwrap_or_else(|| b.clone())
}

/// Token usage of a round or of a turn, for logs, headers and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of input tokens, including cached tokens.
    pub input: u64,
    /// The number of input tokens that were read from a cache.
    pub cached: u64,
    /// The number of output tokens.
    pub output: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
    }
}

/// Returns the count at `path` in a usage object, or zero if there is none.
pub(crate) fn token_count(usage: &Value, path: &[&str]) -> u64 {
    let mut value = usage;
    for key in path {
        match value.get(key) {
            Some(inner) => value = inner,
            None => return 0,
        }
    }
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_numbers_are_added_and_strings_are_replaced() {
        let mut sum = json!({"in": 3, "tier": "a", "more": {"cached": 1}, "absent": null});
        add(&mut sum, &json!({"in": 4, "tier": "b", "more": {"cached": 2, "new": 5}, "absent": 1}));
        assert_eq!(
            sum,
            json!({"in": 7, "tier": "b", "more": {"cached": 3, "new": 5}, "absent": 1})
        );
        add(&mut sum, &json!({"in": null, "more": null}));
        assert_eq!((&sum["in"], &sum["more"]["cached"]), (&json!(7), &json!(3)));
    }
}
