//! Loads tools again at the end of a history.
//!
//! If a tool was called in the history but the record of that turn is lost, the tool must be loaded again. Changing old
//! turns or `tools` would invalidate the prompt cache. So a search call and its result are appended to the history
//! instead, which costs only a few tokens.

use toolcrib_text::json;

use super::content::write_message;
use super::history::result_block;
use crate::hidden_rounds::{HiddenAnswer, ReferencedTool};
use crate::mode::MAX_REFERENCES;
use crate::request::{Request, Speaker};
use crate::toolset::Toolset;

/// Returns messages with a search for these tools by name, and its results.
///
/// Returns `None` if thinking is enabled, because a turn with calls would then have to begin with a signed thinking
/// block. Also returns `None` if the history ends with an assistant message, because the model must continue that
/// message.
pub(super) fn reload_tools(
    request: &Request,
    toolset: &Toolset,
    tools: &[(&str, &str)],
) -> Option<Vec<String>> {
    let ends_with_client =
        request.segments.last().is_some_and(|last| last.speaker == Speaker::Client);
    if !ends_with_client || request.wants_thinking || tools.is_empty() {
        return None;
    }
    let search = json::quote(toolset.names().search);
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for tools in tools.chunks(MAX_REFERENCES) {
        let names: Vec<&str> = tools.iter().map(|(name, _)| *name).collect();
        let query = format!("select:{}", names.join(","));
        let id = search_id(request, &query);
        let input = format!(r#"{{"query":{}}}"#, json::quote(&query));
        calls.push(format!(r#"{{"type":"tool_use","id":"{id}","name":{search},"input":{input}}}"#));
        let references = tools.iter().map(|(name, definition)| ReferencedTool {
            name: (*name).to_owned(),
            definition: (*definition).to_owned(),
        });
        let answer = HiddenAnswer {
            at: 0,
            id: Some(id),
            name: toolset.names().search.to_owned(),
            text: String::new(),
            refused: false,
            references: references.collect(),
        };
        results.push(result_block(&answer, toolset));
    }
    Some(vec![write_message("assistant", &calls), write_message("user", &results)])
}

/// Returns an id that is stable for this request and unique within its conversation.
fn search_id(request: &Request, query: &str) -> String {
    let entries: usize = request.segments.iter().map(|segment| segment.entries.len()).sum();
    let hash = blake3::hash(format!("{entries} {query}").as_bytes());
    format!("toolu_{}", &hash.to_hex()[..24])
}
