//! A request in a form that is independent of the API: the declared tools and the conversation so far.

use serde_json::Value;

#[derive(Debug, Default)]
pub(crate) struct ParsedRequest {
    pub(crate) tools: Vec<DeclaredTool>,
    /// The kind of native search that the request declares, if any.
    pub(crate) native_search: Option<NativeSearch>,
    pub(crate) messages: Vec<HistoryMessage>,
    /// The names of the tools that the script uses. These tools belong to the client, even if one has the same name as
    /// a tool that Toolcrib adds.
    pub(crate) client_tools: Vec<String>,
}

/// A search that is a feature of the API, and not an ordinary function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NativeSearch {
    /// The provider runs the search while it generates the response.
    Hosted,
    /// The client runs the search, as with `execution: client` in Responses.
    Client,
}

#[derive(Debug)]
pub(crate) struct DeclaredTool {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) load: LoadState,
    /// Whether the schema has any properties. The schema of a stub has none.
    pub(crate) has_arguments: bool,
    /// Name, description and schema in lower case. The hosted search looks for words in this text.
    pub(crate) words: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LoadState {
    /// The full definition was sent from the start.
    Loaded,
    /// The tool can be called only after a search.
    Deferred,
    /// The tool was deferred, but the history contains its definition or a reference to it.
    Revealed,
}

impl DeclaredTool {
    pub(crate) fn new(name: &str, description: &Value, schema: &Value, load: LoadState) -> Self {
        let properties = schema["properties"].as_object();
        Self {
            name: name.to_owned(),
            namespace: None,
            load,
            has_arguments: properties.is_some_and(|properties| !properties.is_empty()),
            words: format!("{name} {} {schema}", description.as_str().unwrap_or_default())
                .to_lowercase(),
        }
    }

    /// Whether a client may use `name` for this tool: either the tool's own name, or that name with the namespace as a
    /// prefix.
    fn answers_to(&self, name: &str) -> bool {
        self.name == name
            || self.namespace.as_deref().and_then(|space| name.strip_prefix(space)).is_some_and(
                |rest| {
                    rest.trim_start_matches(['_', '.', '-', '/']) == self.name && rest != self.name
                },
            )
    }
}

#[derive(Debug)]
pub(crate) enum HistoryMessage {
    User(String),
    Model(Vec<HistoryBlock>),
    Results(Vec<ToolResult>),
}

/// A block of a message from the model, with only the information that the script needs.
#[derive(Debug)]
pub(crate) enum HistoryBlock {
    Text,
    Call(String),
    /// A search that the provider ran. `open` is true if the result is not in the history yet.
    HostedSearch {
        id: String,
        query: String,
        open: bool,
    },
    /// A search that the client runs.
    ClientSearch,
}

#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl ParsedRequest {
    pub(crate) fn add_user_text(&mut self, text: &str) {
        if let Some(HistoryMessage::User(last)) = self.messages.last_mut() {
            last.push('\n');
            last.push_str(text);
        } else {
            self.messages.push(HistoryMessage::User(text.to_owned()));
        }
    }

    pub(crate) fn add_model_block(&mut self, block: HistoryBlock) {
        if let Some(HistoryMessage::Model(last)) = self.messages.last_mut() {
            last.push(block);
        } else {
            self.messages.push(HistoryMessage::Model(vec![block]));
        }
    }

    pub(crate) fn add_result(&mut self, name: &str, text: String) {
        let result = ToolResult { name: name.to_owned(), text };
        if let Some(HistoryMessage::Results(last)) = self.messages.last_mut() {
            last.push(result);
        } else {
            self.messages.push(HistoryMessage::Results(vec![result]));
        }
    }

    pub(crate) fn declared(&self, name: &str) -> Option<&DeclaredTool> {
        let exact =
            self.tools.iter().find(|tool| tool.name == name && tool.load != LoadState::Deferred);
        exact.or_else(|| self.tools.iter().rev().find(|tool| tool.answers_to(name)))
    }

    /// Returns the name of Toolcrib's search function, if the request declares one. The name is `tool_search`, or
    /// `crib_search` if the client has its own `tool_search`.
    pub(crate) fn search(&self) -> Option<&str> {
        self.added("crib_search", "tool_search")
    }

    /// Returns the name of the function through which the model can call any tool, if the request declares one.
    pub(crate) fn bridge(&self) -> Option<&str> {
        self.added("crib_call", "tool_call")
    }

    fn added(&self, second: &str, first: &str) -> Option<&str> {
        let names = || self.tools.iter().map(|tool| tool.name.as_str());
        let first = || {
            names()
                .filter(|name| !self.client_tools.iter().any(|own| own == name))
                .find(|name| name.ends_with(first))
        };
        names().find(|name| *name == second).or_else(first)
    }

    /// Whether `name` is a function that finds or describes tools.
    pub(crate) fn is_search(&self, name: &str) -> bool {
        let others = ["tool_describe", "crib_describe", "tool_search_regex", "crib_search_regex"];
        // The native search of the API has no name, so its results are recorded as `tool_search`.
        let native_search =
            self.native_search == Some(NativeSearch::Client) && name == "tool_search";
        native_search
            || self.search() == Some(name)
            || others.iter().any(|other| name.ends_with(other))
    }

    /// Whether the result of a search in the history contains this tool.
    pub(crate) fn was_found(&self, tool: &str) -> bool {
        self.messages.iter().any(|message| match message {
            HistoryMessage::Results(results) => results
                .iter()
                .any(|result| self.is_search(&result.name) && names(&result.text, tool)),
            HistoryMessage::User(_) | HistoryMessage::Model(_) => false,
        })
    }

    /// Returns the number of steps that the model has already played in `messages`, not counting steps that only
    /// search, and the number of search rounds after the last of these steps.
    pub(crate) fn progress(messages: &[HistoryMessage], ask: &Self) -> (usize, usize) {
        let mut steps = 0;
        let mut rounds = 0;
        for message in messages {
            if let HistoryMessage::Model(blocks) = message {
                if ask.is_round(blocks) {
                    rounds += 1;
                } else {
                    steps += 1;
                    rounds = 0;
                }
            }
        }
        (steps, rounds)
    }

    fn is_round(&self, blocks: &[HistoryBlock]) -> bool {
        let mut searches = false;
        for block in blocks {
            match block {
                HistoryBlock::ClientSearch => searches = true,
                HistoryBlock::Call(name) if self.is_search(name) => searches = true,
                HistoryBlock::Call(_) | HistoryBlock::HostedSearch { .. } => return false,
                HistoryBlock::Text => {}
            }
        }
        searches
    }

    /// Returns the names of at most five tools that are not declared in full and share a word with the query, best
    /// first.
    pub(crate) fn matches(&self, query: &str) -> Vec<String> {
        let wanted: Vec<String> = words(query);
        let mut hits: Vec<(usize, &str)> = self
            .tools
            .iter()
            .filter(|tool| tool.load != LoadState::Loaded)
            .map(|tool| {
                let found = wanted.iter().filter(|word| tool.words.contains(word.as_str())).count();
                let named = wanted
                    .iter()
                    .filter(|word| tool.name.to_lowercase().contains(word.as_str()))
                    .count();
                (found + named, tool.name.as_str())
            })
            .filter(|(score, _)| *score > 0)
            .collect();
        hits.sort_by(|left, right| right.0.cmp(&left.0).then(left.1.cmp(right.1)));
        hits.into_iter().take(5).map(|(_, name)| name.to_owned()).collect()
    }
}

/// Splits a name or a query into words in lower case.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether a text contains `name` as a whole word.
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + name.len()..].chars().next().is_some_and(part)
    })
}

/// Returns the text of a message's content, which may be a string or a list of parts.
pub(crate) fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The id and the tool name of each call in a history that has no result yet. Calls without ids and results without ids
/// are matched in order.
#[derive(Default)]
pub(crate) struct PendingCalls<'a>(Vec<(Option<&'a str>, &'a str)>);

impl<'a> PendingCalls<'a> {
    pub(crate) fn add(&mut self, id: &'a Value, name: &'a str) {
        self.0.push((id.as_str(), name));
    }

    /// Removes the call that the result with this id belongs to, and returns the name of the called tool. `None` if
    /// there is no such call.
    pub(crate) fn resolve(&mut self, id: &Value) -> Option<&'a str> {
        let at = self.0.iter().position(|(open, _)| *open == id.as_str())?;
        Some(self.0.remove(at).1)
    }

    /// Returns the ids of the calls that have no result yet, with `(none)` for a call without an id.
    pub(crate) fn ids(&self) -> Vec<&'a str> {
        self.0.iter().map(|(id, _)| id.unwrap_or("(none)")).collect()
    }
}
