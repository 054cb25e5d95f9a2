//! Resources with fixed contents, one template, and one resource that clients can subscribe to.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::media::PNG;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
/// The resource that clients can subscribe to.
pub(crate) const WATCHED: &str = "test://watched-resource";

pub(crate) fn list() -> Vec<Resource> {
    vec![
        Resource::new(TEXT, "static-text")
            .with_description("A text that never changes.")
            .with_mime_type("text/plain"),
        Resource::new(BINARY, "static-binary")
            .with_description("A picture of one pixel.")
            .with_mime_type("image/png"),
        Resource::new(WATCHED, "watched-resource")
            .with_description("A text to subscribe to.")
            .with_mime_type("text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("test://template/{id}/data", "template")
            .with_description("Data made from an id.")
            .with_mime_type("application/json"),
    ]
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        TEXT => ResourceContents::text("A text that never changes.", uri),
        BINARY => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        WATCHED => ResourceContents::text("A text to subscribe to.", uri),
        _ => from_template(uri).ok_or_else(|| {
            ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))
        })?,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn from_template(uri: &str) -> Option<ResourceContents> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let data = json!({"id": id}).to_string();
    Some(ResourceContents::text(data, uri).with_mime_type("application/json"))
}
