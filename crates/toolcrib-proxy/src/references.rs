//! The stored responses, items and containers that a request of the Responses API refers to.
//!
//! An item with an id and without its own content is a reference: the provider looks the content up. The body is read strictly: a key that occurs twice, in whatever letter case, is an error, because the provider
//! might use the other one.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::containers::Containers;

/// What a body refers to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// Ids of responses, items and containers.
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
            let known = ["previous_response_id", "conversation", "input", "tools"];
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
                Some("tools") => {
                    found.ids.extend(map.next_value::<Containers>()?.0);
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

/// The ids of the stored items and containers in `input`, which is a text or a list.
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
                    ids.extend(item.ids);
                }
                Ok(Input(ids))
            }
        }
        from.deserialize_any(Items)
    }
}

/// An item of `input`: its id, if it stands for a stored item, and the containers of tools in it.
struct Item {
    ids: Vec<String>,
}

/// Fields of an item that are not its content.
const ABOUT: [&str; 9] =
    ["type", "id", "status", "role", "name", "namespace", "call_id", "server_label", "phase"];

/// Whether an item of this type, with these fields that are neither null nor empty, stands for a stored one. `others`
/// says whether it has a field beyond those that describe it.
fn is_reference(kind: Option<&str>, fields: &[String], others: bool) -> bool {
    let has = |name: &str| fields.iter().any(|field| field == name);
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
                let (mut seen, mut filled): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
                while let Some(name) = map.next_key::<String>()? {
                    let folded = name.to_ascii_lowercase();
                    if seen.contains(&folded) {
                        return Err(A::Error::custom("a key of an item occurs twice"));
                    }
                    match folded.as_str() {
                        "type" if name != folded => {
                            return Err(A::Error::custom("`type` of an item must be lower-case"));
                        }
                        "type" => kind = map.next_value::<Option<String>>()?,
                        "id" => id = map.next_value::<Option<String>>()?,
                        "tools" => {
                            ids.extend(map.next_value::<Containers>()?.0);
                            others = true;
                        }
                        _ => {
                            let value = map.next_value::<Value>()?;
                            others |= value != Value::Null && !ABOUT.contains(&name.as_str());
                            if value == Value::Filled {
                                filled.push(name);
                            }
                        }
                    }
                    seen.push(folded);
                }
                ids.extend(id.filter(|_| is_reference(kind.as_deref(), &filled, others)));
                Ok(Item { ids })
            }
        }
        from.deserialize_map(Fields)
    }
}

/// Whether there is anything in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Null,
    /// An empty text, list or object.
    Empty,
    Filled,
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        fn filled(is_filled: bool) -> Value {
            if is_filled { Value::Filled } else { Value::Empty }
        }
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E: Error>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
                Ok(Value::Filled)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
                Ok(Value::Filled)
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
                Ok(Value::Filled)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
                Ok(Value::Filled)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                Ok(filled(!text.is_empty()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut count = 0_usize;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(filled(count > 0))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut count = 0_usize;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(filled(count > 0))
            }
        }
        from.deserialize_any(Any)
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
                r#"{"input":[{"type":"item_reference","id":"msg_1"},{"id":"rs_1"},{"role":"user","id":"x","content":"Hi"},{"type":"message","id":"y"}]}"#,
                &["msg_1", "rs_1", "y"],
            ),
            (
                r#"{"input":[{"role":null,"id":"a","content":"x"},{"role":"user","id":"b","content":[]},{"role":"user","id":"c","Content":"x"}]}"#,
                &["a", "b", "c"],
            ),
            (
                r#"{"input":[{"type":"reasoning","id":"a","summary":[{"text":"x"}]},{"type":"reasoning","id":"b","encrypted_content":"x"},{"type":"reasoning","id":"c","encrypted_content":null}]}"#,
                &["a", "c"],
            ),
            (
                r#"{"input":[{"type":"image_generation_call","id":"a","status":"completed"},{"type":"image_generation_call","id":"b","result":"AA"}]}"#,
                &["a"],
            ),
            (
                r#"{"input":[{"type":"function_call","id":"a","call_id":"c","name":"f","arguments":""},{"type":"function_call","id":"b","call_id":"c","name":"f"},{"type":"function_call_output","id":"d","call_id":"c","output":""}]}"#,
                &["b"],
            ),
            (
                r#"{"tools":[{"type":"code_interpreter","container":"cntr_1"},{"type":"code_interpreter","container":{"type":"auto"}},{"type":"function","parameters":{"default":{"container":"x"}}}]}"#,
                &["cntr_1"],
            ),
            (
                r#"{"input":[{"type":"additional_tools","tools":[{"type":"shell","environment":{"container_id":"cntr_1"}}]}]}"#,
                &["cntr_1"],
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
            r#"{"input":[{"id":"a","role":"user","content":"x","content":null}]}"#,
            r#"{"input":[{"id":"a","Type":"message","content":"x"}]}"#,
            r#"{"tools":[],"tools":[]}"#,
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
