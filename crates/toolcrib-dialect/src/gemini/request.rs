//! A request of Gemini.

use toolcrib_core::json::{self, Fields};

use super::content::{Content, Kind, Part, either};
use crate::request::{Bypass, Choice, Entry, Read, Rows, Stretch, Who, place};

/// Reads a body, and where it was sent to.
pub(super) fn read(text: &str, target: &str) -> Result<Read, Bypass> {
    let (model, stream) = asked(target)?;
    let body = Fields::read(text).ok_or(Bypass::Malformed)?;
    if either(&body, ["cachedContent", "cached_content"]).is_some_and(|(_, raw)| raw != "null") {
        return Err(Bypass::CachedContent);
    }
    let contents = body.get("contents").ok_or(Bypass::Malformed)?;
    let entries = json::items(contents).ok_or(Bypass::Malformed)?;
    let tools = match body.get("tools").map(|tools| (tools, json::is_empty_list(tools))) {
        Some((tools, Some(false))) => tools,
        Some((tools, None)) if tools != "null" => return Err(Bypass::Malformed),
        _ => return Err(Bypass::NoTools),
    };
    let inner = |keys| either(&body, keys).and_then(|(_, raw)| Fields::read(raw));
    let generation = inner(["generationConfig", "generation_config"]);
    let count =
        generation.as_ref().and_then(|it| either(it, ["candidateCount", "candidate_count"]));
    if count.is_some_and(|(_, count)| count != "1" && count != "null") {
        return Err(Bypass::SeveralAnswers);
    }
    let calling = inner(["toolConfig", "tool_config"])
        .and_then(|it| either(&it, ["functionCallingConfig", "function_calling_config"]))
        .and_then(|(_, raw)| Fields::read(raw));
    let in_pieces = ["streamFunctionCallArguments", "stream_function_call_arguments"];
    if calling.as_ref().and_then(|it| either(it, in_pieces)).is_some_and(|(_, it)| it == "true") {
        return Err(Bypass::CallsInPieces);
    }
    let mut rows = Rows::default();
    for entry in entries {
        let entry = entry.get();
        let content = Content::read(entry).ok_or(Bypass::Malformed)?;
        let who = if content.by_model { Who::Model } else { Who::Client };
        let stretch = rows.add(who, Entry::At(place(text, entry)));
        content
            .parts
            .iter()
            .filter_map(|part| Part::read(part))
            .for_each(|part| print(stretch, part));
    }
    Ok(Read {
        model,
        stream,
        counts: false,
        choice: calling.as_ref().map_or(Choice::Auto, choice),
        tools: place(text, tools),
        history: place(text, contents),
        stretches: rows.done(),
        previous: None,
        keeps: false,
        defers: None,
    })
}

/// The model, and whether the answer is to come as events.
fn asked(target: &str) -> Result<(String, bool), Bypass> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let last = path.rsplit('/').next().unwrap_or_default();
    let stream = match last.rsplit_once(':') {
        Some((model, method)) if !model.is_empty() => match method {
            "generateContent" => (model, false),
            "streamGenerateContent" => (model, true),
            _ => return Err(Bypass::Malformed),
        },
        _ => return Err(Bypass::Malformed),
    };
    let events = query.split('&').any(|pair| matches!(pair, "alt=sse" | "$alt=sse" | "%24alt=sse"));
    if stream.1 && !events {
        return Err(Bypass::NoEvents);
    }
    Ok((stream.0.to_owned(), stream.1))
}

/// Adds what a part says to what its speaker says.
fn print(stretch: &mut Stretch, part: Part<'_>) {
    match part.kind {
        Kind::Text(text) => stretch.print.text(&text),
        Kind::Call(call) => {
            stretch.print.call(call.id.as_deref(), &call.name, call.args);
            stretch.calls.push(call.name);
        }
        // Of an answer only what it answers: clients shorten old ones.
        Kind::Answer(answer) => {
            stretch.print.call(answer.id.as_deref(), &answer.name, "");
        }
        Kind::Thought(_) | Kind::Other => {}
    }
}

/// What the function calling config says.
fn choice(calling: &Fields<'_>) -> Choice {
    let mode = calling.string("mode").unwrap_or_default();
    let allowed = either(calling, ["allowedFunctionNames", "allowed_function_names"]);
    let allowed: Vec<String> =
        allowed.and_then(|(_, raw)| serde_json::from_str(raw).ok()).unwrap_or_default();
    match mode.as_str() {
        "NONE" => Choice::None,
        "ANY" | "VALIDATED" if !allowed.is_empty() => Choice::Named(allowed),
        "ANY" => Choice::Required,
        _ => Choice::Auto,
    }
}
