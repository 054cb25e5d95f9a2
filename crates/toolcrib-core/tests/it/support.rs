//! Small catalogs for tests, and short helpers to query them.

use serde_json::{Value, json};
use toolcrib_core::{
    CallOutcome, Catalog, Conversation, Crib, Limits, Refusal, Reply, Scope, SearchRequest,
    Settings, TurnContext,
};

/// A tool in our own format. Its server is the part of the name before `__`.
pub(crate) fn tool(name: &str, description: &str, schema: &Value) -> Value {
    let server = name.split_once("__").map_or("", |(server, _)| server);
    json!({"name": name, "description": description, "input_schema": schema, "server": server})
}

pub(crate) fn lines(tools: &[Value]) -> String {
    tools.iter().fold(String::new(), |text, tool| text + &tool.to_string() + "\n")
}

pub(crate) fn catalog(tools: &[Value]) -> Catalog {
    Catalog::from_json(Value::from(tools.to_vec()).to_string().as_bytes()).unwrap()
}

/// A schema with string properties. The first `required` of them are required.
pub(crate) fn strings(names: &[&str], required: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "required": names[..required]})
}

/// Eight tools on three servers. Some are so similar that a search could confuse them.
pub(crate) fn office() -> Vec<Value> {
    vec![
        tool(
            "github__create_issue",
            "Open a new issue in a repository.",
            &strings(&["repo", "title", "body"], 2),
        ),
        tool(
            "github__list_issues",
            "List the issues of a repository.",
            &strings(&["repo", "state"], 1),
        ),
        tool(
            "github__merge_pull_request",
            "Merge a pull request.",
            &strings(&["repo", "number"], 2),
        ),
        tool(
            "slack__post_message",
            "Post a message to a channel.",
            &strings(&["channel", "text"], 2),
        ),
        tool("slack__search_messages", "Search messages in all channels.", &strings(&["query"], 1)),
        tool(
            "mail__send",
            "Send an email to one or more people.",
            &strings(&["to", "subject", "body"], 2),
        ),
        tool(
            "mail__search_messages",
            "Find emails by sender, subject or text.",
            &strings(&["query"], 1),
        ),
        tool("mail__delete_message", "Move an email to the bin.", &strings(&["id"], 1)),
    ]
}

/// A crib in which deferral is always active.
pub(crate) fn crib(tools: &[Value]) -> Crib {
    crib_with(tools, "")
}

/// A crib with the given settings. Deferral is always active, unless the settings have a section `[activation]`.
pub(crate) fn crib_with(tools: &[Value], toml: &str) -> Crib {
    let on = if toml.contains("[activation]") { "" } else { "[activation]\nmode = 'on'\n" };
    Crib::new(catalog(tools), Settings::from_toml(&format!("{toml}\n{on}")).unwrap())
}

/// A conversation with a crib, by default with all tools in scope.
pub(crate) struct Chat<'a> {
    pub(crate) crib: &'a Crib,
    pub(crate) scope: Scope,
    pub(crate) conversation: Conversation,
}

impl<'a> Chat<'a> {
    pub(crate) fn new(crib: &'a Crib) -> Self {
        Self { crib, scope: Scope::all(crib.catalog()), conversation: Conversation::new() }
    }

    pub(crate) fn within(crib: &'a Crib, names: &[&str]) -> Self {
        let scope = Scope::named(crib.catalog(), names.iter().copied());
        Self { scope, ..Self::new(crib) }
    }

    pub(crate) fn search(&mut self, query: &str) -> Reply {
        self.ask(&SearchRequest::query(query))
    }

    pub(crate) fn ask(&mut self, ask: &SearchRequest) -> Reply {
        self.crib.search(&TurnContext::new(&self.scope), &mut self.conversation, ask)
    }

    pub(crate) fn call(&mut self, name: &str, input: &str) -> CallOutcome {
        self.crib.handle(&TurnContext::new(&self.scope), &mut self.conversation, name, input)
    }

    /// Makes a call that must run, and returns its name and arguments.
    pub(crate) fn runs(&mut self, name: &str, input: &str) -> (String, String) {
        match self.call(name, input) {
            CallOutcome::Run(call) => (call.name, call.arguments.get().to_owned()),
            other => panic!("{name} {input}: {other:?}"),
        }
    }

    pub(crate) fn refused(&mut self, name: &str, input: &str) -> Refusal {
        match self.call(name, input) {
            CallOutcome::Refused(refusal) => refusal,
            other => panic!("{name} {input}: {other:?}"),
        }
    }
}

pub(crate) fn names(reply: &Reply) -> Vec<&str> {
    reply.hits.iter().map(|hit| hit.name.as_str()).collect()
}

/// The default limits with some changes.
pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// The given settings with some changes.
pub(crate) fn changed(mut settings: Settings, change: impl FnOnce(&mut Settings)) -> Settings {
    change(&mut settings);
    settings
}
