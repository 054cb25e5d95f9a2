//! Translates a request of Messages to Chat Completions.
//!
//! Each message is translated independently, so the translation of a longer history begins with the translation of the
//! shorter one. Thinking blocks are left out and not listed as dropped, because another model produced them.

use toolcrib_text::json::{self, Fields};

use crate::translate::Untranslatable;
use crate::translate::chat_request::{
    ChatRequest, ChatResponseFormat, ChatToolChoice, ChatToolResult, ContentPart, FunctionChoice,
    FunctionDefinition, FunctionTool, ImageUrl, NamedSchema, RawJson, RequestCall, RequestMessage,
    TEXT_SEPARATOR, UserContent,
};
use crate::translate::lenient::{self, DroppedContent};

/// The fields of the client's request that are translated. All others are dropped.
const TRANSLATED_FIELDS: [&str; 13] = [
    "model",
    "messages",
    "system",
    "max_tokens",
    "stop_sequences",
    "temperature",
    "top_p",
    "metadata",
    "stream",
    "tools",
    "tool_choice",
    "output_config",
    "output_format",
];

/// Returns the requested model and the translated request.
pub(super) fn translate(
    body: &str,
    dropped: &mut DroppedContent,
) -> Result<(String, ChatRequest), Untranslatable> {
    let fields = Fields::read(body).ok_or(Untranslatable::NotAnObject)?;
    for (key, _) in fields.iter().filter(|(key, _)| !TRANSLATED_FIELDS.contains(key)) {
        dropped.note("field", key);
    }
    let mut request = ChatRequest {
        model: RawJson::of(&fields, "model"),
        max_tokens: RawJson::of(&fields, "max_tokens"),
        temperature: RawJson::of(&fields, "temperature"),
        top_p: RawJson::of(&fields, "top_p"),
        stop: lenient::value(&fields, "stop_sequences")
            .filter(|raw| json::items(raw).is_some_and(|stops| !stops.is_empty()))
            .map(RawJson::new),
        response_format: format(&fields),
        stream: lenient::flag(&fields, "stream"),
        tools: tools(&fields, dropped),
        ..ChatRequest::default()
    };
    if let Some(choice) = lenient::object(&fields, "tool_choice") {
        request.tool_choice = tool_choice(&choice);
        let alone = lenient::flag(&choice, "disable_parallel_tool_use") == Some(true);
        request.parallel_tool_calls = alone.then_some(false);
    }
    request.set_user(
        lenient::object(&fields, "metadata").and_then(|of| lenient::text(&of, "user_id")),
    );
    let system = fields.get("system").map(|raw| texts(raw, dropped)).unwrap_or_default();
    if !system.is_empty() {
        request.messages.push(RequestMessage::System { content: system });
    }
    for raw in fields.get("messages").and_then(json::items).unwrap_or_default() {
        if let Some(message) = Fields::read(raw.get()) {
            translate_message(&message, &mut request.messages, dropped);
        }
    }
    Ok((lenient::text(&fields, "model").unwrap_or_default(), request))
}

fn format(fields: &Fields<'_>) -> Option<ChatResponseFormat> {
    let within = lenient::object(fields, "output_config");
    let format = within.and_then(|config| lenient::object(&config, "format"));
    // `output_format` is the earlier name of `output_config.format`.
    let format = format.or_else(|| lenient::object(fields, "output_format"))?;
    let schema = RawJson::of(&format, "schema")?;
    let json_schema = NamedSchema {
        name: "output".to_owned(),
        description: None,
        schema: Some(schema),
        strict: Some(true),
    };
    Some(ChatResponseFormat::JsonSchema { json_schema })
}

fn tools(fields: &Fields<'_>, dropped: &mut DroppedContent) -> Vec<FunctionTool> {
    let mut tools = Vec::new();
    for raw in fields.get("tools").and_then(json::items).unwrap_or_default() {
        let Some(tool) = Fields::read(raw.get()) else { continue };
        let kind = lenient::text(&tool, "type").unwrap_or_else(|| "custom".to_owned());
        let name = lenient::text(&tool, "name").unwrap_or_default();
        let parameters = RawJson::of(&tool, "input_schema");
        // A tool has no schema if Anthropic runs it, or if Anthropic defines its schema. Such a tool cannot be
        // translated.
        if kind != "custom" && parameters.is_none() {
            dropped.note("tool", if name.is_empty() { &kind } else { &name });
            continue;
        }
        let description = lenient::text(&tool, "description");
        let strict = lenient::flag(&tool, "strict") == Some(true);
        tools.push(FunctionTool::Function {
            function: FunctionDefinition { name, description, parameters, strict },
        });
    }
    tools
}

fn tool_choice(choice: &Fields<'_>) -> Option<ChatToolChoice> {
    match lenient::text(choice, "type")?.as_str() {
        "auto" => Some(ChatToolChoice::Word("auto")),
        "any" => Some(ChatToolChoice::Word("required")),
        "none" => Some(ChatToolChoice::Word("none")),
        "tool" => lenient::text(choice, "name")
            .map(|name| ChatToolChoice::Named(FunctionChoice::new(name))),
        _ => None,
    }
}

fn translate_message(
    message: &Fields<'_>,
    out: &mut Vec<RequestMessage>,
    dropped: &mut DroppedContent,
) {
    let Some(content) = message.get("content") else { return };
    match lenient::text(message, "role").as_deref() {
        Some("assistant") => out.extend(assistant(content, dropped)),
        Some("system") => {
            let content = texts(content, dropped);
            if !content.is_empty() {
                out.push(RequestMessage::System { content });
            }
        }
        _ => user(content, out, dropped),
    }
}

/// Returns the blocks of a message's content, each with its type. Returns an empty list if the content is a string.
fn blocks(content: &str) -> Vec<(String, Fields<'_>)> {
    let items = json::items(content).unwrap_or_default().into_iter();
    let blocks = items.filter_map(|raw| Fields::read(raw.get()));
    blocks.map(|block| (lenient::text(&block, "type").unwrap_or_default(), block)).collect()
}

/// Returns the text of a message's content. Everything else is dropped.
fn texts(content: &str, dropped: &mut DroppedContent) -> String {
    if let Some(text) = lenient::string(content) {
        return text;
    }
    let mut texts = Vec::new();
    for (kind, block) in blocks(content) {
        match kind.as_str() {
            "text" => texts.extend(lenient::text(&block, "text")),
            _ => dropped.note("content", &kind),
        }
    }
    texts.join(TEXT_SEPARATOR)
}

fn assistant(content: &str, dropped: &mut DroppedContent) -> Option<RequestMessage> {
    let mut text = lenient::string(content).unwrap_or_default();
    let mut tool_calls = Vec::new();
    // Consecutive text blocks are one text that was split at citations. Text blocks with another block between them are
    // separate texts.
    let mut apart = false;
    for (kind, block) in blocks(content) {
        match kind.as_str() {
            "text" => {
                let piece = lenient::text(&block, "text").unwrap_or_default();
                if apart && !text.is_empty() && !piece.is_empty() {
                    text.push_str(TEXT_SEPARATOR);
                }
                text.push_str(&piece);
                apart = false;
                continue;
            }
            "tool_use" => tool_calls.push(RequestCall::new(
                lenient::text(&block, "id").unwrap_or_default(),
                lenient::text(&block, "name").unwrap_or_default(),
                block.get("input").unwrap_or("{}").to_owned(),
            )),
            "thinking" | "redacted_thinking" => {}
            _ => dropped.note("content", &kind),
        }
        apart = true;
    }
    if text.is_empty() && tool_calls.is_empty() {
        return None;
    }
    Some(RequestMessage::Assistant { content: (!text.is_empty()).then_some(text), tool_calls })
}

/// Translates a user message: adds one message for each result of a call, and then one message with the rest of the
/// content.
fn user(content: &str, out: &mut Vec<RequestMessage>, dropped: &mut DroppedContent) {
    let mut after = Vec::new();
    let mut parts = Vec::new();
    parts.extend(lenient::string(content).map(|text| ContentPart::Text { text }));
    for (kind, block) in blocks(content) {
        if kind == "tool_result" {
            let id = lenient::text(&block, "tool_use_id").unwrap_or_default();
            let failed = lenient::flag(&block, "is_error") == Some(true);
            out.push(tool_result(&block, dropped).message(id, failed, &mut after));
        } else {
            add_content(&kind, &block, &mut parts, dropped);
        }
    }
    after.append(&mut parts);
    out.extend(UserContent::of(after).map(|content| RequestMessage::User { content }));
}

fn tool_result(block: &Fields<'_>, dropped: &mut DroppedContent) -> ChatToolResult {
    let mut result = ChatToolResult::default();
    let content = block.get("content").unwrap_or("null");
    if let Some(text) = lenient::string(content) {
        result.text(text);
    }
    for (kind, block) in blocks(content) {
        let mut parts = Vec::new();
        add_content(&kind, &block, &mut parts, dropped);
        for part in parts {
            match part {
                ContentPart::Text { text } => result.text(text),
                ContentPart::ImageUrl { image_url } => result.image(image_url),
            }
        }
    }
    result
}

/// Translates a block of a user message or of a tool result.
fn add_content(
    kind: &str,
    block: &Fields<'_>,
    out: &mut Vec<ContentPart>,
    dropped: &mut DroppedContent,
) {
    let mut say = |text: Option<String>| out.extend(text.map(|text| ContentPart::Text { text }));
    match kind {
        "text" => say(lenient::text(block, "text")),
        "tool_reference" => {
            say(lenient::text(block, "tool_name").map(|name| format!("Tool {name} is loaded.")));
        }
        "search_result" => {
            say(lenient::text(block, "title"));
            say(lenient::text(block, "source"));
            add_nested(block.get("content"), out, dropped);
        }
        "image" => match image(block) {
            Some(image_url) => out.push(ContentPart::ImageUrl { image_url }),
            None => add_placeholder("image", out, dropped),
        },
        "document" => {
            say(lenient::text(block, "title"));
            let source = lenient::object(block, "source");
            let kind = source.as_ref().and_then(|source| lenient::text(source, "type"));
            match (kind.as_deref(), &source) {
                (Some("text"), Some(source)) => say(lenient::text(source, "data")),
                (Some("content"), Some(source)) => add_nested(source.get("content"), out, dropped),
                _ => add_placeholder("document", out, dropped),
            }
        }
        _ => dropped.note("content", kind),
    }
}

/// Translates the text and the images inside a block.
fn add_nested(content: Option<&str>, out: &mut Vec<ContentPart>, dropped: &mut DroppedContent) {
    let content = content.unwrap_or_default();
    out.extend(lenient::string(content).map(|text| ContentPart::Text { text }));
    for (kind, block) in blocks(content) {
        match kind.as_str() {
            "text" | "image" => add_content(&kind, &block, out, dropped),
            _ => dropped.note("content", &kind),
        }
    }
}

/// Adds a text that tells the model that content is missing.
fn add_placeholder(what: &str, out: &mut Vec<ContentPart>, dropped: &mut DroppedContent) {
    dropped.note("content", what);
    out.push(ContentPart::Text { text: format!("(The {what} cannot be shown here.)") });
}

fn image(block: &Fields<'_>) -> Option<ImageUrl> {
    let source = lenient::object(block, "source")?;
    let url = match lenient::text(&source, "type")?.as_str() {
        "url" => lenient::text(&source, "url")?,
        "base64" => {
            let media = lenient::text(&source, "media_type")?;
            format!("data:{media};base64,{}", lenient::text(&source, "data")?)
        }
        _ => return None,
    };
    Some(ImageUrl { url, detail: None })
}
