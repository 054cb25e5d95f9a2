//! The items of Responses, made messages of Chat Completions.
//!
//! Responses spreads over several items what Chat Completions has in one message: the model's text and
//! its calls. And what must not stand between a call and its result, such as an image of another
//! result, waits until the last of the results is there. Both end where the other side begins to
//! speak, which is where every request ends too: so a history that grows at its end grows at its end in
//! translation. Reasoning is left out without a word, since the backend did not reason it.

use serde::Serialize;
use toolcrib_text::json::{self, Fields};

use crate::translate::Untranslatable;
use crate::translate::ask::{Call, Content, GAP, ImageUrl, Message, Outcome, Part};
use crate::translate::foreign::{self, Dropped};

/// Messages, as they are put together.
#[derive(Debug, Default)]
pub(super) struct History {
    done: Vec<Message>,
    /// What comes before anybody speaks: one message, since many backends take no second.
    system: Option<Vec<String>>,
    /// What the model is saying.
    text: String,
    calls: Vec<Call>,
    /// What follows the results.
    after: Vec<Part>,
}

/// The arguments of a function that stands for a custom tool.
#[derive(Serialize)]
struct Input<'a> {
    input: &'a str,
}

impl History {
    pub(super) fn new(instructions: Option<String>) -> Self {
        let system = instructions.into_iter().filter(|text| !text.is_empty()).collect();
        Self { system: Some(system), ..Self::default() }
    }

    pub(super) fn into_messages(mut self) -> Vec<Message> {
        self.settle();
        self.done
    }

    /// The user says a text.
    pub(super) fn user(&mut self, text: String) {
        self.settle();
        self.done.push(Message::User { content: Content::Text(text) });
    }

    /// Takes the next item.
    pub(super) fn item(
        &mut self,
        item: &Fields<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let kind = foreign::text(item, "type").unwrap_or_else(|| "message".to_owned());
        let text = |key: &str| foreign::text(item, key).unwrap_or_default();
        match kind.as_str() {
            "message" => self.message(item, dropped),
            "function_call" => self.call(text("call_id"), text("name"), text("arguments")),
            "custom_tool_call" => {
                let input = Input { input: &text("input") };
                let arguments = serde_json::to_string(&input).unwrap_or_default();
                self.call(text("call_id"), text("name"), arguments);
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.spoken();
                let outcome = outcome(item.get("output").unwrap_or("null"), dropped);
                let message = outcome.message(text("call_id"), false, &mut self.after);
                self.done.push(message);
            }
            "reasoning" => {}
            "item_reference" => return Err(Untranslatable::Kept("item_reference")),
            _ => dropped.note("item", &kind),
        }
        Ok(())
    }

    fn message(&mut self, item: &Fields<'_>, dropped: &mut Dropped) {
        let mut parts = Vec::new();
        let content = item.get("content").unwrap_or("null");
        parts.extend(foreign::string(content).map(|text| Part::Text { text }));
        each_part(content, |kind, part| shown(kind, part, &mut parts, dropped));
        match foreign::text(item, "role").as_deref() {
            Some("assistant") => {
                self.answered();
                let said: String = parts.into_iter().filter_map(into_text).collect();
                if !self.text.is_empty() && !said.is_empty() {
                    self.text.push_str(GAP);
                }
                self.text.push_str(&said);
            }
            Some("system" | "developer") => {
                let said: Vec<String> = parts.into_iter().filter_map(into_text).collect();
                match &mut self.system {
                    Some(system) => system.extend(said),
                    None if said.is_empty() => {}
                    None => {
                        self.settle();
                        self.done.push(Message::System { content: said.join(GAP) });
                    }
                }
            }
            _ => {
                self.settle();
                self.done.extend(Content::of(parts).map(|content| Message::User { content }));
            }
        }
    }

    fn call(&mut self, id: String, name: String, arguments: String) {
        self.answered();
        self.calls.push(Call::new(id, name, arguments));
    }

    /// The model has the word: what was to follow the results stands before it.
    fn answered(&mut self) {
        self.led();
        let after = std::mem::take(&mut self.after);
        self.done.extend(Content::of(after).map(|content| Message::User { content }));
    }

    /// The client has the word: what the model said is one message.
    fn spoken(&mut self) {
        self.led();
        let (text, tool_calls) = (std::mem::take(&mut self.text), std::mem::take(&mut self.calls));
        if !text.is_empty() || !tool_calls.is_empty() {
            let content = (!text.is_empty()).then_some(text);
            self.done.push(Message::Assistant { content, tool_calls });
        }
    }

    fn settle(&mut self) {
        self.spoken();
        self.answered();
    }

    /// Somebody has the word for the first time.
    fn led(&mut self) {
        let system = self.system.take().unwrap_or_default();
        if !system.is_empty() {
            self.done.push(Message::System { content: system.join(GAP) });
        }
    }
}

fn each_part(content: &str, mut each: impl FnMut(&str, &Fields<'_>)) {
    for raw in json::items(content).unwrap_or_default() {
        if let Some(part) = Fields::read(raw.get()) {
            each(&foreign::text(&part, "type").unwrap_or_default(), &part);
        }
    }
}

fn outcome(output: &str, dropped: &mut Dropped) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(text) = foreign::string(output) {
        outcome.text(text);
    } else if json::items(output).is_none() && output != "null" {
        // Neither text nor parts: an object, as some clients send it.
        outcome.text(json::compact(output).into_owned());
    }
    let mut parts = Vec::new();
    each_part(output, |kind, part| shown(kind, part, &mut parts, dropped));
    for part in parts {
        match part {
            Part::Text { text } => outcome.text(text),
            Part::ImageUrl { image_url } => outcome.image(image_url),
        }
    }
    outcome
}

/// A part of a content.
fn shown(kind: &str, part: &Fields<'_>, out: &mut Vec<Part>, dropped: &mut Dropped) {
    match kind {
        "input_text" | "output_text" | "text" => {
            out.extend(foreign::text(part, "text").map(|text| Part::Text { text }));
        }
        "refusal" => out.extend(foreign::text(part, "refusal").map(|text| Part::Text { text })),
        "input_image" => match foreign::text(part, "image_url") {
            Some(url) => {
                let detail = foreign::text(part, "detail");
                // Chat Completions knows no others.
                let detail = detail.filter(|word| ["low", "high", "auto"].contains(&word.as_str()));
                out.push(Part::ImageUrl { image_url: ImageUrl { url, detail } });
            }
            None => missing("image", out, dropped),
        },
        "input_file" => missing("file", out, dropped),
        _ => dropped.note("content", kind),
    }
}

/// What the model would look for in vain: it is told so.
fn missing(what: &str, out: &mut Vec<Part>, dropped: &mut Dropped) {
    dropped.note("content", what);
    out.push(Part::Text { text: format!("(The {what} cannot be shown here.)") });
}

fn into_text(part: Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text),
        Part::ImageUrl { .. } => None,
    }
}
