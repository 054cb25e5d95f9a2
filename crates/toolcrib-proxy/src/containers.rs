//! The containers in which a request lets the provider run code.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Keys whose text is the id of a container.
const CONTAINER: [&str; 2] = ["container", "container_id"];
/// Keys of a tool below which there is a JSON schema. Its examples may have any key.
const SCHEMAS: [&str; 3] = ["parameters", "input_schema", "output_schema"];

/// The ids of all containers in a list of tools, whatever its form.
pub(crate) struct Containers(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let found = Found::deserialize(from)?;
        Ok(Self(found.ids))
    }
}

/// What a value has in it.
#[derive(Default)]
struct Found {
    /// The value, if it is a text.
    text: Option<String>,
    ids: Vec<String>,
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Found, E> {
        Ok(Found { text: Some(text.to_owned()), ids: Vec::new() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let mut all = Found::default();
        while let Some(found) = list.next_element::<Found>()? {
            all.ids.extend(found.ids);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut all = Found::default();
        while let Some(name) = map.next_key::<String>()? {
            if SCHEMAS.contains(&name.as_str()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let found = map.next_value::<Found>()?;
            all.ids.extend(found.ids);
            if CONTAINER.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                all.ids.extend(found.text);
            }
        }
        Ok(all)
    }
}
