//! Reads and adds the token counts of Gemini.

use serde_json::Value;

use crate::usage::{self, Usage};

/// Reads a `usageMetadata` object.
pub(super) fn read(used: &Value) -> Usage {
    let count = |key| usage::token_count(used, &[key]);
    Usage {
        input: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
        cached: count("cachedContentTokenCount"),
        output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
    }
}

/// Adds the counts of a later round to those of the earlier rounds. Fields such as `promptTokensDetails` are lists with
/// one entry per modality, so they are added by modality.
pub(super) fn sum(before: Option<&Value>, later: &Value) -> Value {
    let Some(before) = before else { return later.clone() };
    let mut sum = before.clone();
    usage::add(&mut sum, later);
    if let (Value::Object(sum), Value::Object(before)) = (&mut sum, before) {
        for (key, list) in sum.iter_mut() {
            let known = before.get(key).and_then(Value::as_array);
            if let (Value::Array(list), Some(known), true) = (list, known, later.get(key).is_some())
            {
                add_by_modality(list, known);
            }
        }
    }
    sum
}

fn add_by_modality(list: &mut Vec<Value>, known: &[Value]) {
    for entry in known {
        let same = |other: &&mut Value| other.get("modality") == entry.get("modality");
        match list.iter_mut().find(same) {
            Some(other) => usage::add(other, entry),
            None => list.push(entry.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn details_add_up_by_modality() {
        let before = json!({"promptTokenCount": 5, "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 3}, {"modality": "IMAGE", "tokenCount": 2}]});
        let later = json!({"promptTokenCount": 7, "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 7}]});
        let both = json!({"promptTokenCount": 12, "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 10}, {"modality": "IMAGE", "tokenCount": 2}]});
        assert_eq!(sum(Some(&before), &later), both);
        assert_eq!(sum(Some(&before), &json!({"promptTokenCount": 1}))["promptTokenCount"], 6);
        assert_eq!(sum(None, &later), later);
    }
}
