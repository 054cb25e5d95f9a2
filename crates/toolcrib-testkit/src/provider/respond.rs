//! Answers a request as the script says: checks and reads the request, asks the model for a reply, and writes the
//! response.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::provider::anthropic;
use crate::provider::dialect::{ApiError, Dialect, ResponseBody, ResponseContext};
use crate::provider::ids::Ids;
use crate::provider::model::{self, ModelReply, ReplyBlock};
use crate::provider::options::Options;
use crate::provider::parsed_request::{HistoryMessage, ParsedRequest};
use crate::provider::received_request::ReceivedRequest;
use crate::provider::route::{ResponseFormat, Route};
use crate::provider::script::{Script, StopReason};
use crate::provider::server::Shared;

/// The text before the name of a script in the first user message.
const SCRIPT_MARK: &str = "script:";

pub(crate) enum ScriptedResponse {
    Json { status: u16, body: Value },
    Events(Vec<Bytes>),
}

pub(crate) fn respond(
    route: &Route,
    request: &ReceivedRequest,
    shared: &Shared,
) -> ScriptedResponse {
    let response = match serde_json::from_slice(&request.body) {
        Ok(body) => respond_by_script(route, request, body, shared),
        Err(error) => {
            let message = format!("We could not parse the JSON body of your request: {error}");
            Err(ApiError { status: 400, message })
        }
    };
    response.unwrap_or_else(|error| ScriptedResponse::Json {
        status: error.status,
        body: route.dialect.error(error.status, &error.message),
    })
}

fn respond_by_script(
    route: &Route,
    request: &ReceivedRequest,
    body: Value,
    shared: &Shared,
) -> Result<ScriptedResponse, ApiError> {
    let options = &shared.options;
    let dialect = route.dialect;
    let input = estimate_tokens(request.body.len());
    let json = |body| Ok(ScriptedResponse::Json { status: 200, body });
    if route.format == ResponseFormat::Count {
        if dialect == Dialect::Gemini {
            return json(json!({"totalTokens": input}));
        }
        anthropic::check_count(&body, options)?;
        return json(json!({"input_tokens": input}));
    }
    let body = if dialect == Dialect::Responses { shared.history.expand(body)? } else { body };
    dialect.check(&body, options)?;
    let mut parsed = dialect.read(&body);
    let script = script(&parsed, options);
    parsed.client_tools = script.tools();
    let reply = match options.pace {
        // Text is streamed in pieces of nine characters, so each repetition is one delta.
        Some(pace) => ModelReply {
            blocks: vec![ReplyBlock::Text("token by ".repeat(pace.deltas))],
            stop: StopReason::Natural,
        },
        None => model::reply(&parsed, script),
    };
    let context = ResponseContext {
        request: &body,
        options,
        model: route.model(&body),
        ids: Ids::new(&request.body, &shared.counter),
        input,
        output: estimate_tokens(reply.size()),
        history: &shared.history,
    };
    let stream = match route.format {
        ResponseFormat::Body => body["stream"] == true,
        ResponseFormat::Events | ResponseFormat::Array => true,
        ResponseFormat::Whole | ResponseFormat::Count => false,
    };
    match dialect.write(&reply, context, stream) {
        ResponseBody::Json(body) => json(body),
        ResponseBody::Events(events) if route.format == ResponseFormat::Array => {
            let objects = events.iter().filter_map(|event| {
                serde_json::from_slice::<Value>(event.strip_prefix(b"data: ")?).ok()
            });
            json(objects.collect())
        }
        ResponseBody::Events(events) => Ok(ScriptedResponse::Events(events)),
    }
}

/// Returns the script that the first user message names, or the default script.
fn script<'a>(parsed: &ParsedRequest, options: &'a Options) -> &'a Script {
    let first = parsed.messages.iter().find_map(|message| match message {
        HistoryMessage::User(text) => Some(text),
        HistoryMessage::Model(_) | HistoryMessage::Results(_) => None,
    });
    let name = first
        .and_then(|text| text.split_once(SCRIPT_MARK))
        .and_then(|(_, rest)| rest.split_whitespace().next());
    name.and_then(|name| options.scripts.get(name)).unwrap_or(&options.script)
}

/// Estimates the number of tokens as one per four bytes, rounded up.
fn estimate_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}
