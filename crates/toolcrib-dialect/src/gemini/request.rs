//! Reads a Gemini request.

use toolcrib_text::json::{self, Fields};

use super::content::{GeminiContent, GeminiPart, PartKind, get_either};
use crate::request::{
    HistoryBuilder, HistoryEntry, ParsedHistory, RequestOutline, RewriteBlockers, SegmentBuilder,
    Speaker, ToolChoice,
};
use crate::splice::range_of;

/// Reads the top-level fields of a body. The model and streaming are read from the path in `target`.
pub(super) fn read_outline<'a>(body: &Fields<'a>, target: &str) -> RequestOutline<'a> {
    // Without a model and a method in the path, this is not a request of this API, even if its body looks like one.
    let Some(operation) = parse_path(target) else { return RequestOutline::default() };
    let is_set = |value: Option<(&str, &str)>| value.is_some_and(|(_, raw)| raw != "null");
    let inner = |keys| get_either(body, keys).and_then(|(_, raw)| Fields::read(raw));
    let generation = inner(["generationConfig", "generation_config"]);
    let count =
        generation.as_ref().and_then(|it| get_either(it, ["candidateCount", "candidate_count"]));
    let calling = inner(["toolConfig", "tool_config"])
        .and_then(|it| get_either(&it, ["functionCallingConfig", "function_calling_config"]))
        .and_then(|(_, raw)| Fields::read(raw));
    let in_pieces = ["streamFunctionCallArguments", "stream_function_call_arguments"];
    let in_pieces = calling.as_ref().and_then(|it| get_either(it, in_pieces));
    RequestOutline {
        history: body.get("contents"),
        model: Some(operation.model),
        stream: operation.stream,
        choice: calling.as_ref().map_or(ToolChoice::Auto, choice),
        blockers: RewriteBlockers {
            json_array_stream: operation.stream && !operation.events,
            cached_content: is_set(get_either(body, ["cachedContent", "cached_content"])),
            multiple_choices: is_set(count.filter(|(_, count)| *count != "1")),
            streamed_arguments: in_pieces.is_some_and(|(_, it)| it == "true"),
            ..RewriteBlockers::default()
        },
        ..RequestOutline::default()
    }
}

/// Reads the conversation in a body.
pub(super) fn read_conversation(text: &str, contents: &str) -> Option<ParsedHistory> {
    let mut rows = HistoryBuilder::default();
    for entry in json::items(contents)? {
        let entry = entry.get();
        let content = GeminiContent::read(entry)?;
        let speaker = if content.is_model { Speaker::Model } else { Speaker::Client };
        let segment = rows.add(speaker, HistoryEntry::InBody(range_of(text, entry)));
        content
            .parts
            .iter()
            .filter_map(|part| GeminiPart::read(part))
            .for_each(|part| add_to_fingerprint(segment, part));
    }
    Some(rows.finish())
}

/// The operation that a path selects.
struct GeminiOperation {
    model: String,
    stream: bool,
    /// Whether the stream consists of server-sent events.
    events: bool,
}

fn parse_path(target: &str) -> Option<GeminiOperation> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (model, method) = path.rsplit('/').next()?.rsplit_once(':')?;
    let stream = match method {
        "generateContent" => false,
        "streamGenerateContent" => true,
        _ => return None,
    };
    let events = query.split('&').any(|pair| matches!(pair, "alt=sse" | "$alt=sse" | "%24alt=sse"));
    (!model.is_empty()).then(|| GeminiOperation { model: model.to_owned(), stream, events })
}

/// Adds a part to the fingerprint.
fn add_to_fingerprint(segment: &mut SegmentBuilder, part: GeminiPart<'_>) {
    match part.kind {
        PartKind::Text(text) => segment.fingerprint.text(&text),
        PartKind::Call(call) => {
            segment.call(call.id, call.name, call.args);
        }
        // The content of a result is not fingerprinted, because clients shorten old results.
        PartKind::Result(result) => {
            segment.fingerprint.call(result.id.as_deref(), &result.name, "");
        }
        PartKind::Thought(_) | PartKind::Other => {}
    }
}

/// Reads the tool choice from the function calling config.
fn choice(calling: &Fields<'_>) -> ToolChoice {
    let mode = calling.string("mode").unwrap_or_default();
    let allowed = get_either(calling, ["allowedFunctionNames", "allowed_function_names"]);
    let allowed: Vec<String> =
        allowed.and_then(|(_, raw)| serde_json::from_str(raw).ok()).unwrap_or_default();
    match mode.as_str() {
        "NONE" => ToolChoice::None,
        "ANY" | "VALIDATED" if !allowed.is_empty() => ToolChoice::Named(allowed),
        "ANY" => ToolChoice::Required,
        _ => ToolChoice::Auto,
    }
}
