//! A request without its dialect: the tools that are offered and what was said so far.

use serde_json::Value;

/// What a request offers and asks.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) tools: Vec<Declared>,
    /// The provider's own search, where the request declares one.
    pub(crate) native: Option<Native>,
    pub(crate) turns: Vec<Turn>,
    /// Tools that the script itself uses: the client's, whatever they are called.
    pub(crate) owned: Vec<String>,
}

/// A search that is no plain function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Native {
    /// We search, within the answer.
    Hosted,
    /// The client searches (Responses, `execution: client`).
    Client,
}

/// One tool of the request.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) load: Load,
    /// Whether its schema names any argument; a stub's does not.
    pub(crate) shaped: bool,
    /// Name, description and arguments in lower case, for the hosted search.
    pub(crate) words: String,
}

/// Whether the model can call a tool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Load {
    /// In front of the model from the start.
    Loaded,
    /// Only to be found.
    Deferred,
    /// Found, by a reference or by a definition in the history.
    Revealed,
}

impl Declared {
    pub(crate) fn new(name: &str, description: &Value, schema: &Value, load: Load) -> Self {
        let properties = schema["properties"].as_object();
        Self {
            name: name.to_owned(),
            namespace: None,
            load,
            shaped: properties.is_some_and(|properties| !properties.is_empty()),
            words: format!("{name} {} {schema}", description.as_str().unwrap_or_default())
                .to_lowercase(),
        }
    }

    /// Whether the client would know this tool by `name`: its own, or flattened with its namespace.
    fn answers_to(&self, name: &str) -> bool {
        self.name == name
            || self.namespace.as_deref().and_then(|space| name.strip_prefix(space)).is_some_and(
                |rest| {
                    rest.trim_start_matches(['_', '.', '-', '/']) == self.name && rest != self.name
                },
            )
    }
}

/// One turn of the conversation.
#[derive(Debug)]
pub(crate) enum Turn {
    User(String),
    Model(Vec<Said>),
    Results(Vec<Outcome>),
}

/// What the model said, as far as it matters.
#[derive(Debug)]
pub(crate) enum Said {
    Text,
    Call(String),
    /// A hosted search; `open` where its result has not come yet.
    Hosted {
        id: String,
        query: String,
        open: bool,
    },
    /// A search that the client runs.
    Client,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Of the tool that was called.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Ask {
    pub(crate) fn user(&mut self, text: &str) {
        if let Some(Turn::User(last)) = self.turns.last_mut() {
            last.push('\n');
            last.push_str(text);
        } else {
            self.turns.push(Turn::User(text.to_owned()));
        }
    }

    pub(crate) fn model(&mut self, said: Said) {
        if let Some(Turn::Model(last)) = self.turns.last_mut() {
            last.push(said);
        } else {
            self.turns.push(Turn::Model(vec![said]));
        }
    }

    pub(crate) fn result(&mut self, name: &str, text: String) {
        let outcome = Outcome { name: name.to_owned(), text };
        if let Some(Turn::Results(last)) = self.turns.last_mut() {
            last.push(outcome);
        } else {
            self.turns.push(Turn::Results(vec![outcome]));
        }
    }

    pub(crate) fn declared(&self, name: &str) -> Option<&Declared> {
        let exact = self.tools.iter().find(|tool| tool.name == name && tool.load != Load::Deferred);
        exact.or_else(|| self.tools.iter().rev().find(|tool| tool.answers_to(name)))
    }

    /// The function that searches. A client may own a `tool_search` itself; then Toolcrib's tools go
    /// by their second names.
    pub(crate) fn search(&self) -> Option<&str> {
        self.added("crib_search", "tool_search")
    }

    /// The function that calls any other.
    pub(crate) fn bridge(&self) -> Option<&str> {
        self.added("crib_call", "tool_call")
    }

    fn added(&self, second: &str, first: &str) -> Option<&str> {
        let names = || self.tools.iter().map(|tool| tool.name.as_str());
        let first = || {
            names()
                .filter(|name| !self.owned.iter().any(|own| own == name))
                .find(|name| name.ends_with(first))
        };
        names().find(|name| *name == second).or_else(first)
    }

    /// Whether a call by this name is part of finding a tool, and not of using one.
    pub(crate) fn is_search(&self, name: &str) -> bool {
        let others = ["tool_describe", "crib_describe", "tool_search_regex", "crib_search_regex"];
        // The API's own search has no name; its results go by this one.
        let native = self.native == Some(Native::Client) && name == "tool_search";
        native || self.search() == Some(name) || others.iter().any(|other| name.ends_with(other))
    }

    /// Whether a search has answered with this tool.
    pub(crate) fn mentioned(&self, tool: &str) -> bool {
        self.turns.iter().any(|turn| match turn {
            Turn::Results(outcomes) => outcomes
                .iter()
                .any(|outcome| self.is_search(&outcome.name) && names(&outcome.text, tool)),
            Turn::User(_) | Turn::Model(_) => false,
        })
    }

    /// Turns of the model that count as steps, and rounds of searching since the last of them.
    pub(crate) fn progress(turns: &[Turn], ask: &Self) -> (usize, usize) {
        let mut steps = 0;
        let mut rounds = 0;
        for turn in turns {
            if let Turn::Model(said) = turn {
                if ask.is_round(said) {
                    rounds += 1;
                } else {
                    steps += 1;
                    rounds = 0;
                }
            }
        }
        (steps, rounds)
    }

    fn is_round(&self, said: &[Said]) -> bool {
        let mut searches = false;
        for said in said {
            match said {
                Said::Client => searches = true,
                Said::Call(name) if self.is_search(name) => searches = true,
                Said::Call(_) | Said::Hosted { .. } => return false,
                Said::Text => {}
            }
        }
        searches
    }

    /// Deferred tools that share a word with the query, best first, at most five.
    pub(crate) fn matches(&self, query: &str) -> Vec<String> {
        let wanted: Vec<String> = words(query);
        let mut hits: Vec<(usize, &str)> = self
            .tools
            .iter()
            .filter(|tool| tool.load != Load::Loaded)
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

/// The words of a name or a query.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether a text has this name as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + name.len()..].chars().next().is_some_and(part)
    })
}

/// The text of content that is a string or a list of parts.
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

/// The calls of a history that wait for their results, by id. A call and its result may both have none: then
/// their order tells which belong together.
#[derive(Default)]
pub(crate) struct Open<'a>(Vec<(Option<&'a str>, &'a str)>);

impl<'a> Open<'a> {
    /// A call of the tool of this name.
    pub(crate) fn call(&mut self, id: &'a Value, name: &'a str) {
        self.0.push((id.as_str(), name));
    }

    /// The tool that a result is from; `None` if it answers no call.
    pub(crate) fn answer(&mut self, id: &Value) -> Option<&'a str> {
        let at = self.0.iter().position(|(open, _)| *open == id.as_str())?;
        Some(self.0.remove(at).1)
    }

    /// The ids of the calls that have no result yet.
    pub(crate) fn ids(&self) -> Vec<&'a str> {
        self.0.iter().map(|(id, _)| id.unwrap_or("(none)")).collect()
    }
}
