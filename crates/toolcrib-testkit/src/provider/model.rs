//! Decides how the scripted model replies to a request, by turning the actions of a script into calls and searches.

use serde_json::{Value, json};

use crate::provider::goal_script;
use crate::provider::parsed_request::{
    DeclaredTool, HistoryBlock, HistoryMessage, LoadState, NativeSearch, ParsedRequest, words,
};
use crate::provider::script::{Action, Script, Step, StopReason};

/// Maximum number of searches for one tool. The first uses the action's query, the second the tool's name.
const MAX_SEARCHES: usize = 2;

/// One message of the model, independent of the API.
#[derive(Debug, Default)]
pub(crate) struct ModelReply {
    pub(crate) blocks: Vec<ReplyBlock>,
    pub(crate) stop: StopReason,
}

#[derive(Debug)]
pub(crate) enum ReplyBlock {
    Thinking(String),
    Text(String),
    Call {
        name: String,
        namespace: Option<String>,
        arguments: Value,
    },
    /// A search that the provider runs. If `open`, its result follows only in the next response, because the message
    /// also has calls that the client must run first.
    HostedSearch {
        query: String,
        found: Vec<String>,
        open: bool,
    },
    /// The result of a hosted search that an earlier response left open.
    HostedSearchResult {
        id: String,
        found: Vec<String>,
    },
    /// A search that the client must run.
    ClientSearch {
        query: String,
    },
}

impl ModelReply {
    /// Whether the message has a call or a search that the client must run.
    pub(crate) fn calls(&self) -> bool {
        self.blocks
            .iter()
            .any(|block| matches!(block, ReplyBlock::Call { .. } | ReplyBlock::ClientSearch { .. }))
    }

    /// Returns the size of all content in bytes, from which the output tokens are computed.
    pub(crate) fn size(&self) -> usize {
        self.blocks
            .iter()
            .map(|block| match block {
                ReplyBlock::Thinking(text) | ReplyBlock::Text(text) => text.len(),
                ReplyBlock::Call { name, arguments, .. } => {
                    name.len() + arguments.to_string().len()
                }
                ReplyBlock::HostedSearch { query, .. } | ReplyBlock::ClientSearch { query } => {
                    query.len()
                }
                ReplyBlock::HostedSearchResult { .. } => 0,
            })
            .sum()
    }
}

/// Returns the next message of the model.
pub(crate) fn reply(request: &ParsedRequest, script: &Script) -> ModelReply {
    let mut reply = match script {
        Script::Steps(steps) => {
            let (done, rounds) = ParsedRequest::progress(&request.messages, request);
            play_next_step(request, steps, done, rounds)
        }
        Script::Goal => {
            let (steps, since) = goal_script::steps(request);
            let (done, rounds) = ParsedRequest::progress(&request.messages[since..], request);
            play_next_step(request, &steps, done, rounds)
        }
    };
    let late_results = request.messages.iter().filter_map(|message| match message {
        HistoryMessage::Model(said) => Some(said),
        HistoryMessage::User(_) | HistoryMessage::Results(_) => None,
    });
    let late_results = late_results.flatten().filter_map(|said| match said {
        HistoryBlock::HostedSearch { id, query, open: true } => {
            Some(ReplyBlock::HostedSearchResult { id: id.clone(), found: request.matches(query) })
        }
        _ => None,
    });
    reply.blocks.splice(0..0, late_results.collect::<Vec<_>>());
    reply
}

/// Plays the next step of the script. `done` is the number of steps already played, not counting steps that only
/// search. `rounds` is the number of search rounds after the last of these steps.
fn play_next_step(
    request: &ParsedRequest,
    steps: &[Step],
    done: usize,
    rounds: usize,
) -> ModelReply {
    let mut visible = 0;
    let mut before: Vec<&Step> = Vec::new();
    let mut current = None;
    for step in steps {
        if step.only_searches() {
            before.push(step);
        } else if visible == done {
            current = Some(step);
            break;
        } else {
            visible += 1;
            before.clear();
        }
    }
    let end = Step::new([Action::text("There is nothing left to do.")]);
    let step = current.unwrap_or(&end);
    if request.native_search == Some(NativeSearch::Hosted) {
        // A hosted search does not end the message, so the call that needs the found tool follows in the same response.
        let mut reply = ModelReply { blocks: Vec::new(), stop: step.stop };
        for action in before.iter().flat_map(|step| &step.actions) {
            perform_action(request, action, false, &mut reply.blocks);
        }
        play_step(request, step, 0, &mut reply);
        return reply;
    }
    if request.search().is_none() && request.native_search.is_none() {
        before.clear();
    }
    let mut reply = ModelReply { blocks: Vec::new(), stop: step.stop };
    if let Some(step) = before.get(rounds) {
        reply.stop = step.stop;
        reply.blocks.extend(step.preamble.clone().map(ReplyBlock::Text));
        for action in &step.actions {
            perform_action(request, action, false, &mut reply.blocks);
        }
    } else {
        play_step(request, step, rounds - before.len(), &mut reply);
    }
    reply
}

/// Performs all actions of a step. If the step needs tools that the model must find first, the model only searches for
/// these tools, unless the search is hosted or the model has already searched [`MAX_SEARCHES`] times.
fn play_step(request: &ParsedRequest, step: &Step, rounds: usize, reply: &mut ModelReply) {
    let hosted = request.native_search == Some(NativeSearch::Hosted);
    let missing: Vec<&Action> =
        step.actions.iter().filter(|action| must_search_for(request, action)).collect();
    if !hosted && !missing.is_empty() && rounds < MAX_SEARCHES {
        reply.stop = StopReason::Natural;
        if step.actions.iter().any(|action| matches!(action, Action::Thinking(_))) {
            reply
                .blocks
                .push(ReplyBlock::Thinking("A tool for this must be found first.".to_owned()));
        }
        reply.blocks.extend(step.preamble.clone().map(ReplyBlock::Text));
        for action in missing {
            let Action::Call { tool, query, .. } = action else { continue };
            let query = match query {
                _ if rounds > 0 => tool.clone(),
                Some(query) => query.clone(),
                None => words(tool).join(" "),
            };
            reply.blocks.push(search(request, &query));
        }
        return;
    }
    // If the step also has a call that needs no search, the hosted search of an `Action::Search` stays open until the
    // next response, as in Anthropic's API.
    let leave_open =
        step.actions.iter().any(|action| action.is_call() && !must_search_for(request, action));
    for action in &step.actions {
        perform_action(request, action, leave_open, &mut reply.blocks);
    }
}

/// Whether the tool of an action cannot be called yet, and the model can search for it.
fn must_search_for(request: &ParsedRequest, action: &Action) -> bool {
    match action {
        Action::Call { tool, arguments, .. } => {
            call_path(request, tool, arguments) == CallPath::Unknown && can_search(request)
        }
        _ => false,
    }
}

fn can_search(request: &ParsedRequest) -> bool {
    request.native_search.is_some() || request.search().is_some()
}

fn perform_action(
    request: &ParsedRequest,
    action: &Action,
    leave_open: bool,
    blocks: &mut Vec<ReplyBlock>,
) {
    match action {
        Action::Text(text) => blocks.push(ReplyBlock::Text(text.clone())),
        Action::Thinking(text) => blocks.push(ReplyBlock::Thinking(text.clone())),
        Action::ExactCall { tool, arguments } => blocks.push(ReplyBlock::Call {
            name: tool.clone(),
            namespace: None,
            arguments: arguments.clone(),
        }),
        Action::Search { query } if request.native_search == Some(NativeSearch::Hosted) => {
            blocks.push(ReplyBlock::HostedSearch {
                query: query.clone(),
                found: request.matches(query),
                open: leave_open,
            });
        }
        Action::Search { query } => {
            if can_search(request) {
                blocks.push(search(request, query));
            }
        }
        Action::Report(prefix) => {
            blocks.push(ReplyBlock::Text(format!("{prefix}{}", newest_results(request))));
        }
        Action::Call { tool, arguments, query } => {
            let arguments = if arguments.is_null() { json!({}) } else { arguments.clone() };
            let mut call_path = call_path(request, tool, &arguments);
            if call_path == CallPath::Unknown && request.native_search == Some(NativeSearch::Hosted)
            {
                let query = query.clone().unwrap_or_else(|| words(tool).join(" "));
                let found = request.matches(&query);
                if let Some(declared) =
                    request.declared(tool).filter(|declared| found.contains(&declared.name))
                {
                    call_path =
                        CallPath::Direct(declared.name.clone(), Some(namespace_of(declared)));
                }
                blocks.push(ReplyBlock::HostedSearch { query, found, open: false });
            }
            blocks.push(match call_path {
                CallPath::Direct(name, namespace) => {
                    ReplyBlock::Call { name, namespace, arguments }
                }
                CallPath::Bridge(bridge) => ReplyBlock::Call {
                    name: bridge,
                    namespace: None,
                    arguments: json!({"name": tool, "arguments": arguments}),
                },
                CallPath::Unknown => ReplyBlock::Text(format!("There is no such tool: {tool}")),
            });
        }
    }
}

fn search(request: &ParsedRequest, query: &str) -> ReplyBlock {
    match request.search() {
        Some(name) if request.native_search != Some(NativeSearch::Client) => ReplyBlock::Call {
            name: name.to_owned(),
            namespace: None,
            arguments: json!({"query": query}),
        },
        _ => ReplyBlock::ClientSearch { query: query.to_owned() },
    }
}

/// How a tool can be called.
#[derive(Debug, PartialEq)]
enum CallPath {
    Direct(String, Option<String>),
    Bridge(String),
    Unknown,
}

fn call_path(request: &ParsedRequest, tool: &str, arguments: &Value) -> CallPath {
    let found = request.was_found(tool);
    if let Some(declared) = request.declared(tool) {
        // If the call has arguments but the declared schema has no properties, the declaration is only a stub, and the
        // model must search for the tool.
        let has_no_arguments = arguments.as_object().is_none_or(serde_json::Map::is_empty);
        let is_callable = match declared.load {
            LoadState::Loaded => {
                declared.has_arguments || has_no_arguments || found || !can_search(request)
            }
            LoadState::Revealed => true,
            LoadState::Deferred => false,
        };
        if is_callable {
            let namespace = match declared.load {
                LoadState::Loaded => declared.namespace.clone(),
                _ => Some(namespace_of(declared)),
            };
            return CallPath::Direct(declared.name.clone(), namespace);
        }
    }
    match (found, request.bridge()) {
        (true, Some(bridge)) => CallPath::Bridge(bridge.to_owned()),
        (true, None) => CallPath::Direct(tool.to_owned(), None),
        (false, _) => CallPath::Unknown,
    }
}

/// Returns the namespace in which a found tool is called. In Responses, a found tool without a namespace uses its own
/// name as the namespace. Other APIs ignore the namespace.
fn namespace_of(found: &DeclaredTool) -> String {
    found.namespace.as_ref().unwrap_or(&found.name).clone()
}

/// Returns the text of the newest tool results, not counting the results of searches. Empty if there are no such
/// results.
fn newest_results(request: &ParsedRequest) -> String {
    let results = request.messages.iter().rev().find_map(|message| match message {
        HistoryMessage::Results(results) => {
            let texts: Vec<&str> = results
                .iter()
                .filter(|result| !request.is_search(&result.name))
                .map(|result| result.text.as_str())
                .collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        HistoryMessage::User(_) | HistoryMessage::Model(_) => None,
    });
    results.unwrap_or_default()
}
