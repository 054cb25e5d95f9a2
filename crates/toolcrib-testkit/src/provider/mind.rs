//! What the model says to a request: the one place that decides how an intent becomes calls.

use serde_json::{Value, json};

use crate::provider::ask::{Ask, Declared, Load, Native, Said, Turn, words};
use crate::provider::goal;
use crate::provider::script::{Say, Script, Step, Stop};

/// How often a tool is searched for: by the step's words, then by its name.
const ATTEMPTS: usize = 2;

/// One turn of the model, before it is written in a dialect.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) emits: Vec<Emit>,
    pub(crate) stop: Stop,
}

/// A block of the turn.
#[derive(Debug)]
pub(crate) enum Emit {
    Thinking(String),
    Text(String),
    Call {
        name: String,
        namespace: Option<String>,
        arguments: Value,
    },
    /// A hosted search. With calls beside it the result is kept for the next answer.
    Hosted {
        query: String,
        found: Vec<String>,
        open: bool,
    },
    /// The result of a hosted search of an earlier answer.
    Late {
        id: String,
        found: Vec<String>,
    },
    /// A search that the client is to run.
    Client {
        query: String,
    },
}

impl Reply {
    /// Whether the client has something to run.
    pub(crate) fn calls(&self) -> bool {
        self.emits.iter().any(|emit| matches!(emit, Emit::Call { .. } | Emit::Client { .. }))
    }

    /// Bytes of everything written, for the count of output tokens.
    pub(crate) fn size(&self) -> usize {
        self.emits
            .iter()
            .map(|emit| match emit {
                Emit::Thinking(text) | Emit::Text(text) => text.len(),
                Emit::Call { name, arguments, .. } => name.len() + arguments.to_string().len(),
                Emit::Hosted { query, .. } | Emit::Client { query } => query.len(),
                Emit::Late { .. } => 0,
            })
            .sum()
    }
}

/// The next turn of the model.
pub(crate) fn reply(ask: &Ask, script: &Script) -> Reply {
    let mut reply = match script {
        Script::Steps(steps) => {
            let (done, rounds) = Ask::progress(&ask.turns, ask);
            play(ask, steps, done, rounds)
        }
        Script::Goal => {
            let (steps, since) = goal::steps(ask);
            let (done, rounds) = Ask::progress(&ask.turns[since..], ask);
            play(ask, &steps, done, rounds)
        }
    };
    let late = ask.turns.iter().filter_map(|turn| match turn {
        Turn::Model(said) => Some(said),
        Turn::User(_) | Turn::Results(_) => None,
    });
    let late = late.flatten().filter_map(|said| match said {
        Said::Hosted { id, query, open: true } => {
            Some(Emit::Late { id: id.clone(), found: ask.matches(query) })
        }
        _ => None,
    });
    reply.emits.splice(0..0, late.collect::<Vec<_>>());
    reply
}

/// Plays the step that follows `done` others, after `rounds` of searching for it.
fn play(ask: &Ask, steps: &[Step], done: usize, rounds: usize) -> Reply {
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
    let end = Step::new([Say::text("There is nothing left to do.")]);
    let step = current.unwrap_or(&end);
    if ask.native == Some(Native::Hosted) {
        // A hosted search ends no turn: what it is for follows in the same answer.
        let mut reply = Reply { emits: Vec::new(), stop: step.stop };
        for say in before.iter().flat_map(|step| &step.says) {
            speak(ask, say, false, &mut reply.emits);
        }
        perform(ask, step, 0, &mut reply);
        return reply;
    }
    if ask.search().is_none() && ask.native.is_none() {
        before.clear();
    }
    let mut reply = Reply { emits: Vec::new(), stop: step.stop };
    if let Some(step) = before.get(rounds) {
        reply.stop = step.stop;
        reply.emits.extend(step.preamble.clone().map(Emit::Text));
        for say in &step.says {
            speak(ask, say, false, &mut reply.emits);
        }
    } else {
        perform(ask, step, rounds - before.len(), &mut reply);
    }
    reply
}

/// Says all of a step, or searches for what it lacks.
fn perform(ask: &Ask, step: &Step, rounds: usize, reply: &mut Reply) {
    let hosted = ask.native == Some(Native::Hosted);
    let missing: Vec<&Say> = step.says.iter().filter(|say| lacks(ask, say)).collect();
    if !hosted && !missing.is_empty() && rounds < ATTEMPTS {
        reply.stop = Stop::Natural;
        if step.says.iter().any(|say| matches!(say, Say::Thinking(_))) {
            reply.emits.push(Emit::Thinking("A tool for this must be found first.".to_owned()));
        }
        reply.emits.extend(step.preamble.clone().map(Emit::Text));
        for say in missing {
            let Say::Call { tool, query, .. } = say else { continue };
            let query = match query {
                _ if rounds > 0 => tool.clone(),
                Some(query) => query.clone(),
                None => words(tool).join(" "),
            };
            reply.emits.push(search(ask, &query));
        }
        return;
    }
    // A search beside a call that needs none stays open, as the hosted search of Anthropic does.
    let beside = step.says.iter().any(|say| say.is_call() && !lacks(ask, say));
    for say in &step.says {
        speak(ask, say, beside, &mut reply.emits);
    }
}

/// Whether a tool must be searched for, and can be.
fn lacks(ask: &Ask, say: &Say) -> bool {
    match say {
        Say::Call { tool, arguments, .. } => {
            place(ask, tool, arguments) == Place::Unknown && searches(ask)
        }
        _ => false,
    }
}

fn searches(ask: &Ask) -> bool {
    ask.native.is_some() || ask.search().is_some()
}

fn speak(ask: &Ask, say: &Say, beside: bool, emits: &mut Vec<Emit>) {
    match say {
        Say::Text(text) => emits.push(Emit::Text(text.clone())),
        Say::Thinking(text) => emits.push(Emit::Thinking(text.clone())),
        Say::Blind { tool, arguments } => emits.push(Emit::Call {
            name: tool.clone(),
            namespace: None,
            arguments: arguments.clone(),
        }),
        Say::Search { query } if ask.native == Some(Native::Hosted) => {
            emits.push(Emit::Hosted {
                query: query.clone(),
                found: ask.matches(query),
                open: beside,
            });
        }
        Say::Search { query } => {
            if searches(ask) {
                emits.push(search(ask, query));
            }
        }
        Say::Report(prefix) => emits.push(Emit::Text(format!("{prefix}{}", newest(ask)))),
        Say::Call { tool, arguments, query } => {
            let arguments = if arguments.is_null() { json!({}) } else { arguments.clone() };
            let mut place = place(ask, tool, &arguments);
            if place == Place::Unknown && ask.native == Some(Native::Hosted) {
                let query = query.clone().unwrap_or_else(|| words(tool).join(" "));
                let found = ask.matches(&query);
                if let Some(declared) =
                    ask.declared(tool).filter(|declared| found.contains(&declared.name))
                {
                    place = Place::Direct(declared.name.clone(), Some(space(declared)));
                }
                emits.push(Emit::Hosted { query, found, open: false });
            }
            emits.push(match place {
                Place::Direct(name, namespace) => Emit::Call { name, namespace, arguments },
                Place::Bridge(bridge) => Emit::Call {
                    name: bridge,
                    namespace: None,
                    arguments: json!({"name": tool, "arguments": arguments}),
                },
                Place::Unknown => Emit::Text(format!("There is no such tool: {tool}")),
            });
        }
    }
}

fn search(ask: &Ask, query: &str) -> Emit {
    match ask.search() {
        Some(name) if ask.native != Some(Native::Client) => Emit::Call {
            name: name.to_owned(),
            namespace: None,
            arguments: json!({"query": query}),
        },
        _ => Emit::Client { query: query.to_owned() },
    }
}

/// How a tool is reached.
#[derive(Debug, PartialEq)]
enum Place {
    Direct(String, Option<String>),
    Bridge(String),
    Unknown,
}

fn place(ask: &Ask, tool: &str, arguments: &Value) -> Place {
    let found = ask.mentioned(tool);
    if let Some(declared) = ask.declared(tool) {
        // A schema without arguments where arguments are wanted is a stub: its schema is looked up.
        let bare = arguments.as_object().is_none_or(serde_json::Map::is_empty);
        let callable = match declared.load {
            Load::Loaded => declared.shaped || bare || found || !searches(ask),
            Load::Revealed => true,
            Load::Deferred => false,
        };
        if callable {
            let namespace = match declared.load {
                Load::Loaded => declared.namespace.clone(),
                _ => Some(space(declared)),
            };
            return Place::Direct(declared.name.clone(), namespace);
        }
    }
    match (found, ask.bridge()) {
        (true, Some(bridge)) => Place::Bridge(bridge.to_owned()),
        (true, None) => Place::Direct(tool.to_owned(), None),
        (false, _) => Place::Unknown,
    }
}

/// Responses gives a found tool without a namespace its own name as one. Other dialects ignore it.
fn space(found: &Declared) -> String {
    found.namespace.as_ref().unwrap_or(&found.name).clone()
}

/// The newest results that are no answers to searches.
fn newest(ask: &Ask) -> String {
    let results = ask.turns.iter().rev().find_map(|turn| match turn {
        Turn::Results(outcomes) => {
            let texts: Vec<&str> = outcomes
                .iter()
                .filter(|outcome| !ask.is_search(&outcome.name))
                .map(|outcome| outcome.text.as_str())
                .collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        Turn::User(_) | Turn::Model(_) => None,
    });
    results.unwrap_or_default()
}
