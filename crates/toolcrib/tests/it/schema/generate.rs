//! Generates the JSON schema of `toolcrib.toml` from the types that read its sections.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use toolcrib_mcp::config::{GatewaySettings, Profile, server_schema};
use toolcrib_proxy::ProxyConfig;
use toolcrib_server::HttpSettings;

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// Generates the schema from the types.
pub(super) fn generated() -> Value {
    let mut generator = SchemaSettings::draft07().into_generator();
    let mut schema = toolcrib_core::settings_schema(&mut generator);
    let server = server_schema(&mut generator).to_value();
    let profile = schema_of::<Profile>(&mut generator);
    let sections = [
        (
            "servers",
            "The MCP servers, by name.",
            json!({ "type": "object", "additionalProperties": server }),
        ),
        (
            "profiles",
            "Subsets of the servers and tools, by name.",
            json!({ "type": "object", "additionalProperties": profile }),
        ),
        (
            "gateway",
            "Settings of the gateway that apply to all servers.",
            schema_of::<GatewaySettings>(&mut generator),
        ),
        (
            "http",
            "The address to listen on, who may send requests, and limits.",
            schema_of::<HttpSettings>(&mut generator),
        ),
        ("proxy", "The LLM proxy.", schema_of::<ProxyConfig>(&mut generator)),
    ];
    let properties = schema.get_mut("properties").unwrap().as_object_mut().unwrap();
    for (name, description, section) in sections {
        let section = match section.get("$ref") {
            Some(_) => json!({ "allOf": [section] }),
            None => section,
        };
        let mut section = section.as_object().unwrap().clone();
        section.insert("description".into(), description.into());
        properties.insert(name.into(), section.into());
    }
    let definitions = generator.take_definitions(true);
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    let mut document = Map::new();
    document.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
    document.insert("title".into(), "toolcrib.toml".into());
    document.insert("description".into(), "The configuration of Toolcrib.".into());
    document.extend(
        schema
            .to_value()
            .as_object()
            .unwrap()
            .clone()
            .into_iter()
            .filter(|(key, _)| key != "description"),
    );
    document.insert("definitions".into(), definitions.into());
    let mut document = Value::Object(document);
    simplify(&mut document);
    document
}

/// Removes the parts of the schema that describe the Rust types and do not help authors of a config: null, formats of
/// numbers, and all paragraphs of a description after the first.
fn simplify(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Object(fields) => {
            // A property may have the name of a keyword, but then its value is a schema.
            if fields.get("format").is_some_and(Value::is_string) {
                fields.shift_remove("format");
            }
            // The defaults of a table are those of its keys.
            if fields.get("default").is_some_and(|value| value.is_null() || value.is_object()) {
                fields.shift_remove("default");
            }
            if let Some(Value::Number(number)) = fields.get_mut("default")
                && let Some(float) = number.as_f64().filter(|_| number.is_f64())
            {
                // A default of type `f32` is written with the digits of the source, not with those of the nearest
                // `f64`.
                *number = (float as f32)
                    .to_string()
                    .parse::<f64>()
                    .ok()
                    .and_then(serde_json::Number::from_f64)
                    .unwrap();
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.split("\n\n").next().unwrap().replace('\n', " ");
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    fields.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(variants)) = fields.get_mut("anyOf") {
                variants.retain(|variant| *variant != json!({ "type": "null" }));
                if variants.len() == 1 {
                    let one = fields.shift_remove("anyOf").unwrap();
                    fields.insert("allOf".into(), one);
                }
            }
            fields.values_mut().for_each(simplify);
        }
        _ => {}
    }
}
