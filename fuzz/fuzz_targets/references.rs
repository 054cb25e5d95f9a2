//! Any bytes as a request of a caller that shares its account: every container in it is found, or it is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcrib_dialect::Api;
use toolcrib_proxy::referenced_ids;

/// Schemas, whose examples may have any key.
const SCHEMAS: [&str; 3] = ["parameters", "input_schema", "output_schema"];
/// Longer texts are cut, and are no ids.
const LONGEST: usize = 256;

/// The values of `container_id`, at any depth.
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
        // A second reader keeps the last of two equal keys, so that it finds less.
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
