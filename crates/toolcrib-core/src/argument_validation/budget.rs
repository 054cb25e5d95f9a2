//! Checks that validating the arguments of a call will not take too many steps.
//!
//! There are two checks: one of the schema alone, before it is compiled, and one of the schema together with the
//! arguments, before the arguments are validated.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::VALUES;
use crate::ingest::NAMED;

/// Maximum number of steps in the walk over the schema and the arguments.
const STEPS: usize = 20_000;
/// Maximum nesting depth of the walk over the schema and the arguments.
const DEPTH: usize = 200;

/// Whether a schema may be compiled: all its references can be followed, at most one `unevaluated…` keyword occurs, and
/// the schema does not become too large when its references are expanded.
pub(super) fn allows(schema: &Value) -> bool {
    has_only_plain_references(schema, schema)
        && unevaluated(schema) < 2
        && unrolled(schema) <= STEPS
}

/// Whether arguments may be validated against a schema for which [`allows`] returned true.
pub(super) fn allows_for(schema: &Value, arguments: &Value) -> bool {
    Walk { root: schema, steps: STEPS }.affordable(schema, arguments, DEPTH)
}

/// Whether every reference is a plain pointer into this document. The walk does not follow anchors, escaped pointers,
/// other base URIs or dynamic references, so it cannot limit what they cost.
fn has_only_plain_references(value: &Value, root: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$dynamicRef" | "$recursiveRef", _) => false,
            ("$id" | "id", Value::String(_)) => std::ptr::eq(map, root.as_object().unwrap_or(map)),
            ("$ref", Value::String(target)) => {
                let pointer = target.strip_prefix('#').filter(|pointer| !pointer.contains('%'));
                pointer.is_some_and(|pointer| root.pointer(pointer).is_some())
            }
            // The members' keys are names chosen by the schema's author. They may look like keywords, so only the
            // values are checked.
            (key, Value::Object(members)) if NAMED.contains(&key) => {
                members.values().all(|member| has_only_plain_references(member, root))
            }
            (key, _) if VALUES.contains(&key) => true,
            _ => has_only_plain_references(value, root),
        }),
        Value::Array(items) => items.iter().all(|item| has_only_plain_references(item, root)),
        _ => true,
    }
}

/// Counts the `unevaluated…` keywords. A schema may have only one, because two could be nested, and then the validator
/// evaluates everything below them again at every level.
fn unevaluated(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            let own = ["unevaluatedProperties", "unevaluatedItems"];
            own.iter().filter(|key| map.contains_key(**key)).count()
                + map.values().map(unevaluated).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(unevaluated).sum(),
        _ => 0,
    }
}

/// Returns the value that the schema's `$ref` points to, and the JSON pointer to that value. Returns `None` if the
/// schema has no `$ref`, or if its `$ref` does not point to a value in this document.
fn target<'a>(root: &'a Value, map: &Map<String, Value>) -> Option<(&'a Value, String)> {
    let pointer = map.get("$ref").and_then(Value::as_str)?.strip_prefix('#')?;
    Some((root.pointer(pointer)?, pointer.to_owned()))
}

/// For each reference's JSON pointer, the expanded size of the value that it points to.
type Sizes = FxHashMap<String, usize>;

/// Counts the values in the schema after every reference is expanded. A cycle is expanded once. Returns `usize::MAX` if
/// the schema is nested too deeply.
fn unrolled(schema: &Value) -> usize {
    fn size(value: &Value, root: &Value, sizes: &mut Sizes, depth: usize) -> usize {
        let Some(depth) = depth.checked_sub(1) else { return usize::MAX };
        let below = match value {
            Value::Object(map) => {
                let referred = target(root, map).map_or(0, |(found, pointer)| {
                    if let Some(known) = sizes.get(&pointer) {
                        return *known;
                    }
                    // Inserted before descending, so that a cyclic reference finds this entry and the recursion ends.
                    sizes.insert(pointer.clone(), 1);
                    let size = size(found, root, sizes, depth);
                    sizes.insert(pointer, size);
                    size
                });
                map.values().fold(referred, |sum, value| {
                    sum.saturating_add(size(value, root, sizes, depth))
                })
            }
            Value::Array(items) => items
                .iter()
                .fold(0usize, |sum, item| sum.saturating_add(size(item, root, sizes, depth))),
            _ => 0,
        };
        below.saturating_add(1)
    }
    size(schema, schema, &mut Sizes::default(), DEPTH)
}

/// Walks over a schema and the arguments, and counts down the steps that a validator would take.
struct Walk<'a> {
    root: &'a Value,
    steps: usize,
}

impl Walk<'_> {
    fn affordable(&mut self, schema: &Value, instance: &Value, depth: usize) -> bool {
        let Value::Object(map) = schema else { return true };
        let (Some(steps), Some(depth)) = (self.steps.checked_sub(1), depth.checked_sub(1)) else {
            return false;
        };
        self.steps = steps;
        if let Some((found, _)) = target(self.root, map)
            && !self.affordable(found, instance, depth)
        {
            return false;
        }
        map.iter().all(|(keyword, value)| match (keyword.as_str(), value, instance) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(all), _) => {
                all.iter().all(|part| self.affordable(part, instance, depth))
            }
            ("not" | "if" | "then" | "else", part, _) => self.affordable(part, instance, depth),
            ("dependentSchemas" | "dependencies", Value::Object(parts), _) => {
                parts.values().all(|part| self.affordable(part, instance, depth))
            }
            ("properties", Value::Object(parts), Value::Object(members)) => {
                parts.iter().all(|(name, part)| {
                    members.get(name).is_none_or(|member| self.affordable(part, member, depth))
                })
            }
            ("patternProperties", Value::Object(parts), Value::Object(members)) => parts
                .values()
                .all(|part| members.values().all(|member| self.affordable(part, member, depth))),
            (
                "additionalProperties" | "unevaluatedProperties" | "propertyNames",
                part,
                Value::Object(members),
            ) => members.values().all(|member| self.affordable(part, member, depth)),
            ("prefixItems" | "items", Value::Array(parts), Value::Array(items)) => {
                parts.iter().zip(items).all(|(part, item)| self.affordable(part, item, depth))
            }
            (
                "items" | "contains" | "additionalItems" | "unevaluatedItems",
                part,
                Value::Array(items),
            ) => items.iter().all(|item| self.affordable(part, item, depth)),
            _ => true,
        })
    }
}
