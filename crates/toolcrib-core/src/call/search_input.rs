//! Reads the input of a search tool, in the forms in which models write it.

use serde_json::Value;

use super::{Refusal, RefusalCode, unwrap_arguments};
use crate::own_names::OwnNames;
use crate::search::SearchRequest;
use toolcrib_text::json::Fields;

/// Keys in the input of a search tool. If an input has none of these keys, the real input may be wrapped inside it.
const SEARCH_INPUT_KEYS: [&str; 5] = ["query", "queries", "names", "name", "pattern"];

/// Reads the input of a search tool. It accepts a string in place of a list, and a list in place of a string.
pub(super) fn read_search_request(
    names: OwnNames,
    tool: &str,
    input: &str,
) -> Result<SearchRequest, Box<Refusal>> {
    let interpretations = unwrap_arguments::interpretations(input);
    let knows = |fields: &Fields<'_>| SEARCH_INPUT_KEYS.iter().any(|key| fields.get(key).is_some());
    let read: Vec<Fields<'_>> =
        interpretations.iter().filter_map(|text| Fields::read(text)).collect();
    let fields = read.iter().find(|fields| knows(fields)).or(read.first());
    let Some(fields) = fields else {
        // The input is a bare string, which is taken as the query.
        if let Ok(query) = serde_json::from_str::<String>(input) {
            return Ok(SearchRequest::query(&query));
        }
        let hint = format!("send {{\"query\": \"…\"}} to {tool}");
        return Err(Box::new(Refusal::new(
            RefusalCode::InvalidInput,
            format!("{tool} takes an object"),
            hint,
        )));
    };
    let strings = |keys: [&str; 2]| -> Vec<String> {
        let values = keys.iter().filter_map(|key| fields.get(key));
        values.flat_map(strings_in).collect()
    };
    let number = ["limit", "max_results"].iter().find_map(|key| fields.get(key));
    let limit = number.and_then(|raw| raw.trim_matches('"').parse::<f64>().ok());
    let by_pattern = tool == names.search_regex;
    let pattern = by_pattern.then(|| fields.string("pattern")).flatten();
    if by_pattern && pattern.is_none() {
        let hint = format!("send {{\"pattern\": \"…\"}}, or use {}", names.search);
        return Err(Box::new(Refusal::new(
            RefusalCode::InvalidInput,
            format!("{tool} needs a `pattern`"),
            hint,
        )));
    }
    Ok(SearchRequest {
        queries: strings(["query", "queries"]),
        names: strings(["names", "name"]),
        pattern,
        limit: limit.map(|limit| limit.clamp(1.0, 1_000.0) as usize),
    })
}

fn strings_in(raw: &str) -> Vec<String> {
    match serde_json::from_str::<Value>(raw) {
        Ok(Value::String(text)) => vec![text],
        Ok(Value::Array(items)) => {
            items.into_iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}
