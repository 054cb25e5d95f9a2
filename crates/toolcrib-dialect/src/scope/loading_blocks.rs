//! Whether a value contains, at any depth, a block that loads tools.
//!
//! The client may send megabytes of any JSON, so the value is scanned and not kept: as a tree of values it would take
//! sixty times its text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::history::is_loader;

/// Whether a block that loads tools was found.
pub(super) struct Loaders(pub(super) bool);

impl<'de> Deserialize<'de> for Loaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Search { is_type: false }).map(Loaders)
    }
}

/// Scans one value. A string counts only as the value of `type`.
struct Search {
    is_type: bool,
}

impl<'de> serde::de::DeserializeSeed<'de> for Search {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(self.is_type && is_loader(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(more) = items.next_element_seed(Self { is_type: false })? {
            found |= more;
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(Key(key)) = fields.next_key()? {
            match &*key {
                "tool_references" => {
                    found = true;
                    fields.next_value::<IgnoredAny>()?;
                }
                // Arguments of a call.
                "input" => drop(fields.next_value::<IgnoredAny>()?),
                key => found |= fields.next_value_seed(Self { is_type: key == "type" })?,
            }
        }
        Ok(found)
    }
}

/// A key, borrowed if its text has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
