//! Finds the ids of stored objects in a response, of the kinds that `object_references` finds in requests.
//!
//! Only fields that the provider itself fills are read. A response also repeats data from the client (`metadata`,
//! schemas, tool definitions). If these were read, a client could put another caller's id there and be recorded as the
//! owner of that caller's object.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use toolcrib_dialect::Api;

/// Adds the ids in a response, or in the data of one of its events, to `ids`.
pub(crate) fn collect_ids(api: Api, json: &[u8], ids: &mut Vec<String>) {
    // Searching for the key first avoids parsing, because most events contain only text and no id.
    let has = |word: &str| json.windows(word.len()).any(|window| window == word.as_bytes());
    match api {
        Api::Responses => responses(json, ids),
        Api::Messages if has("\"container\"") => {
            let pointers = ["/container/id", "/message/container/id", "/delta/container/id"];
            extend_at(json, &pointers, ids);
        }
        Api::Chat if has("\"audio\"") => {
            let Ok(Value::Object(response)) = serde_json::from_slice(json) else { return };
            let choices = response.get("choices").and_then(Value::as_array);
            for choice in choices.into_iter().flatten() {
                ids.extend(text(choice, "/message/audio/id"));
                ids.extend(text(choice, "/delta/audio/id"));
            }
        }
        Api::Messages | Api::Chat | Api::Gemini => {}
    }
}

fn extend_at(json: &[u8], pointers: &[&str], ids: &mut Vec<String>) {
    let Ok(value) = serde_json::from_slice::<Value>(json) else { return };
    ids.extend(pointers.iter().filter_map(|pointer| text(&value, pointer)));
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

/// A response of the Responses API, or an event of its stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseOrEvent<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    output: Vec<OutputItem<'a>>,
    #[serde(borrow)]
    response: Option<Box<ResponseOrEvent<'a>>>,
    #[serde(borrow)]
    item: Option<OutputItem<'a>>,
    /// The annotation, if the event adds an annotation to a text.
    #[serde(borrow)]
    annotation: Option<Annotation<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputItem<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    /// The container of the code interpreter, which a later request may use again.
    #[serde(borrow)]
    container_id: Option<Cow<'a, str>>,
    /// The environment in which the commands of a shell run.
    environment: Value,
    /// The texts of a message, whose annotations contain ids of containers.
    content: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Annotation<'a> {
    #[serde(borrow)]
    container_id: Option<Cow<'a, str>>,
}

fn responses(json: &[u8], ids: &mut Vec<String>) {
    let Ok(shown) = serde_json::from_slice::<ResponseOrEvent<'_>>(json) else { return };
    let mut add = |id: Option<Cow<'_, str>>| ids.extend(id.map(Cow::into_owned));
    for shown in
        [shown.response.map(|inner| *inner), Some(ResponseOrEvent { response: None, ..shown })]
    {
        let Some(shown) = shown else { continue };
        add(shown.id);
        add(shown.annotation.and_then(|annotation| annotation.container_id));
        for item in shown.item.into_iter().chain(shown.output) {
            add(item.id);
            add(item.container_id);
            add(text(&item.environment, "/container_id").map(Cow::Owned));
            let parts = item.content.as_array().into_iter().flatten();
            let annotations = parts.filter_map(|part| part.get("annotations")?.as_array());
            for annotation in annotations.flatten() {
                add(text(annotation, "/container_id").map(Cow::Owned));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(api: Api, json: &str) -> Vec<String> {
        let mut ids = Vec::new();
        collect_ids(api, json.as_bytes(), &mut ids);
        ids
    }

    #[test]
    fn ids_are_found_in_fields_that_the_provider_fills() {
        for (api, json, found) in [
            (
                Api::Responses,
                r#"{"id":"resp_1","output":[{"type":"shell_call","id":"sh_1","environment":{"container_id":"c1"}},
                {"type":"message","id":"msg_1","content":[{"text":"x","annotations":[{"container_id":"c2"}]}]}]}"#,
                &["resp_1", "sh_1", "c1", "msg_1", "c2"][..],
            ),
            (
                Api::Responses,
                r#"{"type":"response.output_text.annotation.added","annotation":{"container_id":"c1"}}"#,
                &["c1"],
            ),
            (
                Api::Responses,
                r#"{"item":{"id":"x","content":"a text","environment":null}}"#,
                &["x"],
            ),
            (Api::Messages, r#"{"id":"msg_1","container":{"id":"c1"}}"#, &["c1"]),
            (
                Api::Messages,
                r#"{"type":"message_start","message":{"container":{"id":"c1"}}}"#,
                &["c1"],
            ),
            (
                Api::Messages,
                r#"{"type":"message_delta","delta":{"container":{"id":"c1"}}}"#,
                &["c1"],
            ),
            (Api::Chat, r#"{"id":"x","choices":[{"message":{"audio":{"id":"a1"}}}]}"#, &["a1"]),
            (Api::Chat, r#"{"id":"x","choices":[{"delta":{"audio":{"id":"a1"}}}]}"#, &["a1"]),
        ] {
            assert_eq!(ids(api, json), found, "{json}");
        }
    }

    #[test]
    fn ids_in_data_from_the_client_are_ignored() {
        for (api, json) in [
            (
                Api::Responses,
                r#"{"metadata":{"container_id":"c1"},"tools":[{"container":"c1"}],"text":{"format":{"schema":{"id":"c1"}}}}"#,
            ),
            (
                Api::Responses,
                r#"{"output":[{"type":"mcp_list_tools","tools":[{"name":"x","annotations":{"container_id":"c1"}}]}]}"#,
            ),
            (
                Api::Messages,
                r#"{"content":[{"type":"tool_use","input":{"container":{"id":"c1"}}}]}"#,
            ),
            (Api::Chat, r#"{"metadata":{"audio":{"id":"a1"}}}"#),
        ] {
            assert_eq!(ids(api, json), [""; 0], "{json}");
        }
    }
}
