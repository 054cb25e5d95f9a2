//! Translates the items of Responses to messages of Chat Completions.
//!
//! Responses has separate items for the model's text and its calls, but Chat Completions has them in one message.
//! Images in results must not come between a call and its results, so they are sent after the last result.
//!
//! Therefore text, calls and images are collected first. Text and calls are written before the client's next item, and
//! images before the next item that is not a result. What remains is written at the end of the request. So the
//! translation of a longer history begins with the translation of the shorter one.
//!
//! Reasoning is left out and not listed as dropped, because another model produced it.

use serde::Serialize;
use toolcrib_text::json::{self, Fields};

use crate::translate::Untranslatable;
use crate::translate::chat_request::{
    ChatToolResult, ContentPart, ImageUrl, RequestCall, RequestMessage, TEXT_SEPARATOR, UserContent,
};
use crate::translate::lenient::{self, DroppedContent};

/// Builds the Chat Completions messages from the items.
#[derive(Debug, Default)]
pub(super) struct MessageBuilder {
    messages: Vec<RequestMessage>,
    /// The system texts before the first message of any other role. They become one message, because many backends
    /// accept only one system message. `None` once this message is written.
    system: Option<Vec<String>>,
    /// The model's text that is not written yet.
    text: String,
    calls: Vec<RequestCall>,
    /// Images in tool results that are not written yet. They are sent after the results.
    result_images: Vec<ContentPart>,
}

/// The arguments of the function that replaces a custom tool.
#[derive(Serialize)]
struct CustomInput<'a> {
    input: &'a str,
}

impl MessageBuilder {
    pub(super) fn new(instructions: Option<String>) -> Self {
        let system = instructions.into_iter().filter(|text| !text.is_empty()).collect();
        Self { system: Some(system), ..Self::default() }
    }

    pub(super) fn into_messages(mut self) -> Vec<RequestMessage> {
        self.flush();
        self.messages
    }

    /// Adds a user message.
    pub(super) fn user(&mut self, text: String) {
        self.flush();
        self.messages.push(RequestMessage::User { content: UserContent::Text(text) });
    }

    /// Translates the next item of the history.
    pub(super) fn item(
        &mut self,
        item: &Fields<'_>,
        dropped: &mut DroppedContent,
    ) -> Result<(), Untranslatable> {
        let kind = lenient::text(item, "type").unwrap_or_else(|| "message".to_owned());
        let text = |key: &str| lenient::text(item, key).unwrap_or_default();
        match kind.as_str() {
            "message" => self.message(item, dropped),
            "function_call" => self.call(text("call_id"), text("name"), text("arguments")),
            "custom_tool_call" => {
                let input = CustomInput { input: &text("input") };
                let arguments = serde_json::to_string(&input).unwrap_or_default();
                self.call(text("call_id"), text("name"), arguments);
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.flush_assistant();
                let result = tool_result(item.get("output").unwrap_or("null"), dropped);
                let message = result.message(text("call_id"), false, &mut self.result_images);
                self.messages.push(message);
            }
            "reasoning" => {}
            "item_reference" => return Err(Untranslatable::NeedsServerState("item_reference")),
            _ => dropped.note("item", &kind),
        }
        Ok(())
    }

    fn message(&mut self, item: &Fields<'_>, dropped: &mut DroppedContent) {
        let mut parts = Vec::new();
        let content = item.get("content").unwrap_or("null");
        parts.extend(lenient::string(content).map(|text| ContentPart::Text { text }));
        each_part(content, |kind, part| add_content(kind, part, &mut parts, dropped));
        match lenient::text(item, "role").as_deref() {
            Some("assistant") => {
                self.flush_result_images();
                let texts: String = parts.into_iter().filter_map(into_text).collect();
                if !self.text.is_empty() && !texts.is_empty() {
                    self.text.push_str(TEXT_SEPARATOR);
                }
                self.text.push_str(&texts);
            }
            Some("system" | "developer") => {
                let texts: Vec<String> = parts.into_iter().filter_map(into_text).collect();
                match &mut self.system {
                    Some(system) => system.extend(texts),
                    None if texts.is_empty() => {}
                    None => {
                        self.flush();
                        self.messages
                            .push(RequestMessage::System { content: texts.join(TEXT_SEPARATOR) });
                    }
                }
            }
            _ => {
                self.flush();
                self.messages
                    .extend(UserContent::of(parts).map(|content| RequestMessage::User { content }));
            }
        }
    }

    fn call(&mut self, id: String, name: String, arguments: String) {
        self.flush_result_images();
        self.calls.push(RequestCall::new(id, name, arguments));
    }

    /// Writes the images of earlier tool results as one message. Must be called before anything other than a tool
    /// result is added.
    fn flush_result_images(&mut self) {
        self.flush_system();
        let result_images = std::mem::take(&mut self.result_images);
        self.messages
            .extend(UserContent::of(result_images).map(|content| RequestMessage::User { content }));
    }

    /// Writes the model's text and calls as one message. Must be called before anything from the client is added.
    fn flush_assistant(&mut self) {
        self.flush_system();
        let (text, tool_calls) = (std::mem::take(&mut self.text), std::mem::take(&mut self.calls));
        if !text.is_empty() || !tool_calls.is_empty() {
            let content = (!text.is_empty()).then_some(text);
            self.messages.push(RequestMessage::Assistant { content, tool_calls });
        }
    }

    fn flush(&mut self) {
        self.flush_assistant();
        self.flush_result_images();
    }

    /// Writes the system message. Must be called before the first message of any other role is added.
    fn flush_system(&mut self) {
        let system = self.system.take().unwrap_or_default();
        if !system.is_empty() {
            self.messages.push(RequestMessage::System { content: system.join(TEXT_SEPARATOR) });
        }
    }
}

fn each_part(content: &str, mut each: impl FnMut(&str, &Fields<'_>)) {
    for raw in json::items(content).unwrap_or_default() {
        if let Some(part) = Fields::read(raw.get()) {
            each(&lenient::text(&part, "type").unwrap_or_default(), &part);
        }
    }
}

fn tool_result(output: &str, dropped: &mut DroppedContent) -> ChatToolResult {
    let mut result = ChatToolResult::default();
    if let Some(text) = lenient::string(output) {
        result.text(text);
    } else if json::items(output).is_none() && output != "null" {
        // The output is neither text nor a list of parts. Some clients send an object, for example.
        result.text(json::compact(output).into_owned());
    }
    let mut parts = Vec::new();
    each_part(output, |kind, part| add_content(kind, part, &mut parts, dropped));
    for part in parts {
        match part {
            ContentPart::Text { text } => result.text(text),
            ContentPart::ImageUrl { image_url } => result.image(image_url),
        }
    }
    result
}

/// Translates a part of a message's content or of a tool result.
fn add_content(
    kind: &str,
    part: &Fields<'_>,
    out: &mut Vec<ContentPart>,
    dropped: &mut DroppedContent,
) {
    match kind {
        "input_text" | "output_text" | "text" => {
            out.extend(lenient::text(part, "text").map(|text| ContentPart::Text { text }));
        }
        "refusal" => {
            out.extend(lenient::text(part, "refusal").map(|text| ContentPart::Text { text }));
        }
        "input_image" => match lenient::text(part, "image_url") {
            Some(url) => {
                let detail = lenient::text(part, "detail");
                // Chat Completions supports only these values.
                let detail = detail.filter(|word| ["low", "high", "auto"].contains(&word.as_str()));
                out.push(ContentPart::ImageUrl { image_url: ImageUrl { url, detail } });
            }
            None => add_placeholder("image", out, dropped),
        },
        "input_file" => add_placeholder("file", out, dropped),
        _ => dropped.note("content", kind),
    }
}

/// Adds a text that tells the model that content is missing.
fn add_placeholder(what: &str, out: &mut Vec<ContentPart>, dropped: &mut DroppedContent) {
    dropped.note("content", what);
    out.push(ContentPart::Text { text: format!("(The {what} cannot be shown here.)") });
}

fn into_text(part: ContentPart) -> Option<String> {
    match part {
        ContentPart::Text { text } => Some(text),
        ContentPart::ImageUrl { .. } => None,
    }
}
