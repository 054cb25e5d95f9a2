//! The items of `input` in the Responses API. An item with an id and without its own content is a reference: the
//! provider looks the content up.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toolcrib_dialect::fold_key;

use super::CONTAINER;
use super::found::Search;

/// Maximum number of keys in one item. Items of the API have about twenty.
const KEYS: usize = 1_024;
/// Fields of an item that are not its content.
const ABOUT: [&str; 9] =
    ["type", "id", "status", "role", "name", "namespace", "call_id", "server_label", "phase"];

/// The ids of the stored items and containers in `input`, which is a text or a list.
pub(super) struct Input(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = Input;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of items")
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Input, E> {
                Ok(Input(Vec::new()))
            }

            fn visit_unit<E: Error>(self) -> Result<Input, E> {
                Ok(Input(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Input, A::Error> {
                let mut ids = Vec::new();
                while let Some(item) = list.next_element::<Item>()? {
                    ids.extend(item.ids);
                }
                Ok(Input(ids))
            }
        }
        from.deserialize_any(Items)
    }
}

/// An item of `input`: its id, if it stands for a stored item, and the containers in it.
struct Item {
    ids: Vec<String>,
}

/// Whether an item of this type, with these fields that are neither null nor empty, stands for a stored one. `others`
/// says whether it has a field other than those in [`ABOUT`].
fn is_reference(kind: Option<&str>, filled: &HashSet<String>, others: bool) -> bool {
    let has = |name: &str| filled.contains(name);
    let kind = kind.map(str::to_ascii_lowercase);
    match kind.as_deref() {
        // The type may be left out: with a role it is a message, without one a reference.
        None if !has("role") => true,
        None | Some("message") => !has("content"),
        Some("item_reference") => true,
        // A summary is not the reasoning, which the provider loads if it is not in the item.
        Some("reasoning" | "compaction") => !has("encrypted_content"),
        Some("image_generation_call") => !has("result"),
        Some(_) => !others,
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
                let (mut kind, mut id, mut others, mut ids) = (None, None, false, Vec::new());
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
                            let value = map.next_value_seed(Search(&CONTAINER))?;
                            others |= value.is_present && !ABOUT.contains(&name.as_str());
                            if value.is_filled {
                                filled.insert(name);
                            }
                            if CONTAINER.contains(&folded.as_str()) {
                                ids.extend(value.into_reference());
                            } else {
                                ids.extend(value.ids);
                            }
                        }
                    }
                    if !seen.insert(folded) {
                        return Err(A::Error::custom("a key of an item occurs twice"));
                    }
                    if seen.len() > KEYS {
                        let text = format!("an item of `input` may have at most {KEYS} keys");
                        return Err(A::Error::custom(text));
                    }
                }
                ids.extend(id.filter(|_| is_reference(kind.as_deref(), &filled, others)));
                Ok(Item { ids })
            }
        }
        from.deserialize_map(Fields)
    }
}
