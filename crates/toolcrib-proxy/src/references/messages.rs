//! The messages of Chat Completions. One of the model refers to audio that the provider has stored by its `audio`; the
//! same key inside of a content part is the client's own data.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use toolcrib_dialect::fold_key;

use super::found::Search;

/// The ids of the audio that messages refer to.
pub(super) struct Messages(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Messages;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_unit<E: Error>(self) -> Result<Messages, E> {
                Ok(Messages(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Messages, A::Error> {
                let mut ids = Vec::new();
                while let Some(message) = list.next_element::<Message>()? {
                    ids.extend(message.0);
                }
                Ok(Messages(ids))
            }
        }
        from.deserialize_any(List)
    }
}

/// The ids of the audio that one message refers to.
struct Message(Vec<String>);

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Message;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
                let mut ids = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if fold_key(&name) == "audio" {
                        ids.extend(map.next_value_seed(Search(&[]))?.into_reference());
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Message(ids))
            }
        }
        from.deserialize_any(Fields)
    }
}
