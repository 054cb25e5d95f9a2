//! A list as its server sent it, stored as JSON text.
//!
//! The lists are most of what the gateway holds in memory for a server. They are read only when the catalog is built
//! and when they are saved for the next run. As parsed values, they would take ten times the memory.

use serde::de::{Error as _, IgnoredAny};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A list of tools, prompts, resources or templates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definitions {
    /// The entries as a JSON array.
    text: Box<str>,
    count: usize,
}

impl Default for Definitions {
    fn default() -> Self {
        Self { text: "[]".into(), count: 0 }
    }
}

impl Definitions {
    #[cfg(test)]
    pub(crate) fn of(list: &[Value]) -> Self {
        let mut writer = DefinitionsWriter::default();
        for entry in list {
            writer.push(&entry.to_string());
        }
        writer.finish()
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns all entries, as a JSON array.
    pub(crate) fn json(&self) -> &str {
        &self.text
    }

    /// Returns all entries, parsed.
    pub(crate) fn values(&self) -> Vec<Value> {
        serde_json::from_str(self.json()).unwrap_or_default()
    }

    /// Returns the name of each entry. An entry without a name counts as an empty string.
    pub(crate) fn names(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct NameField {
            #[serde(default)]
            name: Value,
        }
        let all: Vec<NameField> = serde_json::from_str(self.json()).unwrap_or_default();
        all.iter().map(|entry| entry.name.as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Builds a list entry by entry.
#[derive(Debug, Default)]
pub(super) struct DefinitionsWriter {
    text: String,
    count: usize,
}

impl DefinitionsWriter {
    /// Adds an entry, given as JSON text.
    pub(super) fn push(&mut self, entry: &str) {
        self.text.push(if self.count == 0 { '[' } else { ',' });
        self.text.push_str(entry);
        self.count += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn finish(mut self) -> Definitions {
        if self.count == 0 {
            return Definitions::default();
        }
        self.text.push(']');
        Definitions { text: self.text.into(), count: self.count }
    }
}

impl Serialize for Definitions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: &RawValue = serde_json::from_str(&self.text).map_err(S::Error::custom)?;
        text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Definitions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let all: Vec<IgnoredAny> = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { count: all.len(), text: Box::<str>::from(text) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_survives_serialization_unchanged() {
        let tools = Definitions::of(&[json!({"name": "b", "z": 1, "a": [1.50]}), json!({"x": 1})]);
        let text = serde_json::to_string(&tools).unwrap();
        assert_eq!(text, r#"[{"name":"b","z":1,"a":[1.5]},{"x":1}]"#);
        let again: Definitions = serde_json::from_str(&text).unwrap();
        assert_eq!((again.len(), &again), (2, &tools));
        assert_eq!(again.names(), ["b", ""]);
        assert!(serde_json::from_str::<Definitions>("{}").is_err());
        assert_eq!(Definitions::default().json(), "[]");
    }
}
