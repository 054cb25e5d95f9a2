//! Reads any bytes as a request of a caller that shares its provider account with other callers. The proxy must find
//! every container that the request refers to, or reject the request.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcrib_dialect::Api;
use toolcrib_proxy::referenced_ids;

/// Keys whose values are schemas. Their examples may contain any key, so they are skipped.
const SCHEMAS: [&str; 3] = ["parameters", "input_schema", "output_schema"];
/// Maximum length in bytes of the ids that are compared. The proxy never records a longer id, and it truncates very
/// long texts.
const LONGEST: usize = 256;

/// Collects the values of `container_id` at any depth.
fn containers(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| containers(item, out)),
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| !SCHEMAS.contains(&key.as_str())) {
                match value {
                    Value::String(id) if key == "container_id" && id.len() <= LONGEST => {
                        out.push(id.clone());
                    }
                    value => containers(value, out),
                }
            }
        }
        _ => {}
    }
}

fuzz_target!(|data: &[u8]| {
    for api in Api::ALL {
        let Some(ids) = referenced_ids(api, data) else { continue };
        // If a key occurs twice, this parser keeps only the last value, so it may find fewer ids than the proxy, but
        // not more.
        let Ok(body) = serde_json::from_slice::<Value>(data) else { continue };
        let mut wanted = Vec::new();
        match api {
            Api::Responses => {
                wanted.extend(body["previous_response_id"].as_str().map(str::to_owned));
                containers(&body["input"], &mut wanted);
            }
            Api::Messages => {
                wanted.extend(body["container"].as_str().map(str::to_owned));
                wanted.extend(body["container"]["id"].as_str().map(str::to_owned));
                wanted.retain(|id| id.len() <= LONGEST);
            }
            Api::Chat | Api::Gemini => {}
        }
        for id in wanted {
            assert!(ids.contains(&id), "{api}: {id} is not in {ids:?}");
        }
    }
});
