//! The edits that `connect` and `disconnect` make: set, remove or copy the value at a path of keys.

use serde_json::Value;

/// The keys that lead to a value, from the top of the document.
pub type KeyPath = Vec<String>;

/// Where a new key is inserted among the keys of its object. A key that exists already keeps its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Place {
    /// At the beginning.
    First,
    /// Directly before this key, or at the end if there is no such key.
    Before(String),
    /// Directly after this key, or at the end if there is no such key.
    After(String),
    /// At the end.
    #[default]
    Last,
}

/// One edit of a document. Objects on the way to the value are created if they are missing or null.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit<'a> {
    /// Sets a value.
    Set {
        /// The path of the value.
        path: KeyPath,
        /// The new value.
        value: Value,
        /// The place of the key, if it is new.
        place: Place,
    },
    /// Removes a key with its value. Does nothing if the key is missing.
    Remove {
        /// The path of the key.
        path: KeyPath,
        /// Whether the comments that belong to the key stay.
        keep_comments: bool,
    },
    /// Copies a key with its value from another document of the same format, if possible with its comments and its
    /// formatting.
    Copy {
        /// The path of the key in both documents.
        path: KeyPath,
        /// The text of the other document.
        from: &'a str,
        /// The place of the key, if it is new.
        place: Place,
    },
}

impl Edit<'_> {
    /// Returns the path that the edit changes.
    pub fn path(&self) -> &[String] {
        match self {
            Self::Set { path, .. } | Self::Remove { path, .. } | Self::Copy { path, .. } => path,
        }
    }
}

/// Returns the edits that replace the entries `removed` of the object at `container` by the entry `name`. The new entry
/// is written at the position of the first removed one. `removed` must be in the order of the document.
pub fn replace_entries(
    container: &[String],
    name: &str,
    value: Value,
    removed: &[String],
) -> Vec<Edit<'static>> {
    let path =
        |key: &str| -> KeyPath { container.iter().cloned().chain([key.to_owned()]).collect() };
    let place = removed.first().cloned().map_or(Place::Last, Place::Before);
    let set = Edit::Set { path: path(name), value, place };
    let removals = removed.iter().filter(|key| *key != name);
    // A comment about a removed server is removed with it.
    let remove = |key: &String| Edit::Remove { path: path(key), keep_comments: false };
    [set].into_iter().chain(removals.map(remove)).collect()
}
