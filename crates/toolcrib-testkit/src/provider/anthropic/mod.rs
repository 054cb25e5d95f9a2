//! Anthropic Messages, with hosted search, tool references and bound thinking blocks.

mod binding;
mod check;
mod pairs;
mod read;
mod write;

pub(super) use check::{check, check_count};
pub(super) use read::read;
pub(super) use write::write;

/// The types of hosted search tools, without the date that may follow in a request.
const HOSTED: [&str; 2] = ["tool_search_tool_bm25", "tool_search_tool_regex"];

/// Returns the type of a hosted search tool, without the date. `None` if the tool is not a hosted search.
fn hosted(tool: &serde_json::Value) -> Option<&'static str> {
    let kind = tool["type"].as_str()?;
    HOSTED.into_iter().find(|name| kind.starts_with(name))
}
