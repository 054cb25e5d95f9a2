//! A request of Messages, made one of Chat Completions.
//!
//! Message by message, and none looks at another: so a history that grows at its end grows at its end
//! in translation too. Thinking is left out without a word, since the backend did not think it.

use toolcrib_text::json::{self, Fields};

use crate::translate::Untranslatable;
use crate::translate::ask::{
    Ask, Call, Choice, Content, Format, Function, GAP, ImageUrl, Message, Named, NamedSchema,
    Outcome, Part, Raw, Tool,
};
use crate::translate::foreign::{self, Dropped};

/// The fields that are translated.
const KNOWN: [&str; 13] = [
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

/// The model that is asked for, and what it is asked.
pub(super) fn translate(
    body: &str,
    dropped: &mut Dropped,
) -> Result<(String, Ask), Untranslatable> {
    let fields = Fields::read(body).ok_or(Untranslatable::NotAnObject)?;
    for (key, _) in fields.iter().filter(|(key, _)| !KNOWN.contains(key)) {
        dropped.note("field", key);
    }
    let mut ask = Ask {
        model: Raw::of(&fields, "model"),
        max_tokens: Raw::of(&fields, "max_tokens"),
        temperature: Raw::of(&fields, "temperature"),
        top_p: Raw::of(&fields, "top_p"),
        stop: foreign::value(&fields, "stop_sequences")
            .filter(|raw| json::items(raw).is_some_and(|stops| !stops.is_empty()))
            .map(Raw::new),
        response_format: format(&fields),
        stream: foreign::flag(&fields, "stream"),
        tools: tools(&fields, dropped),
        ..Ask::default()
    };
    if let Some(choice) = foreign::object(&fields, "tool_choice") {
        ask.tool_choice = tool_choice(&choice);
        let alone = foreign::flag(&choice, "disable_parallel_tool_use") == Some(true);
        ask.parallel_tool_calls = alone.then_some(false);
    }
    ask.set_user(foreign::object(&fields, "metadata").and_then(|of| foreign::text(&of, "user_id")));
    let system = fields.get("system").map(|raw| texts(raw, dropped)).unwrap_or_default();
    if !system.is_empty() {
        ask.messages.push(Message::System { content: system });
    }
    for raw in fields.get("messages").and_then(json::items).unwrap_or_default() {
        if let Some(message) = Fields::read(raw.get()) {
            translate_message(&message, &mut ask.messages, dropped);
        }
    }
    Ok((foreign::text(&fields, "model").unwrap_or_default(), ask))
}

fn format(fields: &Fields<'_>) -> Option<Format> {
    let within = foreign::object(fields, "output_config");
    let format = within.and_then(|config| foreign::object(&config, "format"));
    // What it was called while it was new.
    let format = format.or_else(|| foreign::object(fields, "output_format"))?;
    let schema = Raw::of(&format, "schema")?;
    let json_schema = NamedSchema {
        name: "output".to_owned(),
        description: None,
        schema: Some(schema),
        strict: Some(true),
    };
    Some(Format::JsonSchema { json_schema })
}

fn tools(fields: &Fields<'_>, dropped: &mut Dropped) -> Vec<Tool> {
    let mut tools = Vec::new();
    for raw in fields.get("tools").and_then(json::items).unwrap_or_default() {
        let Some(tool) = Fields::read(raw.get()) else { continue };
        let kind = foreign::text(&tool, "type").unwrap_or_else(|| "custom".to_owned());
        let name = foreign::text(&tool, "name").unwrap_or_default();
        let parameters = Raw::of(&tool, "input_schema");
        // Tools that Anthropic's servers run or know the schema of have none.
        if kind != "custom" && parameters.is_none() {
            dropped.note("tool", if name.is_empty() { &kind } else { &name });
            continue;
        }
        let description = foreign::text(&tool, "description");
        let strict = foreign::flag(&tool, "strict") == Some(true);
        tools.push(Tool::Function { function: Function { name, description, parameters, strict } });
    }
    tools
}

fn tool_choice(choice: &Fields<'_>) -> Option<Choice> {
    match foreign::text(choice, "type")?.as_str() {
        "auto" => Some(Choice::Word("auto")),
        "any" => Some(Choice::Word("required")),
        "none" => Some(Choice::Word("none")),
        "tool" => foreign::text(choice, "name").map(|name| Choice::Named(Named::new(name))),
        _ => None,
    }
}

fn translate_message(message: &Fields<'_>, out: &mut Vec<Message>, dropped: &mut Dropped) {
    let Some(content) = message.get("content") else { return };
    match foreign::text(message, "role").as_deref() {
        Some("assistant") => out.extend(assistant(content, dropped)),
        Some("system") => {
            let content = texts(content, dropped);
            if !content.is_empty() {
                out.push(Message::System { content });
            }
        }
        _ => user(content, out, dropped),
    }
}

/// The blocks of a content, each with its type. A string is one text block.
fn blocks(content: &str) -> Vec<(String, Fields<'_>)> {
    let items = json::items(content).unwrap_or_default().into_iter();
    let blocks = items.filter_map(|raw| Fields::read(raw.get()));
    blocks.map(|block| (foreign::text(&block, "type").unwrap_or_default(), block)).collect()
}

/// A content of which only the text counts.
fn texts(content: &str, dropped: &mut Dropped) -> String {
    if let Some(text) = foreign::string(content) {
        return text;
    }
    let mut texts = Vec::new();
    for (kind, block) in blocks(content) {
        match kind.as_str() {
            "text" => texts.extend(foreign::text(&block, "text")),
            _ => dropped.note("content", &kind),
        }
    }
    texts.join(GAP)
}

fn assistant(content: &str, dropped: &mut Dropped) -> Option<Message> {
    let mut text = foreign::string(content).unwrap_or_default();
    let mut tool_calls = Vec::new();
    // Neighbours are one text, cut where a citation begins; others are not.
    let mut apart = false;
    for (kind, block) in blocks(content) {
        match kind.as_str() {
            "text" => {
                let piece = foreign::text(&block, "text").unwrap_or_default();
                if apart && !text.is_empty() && !piece.is_empty() {
                    text.push_str(GAP);
                }
                text.push_str(&piece);
                apart = false;
                continue;
            }
            "tool_use" => tool_calls.push(Call::new(
                foreign::text(&block, "id").unwrap_or_default(),
                foreign::text(&block, "name").unwrap_or_default(),
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
    Some(Message::Assistant { content: (!text.is_empty()).then_some(text), tool_calls })
}

/// Results of calls, then whatever else the user says, in one message.
fn user(content: &str, out: &mut Vec<Message>, dropped: &mut Dropped) {
    let mut after = Vec::new();
    let mut said = Vec::new();
    said.extend(foreign::string(content).map(|text| Part::Text { text }));
    for (kind, block) in blocks(content) {
        if kind == "tool_result" {
            let id = foreign::text(&block, "tool_use_id").unwrap_or_default();
            let failed = foreign::flag(&block, "is_error") == Some(true);
            out.push(outcome(&block, dropped).message(id, failed, &mut after));
        } else {
            shown(&kind, &block, &mut said, dropped);
        }
    }
    after.append(&mut said);
    out.extend(Content::of(after).map(|content| Message::User { content }));
}

fn outcome(result: &Fields<'_>, dropped: &mut Dropped) -> Outcome {
    let mut outcome = Outcome::default();
    let content = result.get("content").unwrap_or("null");
    if let Some(text) = foreign::string(content) {
        outcome.text(text);
    }
    for (kind, block) in blocks(content) {
        let mut parts = Vec::new();
        shown(&kind, &block, &mut parts, dropped);
        for part in parts {
            match part {
                Part::Text { text } => outcome.text(text),
                Part::ImageUrl { image_url } => outcome.image(image_url),
            }
        }
    }
    outcome
}

/// What a user or a tool shows the model.
fn shown(kind: &str, block: &Fields<'_>, out: &mut Vec<Part>, dropped: &mut Dropped) {
    let mut say = |text: Option<String>| out.extend(text.map(|text| Part::Text { text }));
    match kind {
        "text" => say(foreign::text(block, "text")),
        "tool_reference" => {
            say(foreign::text(block, "tool_name").map(|name| format!("Tool {name} is loaded.")));
        }
        "search_result" => {
            say(foreign::text(block, "title"));
            say(foreign::text(block, "source"));
            within(block.get("content"), out, dropped);
        }
        "image" => match image(block) {
            Some(image_url) => out.push(Part::ImageUrl { image_url }),
            None => missing("image", out, dropped),
        },
        "document" => {
            say(foreign::text(block, "title"));
            let source = foreign::object(block, "source");
            let kind = source.as_ref().and_then(|source| foreign::text(source, "type"));
            match (kind.as_deref(), &source) {
                (Some("text"), Some(source)) => say(foreign::text(source, "data")),
                (Some("content"), Some(source)) => within(source.get("content"), out, dropped),
                _ => missing("document", out, dropped),
            }
        }
        _ => dropped.note("content", kind),
    }
}

/// The text and the images inside a block.
fn within(content: Option<&str>, out: &mut Vec<Part>, dropped: &mut Dropped) {
    let content = content.unwrap_or_default();
    out.extend(foreign::string(content).map(|text| Part::Text { text }));
    for (kind, block) in blocks(content) {
        match kind.as_str() {
            "text" | "image" => shown(&kind, &block, out, dropped),
            _ => dropped.note("content", &kind),
        }
    }
}

/// What the model would look for in vain: it is told so.
fn missing(what: &str, out: &mut Vec<Part>, dropped: &mut Dropped) {
    dropped.note("content", what);
    out.push(Part::Text { text: format!("(The {what} cannot be shown here.)") });
}

fn image(block: &Fields<'_>) -> Option<ImageUrl> {
    let source = foreign::object(block, "source")?;
    let url = match foreign::text(&source, "type")?.as_str() {
        "url" => foreign::text(&source, "url")?,
        "base64" => {
            let media = foreign::text(&source, "media_type")?;
            format!("data:{media};base64,{}", foreign::text(&source, "data")?)
        }
        _ => return None,
    };
    Some(ImageUrl { url, detail: None })
}
