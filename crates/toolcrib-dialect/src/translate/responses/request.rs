//! Translates a request of Responses to Chat Completions.

use toolcrib_text::json::{self, Fields};

use super::history::MessageBuilder;
use super::response::RequestEcho;
use crate::translate::Untranslatable;
use crate::translate::chat_request::{
    AllowedTools, AllowedToolsChoice, ChatRequest, ChatResponseFormat, ChatToolChoice,
    FunctionChoice, FunctionDefinition, FunctionTool, NamedSchema, RawJson, TEXT_SEPARATOR,
};
use crate::translate::lenient::{self, DroppedContent};

/// The fields of the client's request that are translated. All others are dropped.
const TRANSLATED_FIELDS: [&str; 13] = [
    "model",
    "input",
    "instructions",
    "max_output_tokens",
    "temperature",
    "top_p",
    "reasoning",
    "user",
    "text",
    "stream",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
];

/// Fields that refer to state on OpenAI's servers. A request with such a field cannot be answered without that state.
const STATEFUL_FIELDS: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

/// Translates a request. Also returns the parts of the request that the response must repeat.
pub(super) fn translate(
    body: &str,
    dropped: &mut DroppedContent,
) -> Result<(RequestEcho, ChatRequest), Untranslatable> {
    let fields = Fields::read(body).ok_or(Untranslatable::NotAnObject)?;
    for field in STATEFUL_FIELDS {
        if lenient::value(&fields, field).is_some() {
            return Err(Untranslatable::NeedsServerState(field));
        }
    }
    if lenient::flag(&fields, "background") == Some(true) {
        return Err(Untranslatable::NeedsServerState("background"));
    }
    for (key, raw) in fields.iter().filter(|(key, _)| !TRANSLATED_FIELDS.contains(key)) {
        if raw != "null" {
            dropped.note("field", key);
        }
    }
    let mut custom = Vec::new();
    let reasoning = lenient::object(&fields, "reasoning");
    let mut request = ChatRequest {
        model: RawJson::of(&fields, "model"),
        max_tokens: RawJson::of(&fields, "max_output_tokens"),
        temperature: RawJson::of(&fields, "temperature"),
        top_p: RawJson::of(&fields, "top_p"),
        reasoning_effort: reasoning.and_then(|reasoning| RawJson::of(&reasoning, "effort")),
        response_format: lenient::object(&fields, "text")
            .and_then(|text| lenient::object(&text, "format"))
            .and_then(|format| response_format(&format)),
        stream: lenient::flag(&fields, "stream"),
        tools: tools(&fields, &mut custom, dropped),
        tool_choice: tool_choice(&fields, dropped),
        parallel_tool_calls: lenient::flag(&fields, "parallel_tool_calls"),
        ..ChatRequest::default()
    };
    request.set_user(lenient::text(&fields, "user"));
    let mut history = MessageBuilder::new(lenient::text(&fields, "instructions"));
    let input = fields.get("input").unwrap_or("[]");
    if let Some(text) = lenient::string(input) {
        history.user(text);
    }
    for raw in json::items(input).unwrap_or_default() {
        if let Some(item) = Fields::read(raw.get()) {
            history.item(&item, dropped)?;
        }
    }
    request.messages = history.into_messages();
    Ok((RequestEcho::new(&fields, custom), request))
}

fn response_format(format: &Fields<'_>) -> Option<ChatResponseFormat> {
    match lenient::text(format, "type")?.as_str() {
        "json_object" => Some(ChatResponseFormat::JsonObject),
        "json_schema" => Some(ChatResponseFormat::JsonSchema {
            json_schema: NamedSchema {
                name: lenient::text(format, "name").unwrap_or_else(|| "output".to_owned()),
                description: lenient::text(format, "description"),
                schema: RawJson::of(format, "schema"),
                strict: lenient::flag(format, "strict"),
            },
        }),
        _ => None,
    }
}

/// Returns the tools as functions. Custom tools take text instead of JSON; their names are added to `custom`.
fn tools(
    fields: &Fields<'_>,
    custom: &mut Vec<String>,
    dropped: &mut DroppedContent,
) -> Vec<FunctionTool> {
    let mut tools = Vec::new();
    for raw in fields.get("tools").and_then(json::items).unwrap_or_default() {
        let Some(tool) = Fields::read(raw.get()) else { continue };
        let kind = lenient::text(&tool, "type").unwrap_or_default();
        let name = lenient::text(&tool, "name").unwrap_or_default();
        let description = lenient::text(&tool, "description");
        let function = match kind.as_str() {
            "function" => {
                let strict = lenient::flag(&tool, "strict") == Some(true);
                let parameters = RawJson::of(&tool, "parameters");
                FunctionDefinition { name, description, parameters, strict }
            }
            "custom" => {
                custom.push(name.clone());
                let description = Some(custom_description(description, &tool));
                let parameters = Some(RawJson::new(INPUT_SCHEMA));
                FunctionDefinition { name, description, parameters, strict: false }
            }
            _ => {
                dropped.note("tool", if name.is_empty() { &kind } else { &name });
                continue;
            }
        };
        tools.push(FunctionTool::Function { function });
    }
    tools
}

/// The schema of the function that replaces a custom tool. Its only argument is the input of the custom tool.
const INPUT_SCHEMA: &str = r#"{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"],"additionalProperties":false}"#;

/// Returns the description of the function that replaces a custom tool. It includes the tool's grammar. No backend
/// enforces the grammar, but the model can follow it.
fn custom_description(description: Option<String>, tool: &Fields<'_>) -> String {
    let mut texts: Vec<String> = description.into_iter().collect();
    if let Some(format) = lenient::object(tool, "format")
        && let Some(grammar) = lenient::text(&format, "definition")
    {
        let syntax = lenient::text(&format, "syntax").unwrap_or_else(|| "formal".to_owned());
        texts.push(format!("The input must follow this {syntax} grammar:\n{grammar}"));
    }
    texts.join(TEXT_SEPARATOR)
}

fn tool_choice(fields: &Fields<'_>, dropped: &mut DroppedContent) -> Option<ChatToolChoice> {
    let raw = lenient::value(fields, "tool_choice")?;
    if let Some(word) = lenient::string(raw) {
        return choice_word(&word).map(ChatToolChoice::Word);
    }
    let choice = Fields::read(raw)?;
    let kind = lenient::text(&choice, "type").unwrap_or_default();
    match kind.as_str() {
        "function" | "custom" => lenient::text(&choice, "name")
            .map(|name| ChatToolChoice::Named(FunctionChoice::new(name))),
        "allowed_tools" => {
            let mode = lenient::text(&choice, "mode").and_then(|mode| choice_word(&mode));
            let tools = choice.get("tools").and_then(json::items).unwrap_or_default();
            let names = tools
                .into_iter()
                .filter_map(|raw| lenient::text(&Fields::read(raw.get())?, "name"))
                .map(FunctionChoice::new);
            let allowed_tools =
                AllowedTools { mode: mode.unwrap_or("auto"), tools: names.collect() };
            Some(ChatToolChoice::Some(AllowedToolsChoice::AllowedTools { allowed_tools }))
        }
        _ => {
            dropped.note("tool choice", &kind);
            None
        }
    }
}

fn choice_word(word: &str) -> Option<&'static str> {
    ["auto", "none", "required"].into_iter().find(|known| *known == word)
}
