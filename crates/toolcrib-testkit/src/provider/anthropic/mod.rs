//! Anthropic Messages: hosted search, tool references, bound thinking.

mod binding;
mod check;
mod pairs;
mod read;
mod write;

pub(super) use check::{check, check_count};
pub(super) use read::read;
pub(super) use write::write;

/// The types of the hosted search; a date may follow.
const HOSTED: [&str; 2] = ["tool_search_tool_bm25", "tool_search_tool_regex"];

/// The kind of hosted search that a tool is, if any.
fn hosted(tool: &serde_json::Value) -> Option<&'static str> {
    let kind = tool["type"].as_str()?;
    HOSTED.into_iter().find(|name| kind.starts_with(name))
}
