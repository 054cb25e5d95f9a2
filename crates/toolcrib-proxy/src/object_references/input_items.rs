//! The items of `input` in the Responses API. An item with an id and without content is a reference: the provider loads
//! the content.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toolcrib_dialect::fold_key;

use super::CONTAINER_KEYS;
use super::id_search::IdSearch;

/// Maximum number of keys in one item. Items of the API have about twenty.
const MAX_KEYS: usize = 1_024;
/// Fields of an item that are not content.
const METADATA_FIELDS: [&str; 9] =
    ["type", "id", "status", "role", "name", "namespace", "call_id", "server_label", "phase"];

/// The ids of the stored items and containers in `input`, which is a string or a list.
pub(super) struct InputItems(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for InputItems {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ItemsVisitor;
        impl<'de> Visitor<'de> for ItemsVisitor {
            type Value = InputItems;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of items")
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<InputItems, E> {
                Ok(InputItems(Vec::new()))
            }

            fn visit_unit<E: Error>(self) -> Result<InputItems, E> {
                Ok(InputItems(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<InputItems, A::Error> {
                let mut ids = Vec::new();
                while let Some(item) = list.next_element::<InputItem>()? {
                    ids.extend(item.ids);
                }
                Ok(InputItems(ids))
            }
        }
        from.deserialize_any(ItemsVisitor)
    }
}

/// An item of `input`: its id, if it refers to a stored item, and the ids of the containers in it.
struct InputItem {
    ids: Vec<String>,
}

/// Whether an item refers to a stored item. `filled` contains the item's fields that are neither null nor empty.
/// `has_content_field` says whether the item has a field that is not in [`METADATA_FIELDS`].
fn is_reference(kind: Option<&str>, filled: &HashSet<String>, has_content_field: bool) -> bool {
    let has = |name: &str| filled.contains(name);
    let kind = kind.map(str::to_ascii_lowercase);
    match kind.as_deref() {
        // An item may have no type: with a role it is a message, without a role it is a reference.
        None if !has("role") => true,
        None | Some("message") => !has("content"),
        Some("item_reference") => true,
        // A summary is not the reasoning itself. If the item does not contain the reasoning, the provider loads it.
        Some("reasoning" | "compaction") => !has("encrypted_content"),
        Some("image_generation_call") => !has("result"),
        Some(_) => !has_content_field,
    }
}

impl<'de> Deserialize<'de> for InputItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = InputItem;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InputItem, A::Error> {
                let (mut kind, mut id, mut has_content_field, mut ids) =
                    (None, None, false, Vec::new());
                let (mut seen, mut filled) = (HashSet::new(), HashSet::new());
                while let Some(name) = map.next_key::<String>()? {
                    let folded = fold_key(&name);
                    match folded.as_str() {
                        "type" if name != folded => {
                            return Err(A::Error::custom("`type` of an item must be lower-case"));
                        }
                        "type" => kind = map.next_value::<Option<String>>()?,
                        "id" => id = map.next_value::<Option<String>>()?,
                        _ => {
                            let value = map.next_value_seed(IdSearch(&CONTAINER_KEYS))?;
                            has_content_field |=
                                value.is_present && !METADATA_FIELDS.contains(&name.as_str());
                            if value.is_filled {
                                filled.insert(name);
                            }
                            if CONTAINER_KEYS.contains(&folded.as_str()) {
                                ids.extend(value.into_reference());
                            } else {
                                ids.extend(value.ids);
                            }
                        }
                    }
                    if !seen.insert(folded) {
                        return Err(A::Error::custom("a key of an item occurs twice"));
                    }
                    if seen.len() > MAX_KEYS {
                        let text = format!("an item of `input` may have at most {MAX_KEYS} keys");
                        return Err(A::Error::custom(text));
                    }
                }
                ids.extend(
                    id.filter(|_| is_reference(kind.as_deref(), &filled, has_content_field)),
                );
                Ok(InputItem { ids })
            }
        }
        from.deserialize_map(FieldsVisitor)
    }
}
