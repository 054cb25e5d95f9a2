//! One request to one answer: checked, read, thought about, written.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::provider::anthropic;
use crate::provider::ask::{Ask, Turn as Past};
use crate::provider::dialect::{Dialect, Fault, Sheet, Written};
use crate::provider::ids::Ids;
use crate::provider::mind::{self, Emit, Reply};
use crate::provider::options::Options;
use crate::provider::record::Request;
use crate::provider::route::{Route, Shape};
use crate::provider::script::{Script, Stop};
use crate::provider::server::Shared;

/// The mark in the first user message that names a script.
const MARK: &str = "script:";

/// An answer, ready to be sent.
pub(crate) enum Turn {
    Whole { status: u16, body: Value },
    Events(Vec<Bytes>),
}

/// The answer to a request.
pub(crate) fn take(route: &Route, request: &Request, shared: &Shared) -> Turn {
    let answer = match serde_json::from_slice(&request.body) {
        Ok(body) => play(route, request, body, shared),
        Err(error) => {
            let message = format!("We could not parse the JSON body of your request: {error}");
            Err(Fault { status: 400, message })
        }
    };
    answer.unwrap_or_else(|fault| Turn::Whole {
        status: fault.status,
        body: route.dialect.error(fault.status, &fault.message),
    })
}

fn play(route: &Route, request: &Request, body: Value, shared: &Shared) -> Result<Turn, Fault> {
    let options = &shared.options;
    let dialect = route.dialect;
    let input = quarter(request.body.len());
    let whole = |body| Ok(Turn::Whole { status: 200, body });
    if route.shape == Shape::Count {
        if dialect == Dialect::Gemini {
            return whole(json!({"totalTokens": input}));
        }
        anthropic::check_count(&body, options)?;
        return whole(json!({"input_tokens": input}));
    }
    let body = if dialect == Dialect::Responses { shared.history.expand(body)? } else { body };
    dialect.check(&body, options)?;
    let mut ask = dialect.read(&body);
    let script = script(&ask, options);
    ask.owned = script.tools();
    let reply = match options.pace {
        // Texts are cut into nine characters each.
        Some(pace) => {
            Reply { emits: vec![Emit::Text("token by ".repeat(pace.deltas))], stop: Stop::Natural }
        }
        None => mind::reply(&ask, script),
    };
    let sheet = Sheet {
        request: &body,
        options,
        model: route.model(&body),
        ids: Ids::new(&request.body, &shared.counter),
        input,
        output: quarter(reply.size()),
        history: &shared.history,
    };
    let stream = match route.shape {
        Shape::Body => body["stream"] == true,
        Shape::Events | Shape::Array => true,
        Shape::Whole | Shape::Count => false,
    };
    match dialect.write(&reply, sheet, stream) {
        Written::Whole(body) => whole(body),
        Written::Events(events) if route.shape == Shape::Array => {
            let objects = events.iter().filter_map(|event| {
                serde_json::from_slice::<Value>(event.strip_prefix(b"data: ")?).ok()
            });
            whole(objects.collect())
        }
        Written::Events(events) => Ok(Turn::Events(events)),
    }
}

/// The script that the first user message names, or the one for all.
fn script<'a>(ask: &Ask, options: &'a Options) -> &'a Script {
    let first = ask.turns.iter().find_map(|turn| match turn {
        Past::User(text) => Some(text),
        Past::Model(_) | Past::Results(_) => None,
    });
    let name = first
        .and_then(|text| text.split_once(MARK))
        .and_then(|(_, rest)| rest.split_whitespace().next());
    name.and_then(|name| options.scripts.get(name)).unwrap_or(&options.script)
}

/// Tokens as this provider counts them: four bytes each, rounded up.
fn quarter(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}
