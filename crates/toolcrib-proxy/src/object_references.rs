//! Finds the stored objects to which a request refers by id: responses, items and containers of the Responses API,
//! containers of Messages, and audio of Chat Completions.
//!
//! The body is read in such a way that no reference is missed: keys are compared as the most lenient parser would
//! compare them, and a repeated key is an error, because the provider might use either value. The number of references
//! is limited, because each is looked up.

mod chat_messages;
mod id_search;
mod input_items;

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, Error, IgnoredAny, MapAccess, Visitor};
use toolcrib_dialect::{Api, fold_key};

use self::chat_messages::ChatMessages;
use self::id_search::IdSearch;
use self::input_items::InputItems;

/// Maximum number of different ids in one request.
const MAX_IDS: usize = 4_096;
/// Keys whose value is either the id of a container, or an object that contains that id. They are written as
/// [`fold_key`] returns them.
const CONTAINER_KEYS: [&str; 2] = ["container", "containerid"];

/// The stored objects to which a body refers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectReferences {
    /// The ids, without duplicates.
    pub(crate) ids: Vec<String>,
    /// Whether the body continues a conversation that the provider stores.
    pub(crate) has_conversation: bool,
}

impl ObjectReferences {
    /// Reads the body of a request to this API.
    pub(crate) fn read(api: Api, body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut from = serde_json::Deserializer::from_slice(body);
        let mut found = from.deserialize_map(BodyVisitor { api })?;
        from.end()?;
        let mut seen = HashSet::new();
        found.ids.retain(|id| seen.insert(id.clone()));
        if found.ids.len() > MAX_IDS {
            let text = format!(
                "a request may refer to at most {MAX_IDS} ids: send the conversation itself"
            );
            return Err(Error::custom(text));
        }
        Ok(found)
    }
}

/// Returns the ids in a body; `None` if it is rejected. For the fuzzer.
#[cfg(feature = "fuzzing")]
pub fn referenced_ids(api: Api, body: &[u8]) -> Option<Vec<String>> {
    ObjectReferences::read(api, body).ok().map(|found| found.ids)
}

/// Returns the keys that may refer to stored objects in the bodies of this API, written as [`fold_key`] returns them.
fn reference_keys(api: Api) -> &'static [&'static str] {
    match api {
        Api::Responses => &["previousresponseid", "conversation", "input", "tools"],
        Api::Messages => &["container"],
        Api::Chat => &["messages"],
        Api::Gemini => &[],
    }
}

struct BodyVisitor {
    api: Api,
}

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = ObjectReferences;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectReferences, A::Error> {
        let mut found = ObjectReferences::default();
        let mut seen: Vec<&'static str> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let folded = fold_key(&name);
            let word = reference_keys(self.api).iter().copied().find(|word| folded == *word);
            let Some(word) = word else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&word) {
                return Err(A::Error::custom(format!("`{name}` occurs twice")));
            }
            seen.push(word);
            match word {
                "previousresponseid" => found.ids.extend(map.next_value::<Option<String>>()?),
                "conversation" => {
                    found.has_conversation = map.next_value::<Option<IgnoredAny>>()?.is_some();
                }
                "input" => found.ids.extend(map.next_value::<InputItems>()?.0),
                "container" => {
                    let value = map.next_value_seed(IdSearch(&CONTAINER_KEYS))?;
                    found.ids.extend(value.into_reference());
                }
                "messages" => found.ids.extend(map.next_value::<ChatMessages>()?.0),
                _ => found.ids.extend(map.next_value_seed(IdSearch(&CONTAINER_KEYS))?.ids),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
