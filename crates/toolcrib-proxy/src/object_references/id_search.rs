//! Finds the ids under certain keys of a JSON value, at any depth.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use toolcrib_dialect::fold_key;

/// Maximum number of characters that are kept of a string. Ids of this length are never recorded, so a reference with a
/// truncated id is rejected.
const MAX_TEXT_CHARS: usize = 512;
/// Keys whose values are JSON schemas. They are not searched, because examples in a schema may have any key.
const SCHEMA_KEYS: [&str; 3] = ["parameters", "input_schema", "output_schema"];

/// A search for the values of these keys, which are written as [`fold_key`] returns them.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdSearch(pub(super) &'static [&'static str]);

/// The result of searching a value.
#[derive(Debug, Default)]
pub(super) struct SearchedValue {
    /// The value, if it is a string.
    text: Option<String>,
    /// For an object, the strings under its key `id`; for a list, the ids of its elements. If there are several, the
    /// provider may use any of them.
    own_ids: Vec<String>,
    /// Whether the value is not null.
    pub(super) is_present: bool,
    /// Whether the value is neither null nor an empty string, list or object.
    pub(super) is_filled: bool,
    /// The ids that were found inside the value, under the keys that are searched for.
    pub(super) ids: Vec<String>,
}

impl SearchedValue {
    fn filled(is_filled: bool) -> Self {
        Self { is_present: true, is_filled, ..Self::default() }
    }

    /// Returns all ids in a value that was found under one of the keys that are searched for.
    pub(super) fn into_reference(self) -> impl Iterator<Item = String> {
        self.text.into_iter().chain(self.own_ids).chain(self.ids)
    }
}

impl<'de> DeserializeSeed<'de> for IdSearch {
    type Value = SearchedValue;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<SearchedValue, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IdSearch {
    type Value = SearchedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<SearchedValue, E> {
        Ok(SearchedValue::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<SearchedValue, E> {
        Ok(SearchedValue::filled(true))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<SearchedValue, E> {
        Ok(SearchedValue::filled(true))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<SearchedValue, E> {
        Ok(SearchedValue::filled(true))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<SearchedValue, E> {
        Ok(SearchedValue::filled(true))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SearchedValue, E> {
        let start = text.chars().take(MAX_TEXT_CHARS).collect();
        Ok(SearchedValue { text: Some(start), ..SearchedValue::filled(!text.is_empty()) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SearchedValue, A::Error> {
        let mut all = SearchedValue::filled(false);
        while let Some(found) = list.next_element_seed(self)? {
            all.is_filled = true;
            all.own_ids.extend(found.text.into_iter().chain(found.own_ids));
            all.ids.extend(found.ids);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SearchedValue, A::Error> {
        let mut all = SearchedValue::filled(false);
        while let Some(name) = map.next_key::<String>()? {
            all.is_filled = true;
            if SCHEMA_KEYS.contains(&name.as_str()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let found = map.next_value_seed(self)?;
            let folded = fold_key(&name);
            if self.0.contains(&folded.as_str()) {
                all.ids.extend(found.into_reference());
                continue;
            }
            if folded == "id" {
                all.own_ids.extend(found.text);
            }
            all.ids.extend(found.ids);
        }
        Ok(all)
    }
}
