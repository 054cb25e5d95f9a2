//! Writes server-sent events, and splits text into pieces for streaming.

use bytes::Bytes;
use serde_json::Value;

/// Returns an event without a name.
pub(crate) fn data(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

/// Returns an event whose name is the `type` of its data.
pub(crate) fn named(value: &Value) -> Bytes {
    let name = value["type"].as_str().unwrap_or("message");
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

/// Splits text into pieces of `size` characters. An empty text gives one empty piece.
pub(crate) fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}
