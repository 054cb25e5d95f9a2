//! The messages of Chat Completions. In a message of the model, the key `audio` refers to stored audio; inside a
//! content part, the same key contains the client's own data.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use toolcrib_dialect::fold_key;

use super::id_search::IdSearch;

/// The ids of the stored audio to which messages refer.
pub(super) struct ChatMessages(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for ChatMessages {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct MessagesVisitor;
        impl<'de> Visitor<'de> for MessagesVisitor {
            type Value = ChatMessages;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_unit<E: Error>(self) -> Result<ChatMessages, E> {
                Ok(ChatMessages(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ChatMessages, A::Error> {
                let mut ids = Vec::new();
                while let Some(message) = list.next_element::<AudioReferences>()? {
                    ids.extend(message.0);
                }
                Ok(ChatMessages(ids))
            }
        }
        from.deserialize_any(MessagesVisitor)
    }
}

/// The ids of the stored audio to which one message refers.
struct AudioReferences(Vec<String>);

impl<'de> Deserialize<'de> for AudioReferences {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = AudioReferences;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AudioReferences, A::Error> {
                let mut ids = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if fold_key(&name) == "audio" {
                        ids.extend(map.next_value_seed(IdSearch(&[]))?.into_reference());
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(AudioReferences(ids))
            }
        }
        from.deserialize_any(FieldsVisitor)
    }
}
