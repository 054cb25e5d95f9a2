//! Tools that a search can hardly find because their descriptions say too little.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, ToolId};
use crate::text::{is_stop, words};
use toolcrib_text::clean;

/// Minimum number of searchable words. A tool with fewer words can be found only by its exact name.
const MIN_WORDS: usize = 3;

/// A tool with too few words to be found, and the words that it has.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Weakness {
    /// The tool's name.
    pub name: String,
    /// Whether the tool has a description.
    pub described: bool,
    /// All searchable words of the tool's name, title, keywords and description.
    pub words: Vec<String>,
}

impl Catalog {
    /// Reports a tool that has too few words to be found. Returns `None` if the tool has enough words.
    pub fn weakness(&self, id: ToolId) -> Option<Weakness> {
        let tool = self.tool(id);
        let texts =
            [tool.name_without_server(), tool.title().unwrap_or_default(), tool.description()];
        let mut found = BTreeSet::new();
        for text in texts.into_iter().chain(tool.keywords()) {
            words::each(text, &mut |word| {
                // Single letters, numbers and hashes do not count, because nobody searches for them.
                let letters = word.chars().filter(|c| c.is_alphabetic()).count();
                if letters > 1 && 2 * letters > word.chars().count() && !is_stop(word) {
                    found.insert(word.to_owned());
                }
            });
            // Words of the server's name do not count, because they do not distinguish this tool from the server's
            // other tools.
            for word in tool.server().map(words::all).unwrap_or_default() {
                found.remove(&word);
            }
        }
        (found.len() < MIN_WORDS).then(|| Weakness {
            name: tool.name().to_owned(),
            described: !clean::one_line(tool.description()).is_empty(),
            words: found.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opaque_name_without_a_description_is_weak() {
        let tools = br#"[
            {"name": "acme__op1", "input_schema": {}, "server": "acme"},
            {"name": "acme__run", "description": "Runs it.", "input_schema": {}, "server": "acme"},
            {"name": "mcp__acme__go", "description": "Goes.", "input_schema": {}, "server": "acme"},
            {"name": "acme__pay_open_invoice", "input_schema": {}, "server": "acme"}
        ]"#;
        let catalog = Catalog::from_json(tools).unwrap();
        let weak: Vec<_> = catalog.ids().filter_map(|id| catalog.weakness(id)).collect();
        let weakness = |name: &str, described, words: &[&str]| Weakness {
            name: name.into(),
            described,
            words: words.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            weak,
            [
                weakness("acme__op1", false, &["op1"]),
                weakness("acme__run", true, &["run", "runs"]),
                weakness("mcp__acme__go", true, &["go", "goes"]),
            ]
        );
    }
}
