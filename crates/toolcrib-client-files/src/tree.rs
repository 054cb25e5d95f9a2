//! Reads and changes a parsed document by paths of keys. The editors of the text are checked against these functions.

use serde_json::{Map, Value};

use crate::problem::FileProblem;

/// Returns the value at a path, or `None` if there is none.
pub fn get<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |value, key| value.as_object()?.get(key))
}

/// Returns the keys of the object at a path, in the order of the document.
pub(crate) fn keys<'a>(root: &'a Value, path: &[String]) -> Vec<&'a String> {
    get(root, path).and_then(Value::as_object).map(|map| map.keys().collect()).unwrap_or_default()
}

/// Sets the value at a path. Fails if a value on the way is not an object.
pub(crate) fn set(root: &mut Value, path: &[String], value: Value) -> Result<(), FileProblem> {
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let mut object = object_at(root, "the document")?;
    for key in parents {
        let next = object.entry(key.clone()).or_insert(Value::Null);
        object = object_at(next, key)?;
    }
    object.insert(last.clone(), value);
    Ok(())
}

fn object_at<'a>(
    value: &'a mut Value,
    key: &str,
) -> Result<&'a mut Map<String, Value>, FileProblem> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().ok_or_else(|| not_an_object(key))
}

/// The error for a value on a path that should be an object, but is not.
pub(crate) fn not_an_object(key: &str) -> FileProblem {
    FileProblem::new(
        format!("`{key}` is not an object"),
        "correct this value in the file, then run the command again",
    )
}

/// Removes the key at a path, if it exists.
pub(crate) fn remove(root: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let object = parents.iter().try_fold(root, |value, key| value.as_object_mut()?.get_mut(key));
    if let Some(object) = object.and_then(Value::as_object_mut) {
        // `remove` would move the last key to the position of the removed one.
        object.shift_remove(last);
    }
}

/// Wraps a value in one object for each key.
pub(crate) fn nest(keys: &[String], value: Value) -> Value {
    keys.iter()
        .rev()
        .fold(value, |value, key| Value::Object(Map::from_iter([(key.clone(), value)])))
}
