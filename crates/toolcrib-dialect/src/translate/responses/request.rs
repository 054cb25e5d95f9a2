//! A request of Responses, made one of Chat Completions.

use toolcrib_text::json::{self, Fields};

use super::history::History;
use super::response::Echo;
use crate::translate::Untranslatable;
use crate::translate::ask::{
    Allowed, Among, Ask, Choice, Format, Function, GAP, Named, NamedSchema, Raw, Tool,
};
use crate::translate::foreign::{self, Dropped};

/// The fields that are translated.
const KNOWN: [&str; 13] = [
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

/// The fields that only OpenAI's own servers can honour, and that no answer could do without.
const KEPT: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

/// What the response will repeat, and what the model is asked.
pub(super) fn translate(body: &str, dropped: &mut Dropped) -> Result<(Echo, Ask), Untranslatable> {
    let fields = Fields::read(body).ok_or(Untranslatable::NotAnObject)?;
    for field in KEPT {
        if foreign::value(&fields, field).is_some() {
            return Err(Untranslatable::Kept(field));
        }
    }
    if foreign::flag(&fields, "background") == Some(true) {
        return Err(Untranslatable::Kept("background"));
    }
    for (key, raw) in fields.iter().filter(|(key, _)| !KNOWN.contains(key)) {
        if raw != "null" {
            dropped.note("field", key);
        }
    }
    let mut custom = Vec::new();
    let reasoning = foreign::object(&fields, "reasoning");
    let mut ask = Ask {
        model: Raw::of(&fields, "model"),
        max_tokens: Raw::of(&fields, "max_output_tokens"),
        temperature: Raw::of(&fields, "temperature"),
        top_p: Raw::of(&fields, "top_p"),
        reasoning_effort: reasoning.and_then(|reasoning| Raw::of(&reasoning, "effort")),
        response_format: foreign::object(&fields, "text")
            .and_then(|text| foreign::object(&text, "format"))
            .and_then(|format| response_format(&format)),
        stream: foreign::flag(&fields, "stream"),
        tools: tools(&fields, &mut custom, dropped),
        tool_choice: tool_choice(&fields, dropped),
        parallel_tool_calls: foreign::flag(&fields, "parallel_tool_calls"),
        ..Ask::default()
    };
    ask.set_user(foreign::text(&fields, "user"));
    let mut history = History::new(foreign::text(&fields, "instructions"));
    let input = fields.get("input").unwrap_or("[]");
    if let Some(text) = foreign::string(input) {
        history.user(text);
    }
    for raw in json::items(input).unwrap_or_default() {
        if let Some(item) = Fields::read(raw.get()) {
            history.item(&item, dropped)?;
        }
    }
    ask.messages = history.into_messages();
    Ok((Echo::of(&fields, custom), ask))
}

fn response_format(format: &Fields<'_>) -> Option<Format> {
    match foreign::text(format, "type")?.as_str() {
        "json_object" => Some(Format::JsonObject),
        "json_schema" => Some(Format::JsonSchema {
            json_schema: NamedSchema {
                name: foreign::text(format, "name").unwrap_or_else(|| "output".to_owned()),
                description: foreign::text(format, "description"),
                schema: Raw::of(format, "schema"),
                strict: foreign::flag(format, "strict"),
            },
        }),
        _ => None,
    }
}

/// The tools as functions; the names of those that take text instead of JSON go to `custom`.
fn tools(fields: &Fields<'_>, custom: &mut Vec<String>, dropped: &mut Dropped) -> Vec<Tool> {
    let mut tools = Vec::new();
    for raw in fields.get("tools").and_then(json::items).unwrap_or_default() {
        let Some(tool) = Fields::read(raw.get()) else { continue };
        let kind = foreign::text(&tool, "type").unwrap_or_default();
        let name = foreign::text(&tool, "name").unwrap_or_default();
        let description = foreign::text(&tool, "description");
        let function = match kind.as_str() {
            "function" => {
                let strict = foreign::flag(&tool, "strict") == Some(true);
                let parameters = Raw::of(&tool, "parameters");
                Function { name, description, parameters, strict }
            }
            "custom" => {
                custom.push(name.clone());
                let description = Some(explained(description, &tool));
                let parameters = Some(Raw::new(INPUT));
                Function { name, description, parameters, strict: false }
            }
            _ => {
                dropped.note("tool", if name.is_empty() { &kind } else { &name });
                continue;
            }
        };
        tools.push(Tool::Function { function });
    }
    tools
}

/// The one argument that stands for the text of a custom tool.
const INPUT: &str = r#"{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"],"additionalProperties":false}"#;

/// The description of a custom tool. No backend holds a model to its grammar, so the model must read it.
fn explained(description: Option<String>, tool: &Fields<'_>) -> String {
    let mut texts: Vec<String> = description.into_iter().collect();
    if let Some(format) = foreign::object(tool, "format")
        && let Some(grammar) = foreign::text(&format, "definition")
    {
        let syntax = foreign::text(&format, "syntax").unwrap_or_else(|| "formal".to_owned());
        texts.push(format!("The input must follow this {syntax} grammar:\n{grammar}"));
    }
    texts.join(GAP)
}

fn tool_choice(fields: &Fields<'_>, dropped: &mut Dropped) -> Option<Choice> {
    let raw = foreign::value(fields, "tool_choice")?;
    if let Some(word) = foreign::string(raw) {
        return self::word(&word).map(Choice::Word);
    }
    let choice = Fields::read(raw)?;
    let kind = foreign::text(&choice, "type").unwrap_or_default();
    match kind.as_str() {
        "function" | "custom" => {
            foreign::text(&choice, "name").map(|name| Choice::Named(Named::new(name)))
        }
        "allowed_tools" => {
            let mode = foreign::text(&choice, "mode").and_then(|mode| word(&mode));
            let tools = choice.get("tools").and_then(json::items).unwrap_or_default();
            let names = tools
                .into_iter()
                .filter_map(|raw| foreign::text(&Fields::read(raw.get())?, "name"))
                .map(Named::new);
            let allowed_tools = Among { mode: mode.unwrap_or("auto"), tools: names.collect() };
            Some(Choice::Some(Allowed::AllowedTools { allowed_tools }))
        }
        _ => {
            dropped.note("tool choice", &kind);
            None
        }
    }
}

fn word(word: &str) -> Option<&'static str> {
    ["auto", "none", "required"].into_iter().find(|known| *known == word)
}
