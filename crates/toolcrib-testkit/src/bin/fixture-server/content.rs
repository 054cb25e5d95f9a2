//! Tools that answer immediately, each with a different kind of content.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};
use serde_json::{Value, json};

use crate::definition::Definition;
use crate::media::{PNG, WAV};
use crate::schemas;

/// The definitions of these tools. The first tool must not need arguments, because the conformance suite calls the
/// first tool of the list without any.
pub(crate) const TOOLS: &[Definition] = &[
    Definition::plain("test_simple_text", "Answers with one text."),
    Definition::plain("test_image_content", "Answers with one picture."),
    Definition::plain("test_audio_content", "Answers with one sound."),
    Definition::plain("test_embedded_resource", "Answers with a resource inside the result."),
    Definition::plain(
        "test_multiple_content_types",
        "Answers with a text, a picture and a resource.",
    ),
    Definition::plain("test_error_handling", "Fails, and says so in its result."),
    Definition::taking(
        "json_schema_2020_12_tool",
        "Takes a parcel by a schema that uses most of JSON Schema 2020-12.",
        schemas::modern,
    ),
    Definition::taking(
        "test_header_parameter",
        "Takes a region that HTTP clients repeat in a header.",
        schemas::with_header,
    ),
];

/// Returns the result of one of the tools in [`TOOLS`]. `None` for any other name.
pub(crate) fn call(name: &str, arguments: &JsonObject) -> Option<CallToolResult> {
    let blocks = match name {
        "test_simple_text" => vec![ContentBlock::text("Nothing but a short text.")],
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => {
            vec![ContentBlock::resource(ResourceContents::text(
                "The text of a resource inside a result.",
                "test://embedded-resource",
            ))]
        }
        "test_multiple_content_types" => mixed(),
        "test_error_handling" => {
            return Some(CallToolResult::error(vec![ContentBlock::text(
                "This tool fails on purpose.",
            )]));
        }
        "json_schema_2020_12_tool" | "test_header_parameter" => {
            vec![ContentBlock::text(Value::Object(arguments.clone()).to_string())]
        }
        _ => return None,
    };
    Some(CallToolResult::success(blocks))
}

fn mixed() -> Vec<ContentBlock> {
    let resource =
        ResourceContents::text(json!({"answer": 42}).to_string(), "test://mixed-content-resource")
            .with_mime_type("application/json");
    vec![
        ContentBlock::text("A text, a picture and a resource:"),
        ContentBlock::image(PNG, "image/png"),
        ContentBlock::resource(resource),
    ]
}
