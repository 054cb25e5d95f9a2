//! Finds blocks that load tools in a JSON value, at any depth.
//!
//! A client may send megabytes of JSON. So the value is scanned without building a tree, which would take sixty times
//! the memory of its text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::history::is_loading_block;

/// Whether a JSON value contains a block that loads tools. Deserializing it scans the value.
pub(super) struct HasLoadingBlock(pub(super) bool);

impl<'de> Deserialize<'de> for HasLoadingBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlockVisitor { is_type: false }).map(HasLoadingBlock)
    }
}

/// Scans one value. `is_type` says whether it is the value of `type`; any other string is ignored.
struct BlockVisitor {
    is_type: bool,
}

impl<'de> serde::de::DeserializeSeed<'de> for BlockVisitor {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BlockVisitor {
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
        Ok(self.is_type && is_loading_block(text))
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
        while let Some(BlockKey(key)) = fields.next_key()? {
            match &*key {
                "tool_references" => {
                    found = true;
                    fields.next_value::<IgnoredAny>()?;
                }
                // The arguments of a call are free-form, so they are skipped.
                "input" => drop(fields.next_value::<IgnoredAny>()?),
                key => found |= fields.next_value_seed(Self { is_type: key == "type" })?,
            }
        }
        Ok(found)
    }
}

/// An object key, borrowed if it has no escapes.
#[derive(Deserialize)]
struct BlockKey<'a>(#[serde(borrow)] Cow<'a, str>);
