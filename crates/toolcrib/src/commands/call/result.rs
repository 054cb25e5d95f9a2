//! Prints the result of a call for people. `--json` prints it exactly as the server sent it.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcrib_text::clean::one_line;

use crate::output::{Failure, Output};

/// A result of `tools/call`. Fields that are not printed are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult {
    #[serde(default)]
    content: Vec<Value>,
    #[serde(default)]
    structured_content: Option<Value>,
    #[serde(default)]
    pub(super) is_error: bool,
}

/// A part of the content. The kinds that exist are described in the MCP specification; unknown kinds are printed as
/// JSON.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
    },
    Resource {
        resource: EmbeddedResource,
    },
}

#[derive(Deserialize)]
struct EmbeddedResource {
    uri: String,
    #[serde(default)]
    text: Option<String>,
}

impl ToolResult {
    pub(super) fn read(raw: &RawValue) -> Result<Self, Failure> {
        serde_json::from_str(raw.get()).map_err(|error| {
            let problem = format!("the server's result cannot be read: {error}");
            Failure::input("result", &problem, "`--json` prints the result as the server sent it")
        })
    }
}

/// Prints the text of a result. Other content is described in one line, because a terminal cannot show it.
pub(super) fn print_result(result: &ToolResult, output: &mut Output) -> Result<(), Failure> {
    for part in &result.content {
        output.line(part_text(part).trim_end_matches('\n'))?;
    }
    match &result.structured_content {
        // A server that sends structured content also sends it as text, for older clients. Otherwise it is printed.
        Some(structured) if result.content.is_empty() => {
            output.line(&serde_json::to_string_pretty(structured).unwrap_or_default())
        }
        _ => Ok(()),
    }
}

fn part_text(part: &Value) -> String {
    let Ok(known) = ContentPart::deserialize(part) else { return part.to_string() };
    match known {
        ContentPart::Text { text }
        | ContentPart::Resource { resource: EmbeddedResource { text: Some(text), .. } } => text,
        ContentPart::Image { data, mime_type } => binary("image", &mime_type, &data),
        ContentPart::Audio { data, mime_type } => binary("audio", &mime_type, &data),
        ContentPart::ResourceLink { uri, name } => one_line(&format!("[resource {name}: {uri}]")),
        ContentPart::Resource { resource } => one_line(&format!("[resource {}]", resource.uri)),
    }
}

/// Describes content in Base64.
fn binary(kind: &str, mime_type: &str, data: &str) -> String {
    let bytes = data.trim_end_matches('=').len() * 3 / 4;
    format!("[{kind}: {mime_type}, {bytes} bytes; `--json` prints it in Base64]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_content_has_a_text() {
        for (part, expected) in [
            (json!({"type": "text", "text": "hello"}), "hello"),
            (
                json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}),
                "[image: image/png, 5 bytes; `--json` prints it in Base64]",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///a", "name": "a"}),
                "[resource a: file:///a]",
            ),
            (json!({"type": "resource", "resource": {"uri": "x:y", "text": "inside"}}), "inside"),
            (
                json!({"type": "resource", "resource": {"uri": "x:y", "blob": "AA=="}}),
                "[resource x:y]",
            ),
            (json!({"type": "new", "a": 1}), r#"{"type":"new","a":1}"#),
            (json!(7), "7"),
        ] {
            assert_eq!(part_text(&part), expected);
        }
    }
}
