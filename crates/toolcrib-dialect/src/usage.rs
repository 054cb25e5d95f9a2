//! Tokens of several rounds, as one number each.
//!
//! Every API counts under its own names and nests them as it likes, and all of them add keys. So
//! what is a number is added to the number of the same name, and what is not is taken from the later
//! round.

use serde_json::{Number, Value};

/// Maximum size of a usage object, in bytes. They have a few hundred; a parsed value takes many times its text.
const MAX_BYTES: usize = 16 << 10;

/// A usage object; `None` for anything else, and for one that is too large.
pub(crate) fn parse(raw: &str) -> Option<Value> {
    if raw.len() > MAX_BYTES {
        return None;
    }
    serde_json::from_str::<Value>(raw).ok().filter(Value::is_object)
}

/// Adds the counts of a later round to those of the rounds before it.
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
        // A count that one round left out is no count.
        (_, Value::Null) => {}
        (sum, later) => *sum = later.clone(),
    }
}

fn add_numbers(a: &Number, b: &Number) -> Number {
    let whole = a.as_u64().zip(b.as_u64()).and_then(|(a, b)| a.checked_add(b));
    let number = whole.map(Number::from).or_else(|| {
        let sum = a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default();
        Number::from_f64(sum)
    });
    number.unwrap_or_else(|| b.clone())
}

/// What one round, or all of a turn, took: for logs, headers and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that went in, cached ones included.
    pub input: u64,
    /// Those of them that came from a cache.
    pub cached: u64,
    /// Tokens that came out.
    pub output: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
    }
}

/// A count in a usage object; zero where it is not there.
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
    fn numbers_add_up_wherever_they_are_and_words_are_the_last() {
        let mut sum = json!({"in": 3, "tier": "a", "more": {"cached": 1}, "gone": null});
        add(&mut sum, &json!({"in": 4, "tier": "b", "more": {"cached": 2, "new": 5}, "gone": 1}));
        assert_eq!(sum, json!({"in": 7, "tier": "b", "more": {"cached": 3, "new": 5}, "gone": 1}));
        add(&mut sum, &json!({"in": null, "more": null}));
        assert_eq!((&sum["in"], &sum["more"]["cached"]), (&json!(7), &json!(3)));
    }
}
