//! The stored responses and items that a request of the Responses API refers to.
//!
//! The body is read strictly: a key that occurs twice, in whatever letter case, is an error, because the provider
//! might use the other one.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a body refers to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// Ids of responses and items.
    pub(crate) ids: Vec<String>,
    /// Whether it goes on with a conversation that the provider keeps.
    pub(crate) has_conversation: bool,
}

impl References {
    /// Reads a body.
    pub(crate) fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
}

impl<'de> Deserialize<'de> for References {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Body)
    }
}

struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = References;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<References, A::Error> {
        let mut found = References::default();
        let mut seen: Vec<&'static str> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let known = ["previous_response_id", "conversation", "input"];
            let known = known.into_iter().find(|known| name.eq_ignore_ascii_case(known));
            if let Some(known) = known {
                if seen.contains(&known) {
                    return Err(A::Error::custom(format!("`{known}` occurs twice")));
                }
                seen.push(known);
            }
            match known {
                Some("previous_response_id") => {
                    found.ids.extend(map.next_value::<Option<String>>()?);
                }
                Some("conversation") => {
                    found.has_conversation = map.next_value::<Option<IgnoredAny>>()?.is_some();
                }
                Some(_) => {
                    found.ids.extend(map.next_value::<Input>()?.0);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

/// The ids of the stored items in `input`, which is a text or a list.
struct Input(Vec<String>);

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
                    ids.extend(item.reference);
                }
                Ok(Input(ids))
            }
        }
        from.deserialize_any(Items)
    }
}

/// An item of `input`: the id, if it stands for a stored item.
struct Item {
    reference: Option<String>,
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
                let (mut kind, mut id, mut has_role) = (None, None, false);
                while let Some(name) = map.next_key::<String>()? {
                    let field = match name.to_ascii_lowercase().as_str() {
                        "type" => &mut kind,
                        "id" => &mut id,
                        other => {
                            has_role |= other == "role";
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if field.is_some() {
                        return Err(A::Error::custom("`type` or `id` of an item occurs twice"));
                    }
                    *field = Some(map.next_value::<Option<String>>()?);
                }
                // The type may be left out: with a role it is a message, without one a reference.
                let refers = match kind.flatten() {
                    Some(kind) => kind.eq_ignore_ascii_case("item_reference"),
                    None => !has_role,
                };
                Ok(Item { reference: id.flatten().filter(|_| refers) })
            }
        }
        from.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(body: &str) -> Option<Vec<String>> {
        References::read(body.as_bytes()).ok().map(|found| found.ids)
    }

    #[test]
    fn references_are_found_in_every_place() {
        for (body, found) in [
            (r#"{"input":"Hi"}"#, &[][..]),
            (r#"{"input":null,"previous_response_id":null}"#, &[]),
            (r#"{"previous_response_id":"resp_1","input":[]}"#, &["resp_1"]),
            (r#"{"Previous_Response_ID":"resp_1"}"#, &["resp_1"]),
            (r#"{"previous\u005fresponse_id":"resp_1"}"#, &["resp_1"]),
            (
                r#"{"input":[{"type":"item_reference","id":"msg_1"},{"id":"rs_1"},{"role":"user","id":"x","content":[]},{"type":"message","id":"y"}]}"#,
                &["msg_1", "rs_1"],
            ),
        ] {
            assert_eq!(ids(body).unwrap(), found, "{body}");
        }
        let conversation = |body: &str| References::read(body.as_bytes()).unwrap().has_conversation;
        assert!(
            conversation(r#"{"conversation":{"id":"c"}}"#)
                && conversation(r#"{"conversation":"c"}"#)
        );
        assert!(!conversation(r#"{"conversation":null}"#));
    }

    #[test]
    fn a_body_that_could_be_read_in_two_ways_is_refused() {
        for body in [
            r#"{"previous_response_id":"a","previous_response_id":"b"}"#,
            r#"{"previous_response_id":null,"PREVIOUS_response_id":"b"}"#,
            r#"{"input":[],"input":[{"id":"b"}]}"#,
            r#"{"input":[{"id":"a","id":"b"}]}"#,
            r#"{"input":[7]}"#,
            r#"{"input":{"id":"a"}}"#,
            r#"{"previous_response_id":7}"#,
            "[]",
            "{",
        ] {
            assert_eq!(ids(body), None, "{body}");
        }
    }
}
