//! Writes the event streams of the Responses API. Items are written one after the other, and every event has a sequence
//! number.

use serde::Serialize;

use super::response::{RequestEcho, ResponseObject, ResponsesItem, TextPart, input, item_status};
use crate::sse;
use crate::translate::chat_response::{ResponseCall, ResponseHead};
use crate::translate::chunk_assembler::StreamStep;

/// Writes the events of a response.
#[derive(Debug, Default)]
pub(super) struct ItemWriter {
    echo: RequestEcho,
    head: Option<ResponseHead>,
    /// The sequence number of the next event.
    sequence_number: u64,
    done: Vec<ResponsesItem>,
    open: Option<OpenItem>,
    /// The total size of all text and arguments so far, in bytes. They are held in memory because the last event
    /// repeats them.
    held: usize,
}

/// The item that is being written.
#[derive(Debug)]
enum OpenItem {
    Text(String),
    Call(ResponseCall),
}

#[derive(Serialize)]
struct ResponsesEvent<'a> {
    r#type: &'a str,
    sequence_number: u64,
    #[serde(flatten)]
    body: EventBody<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EventBody<'a> {
    Response {
        response: ResponseObject<'a>,
    },
    Item {
        output_index: usize,
        item: &'a ResponsesItem,
    },
    ItemEvent {
        item_id: &'a str,
        output_index: usize,
        #[serde(flatten)]
        event: ItemEvent<'a>,
    },
}

/// The fields of an event that belongs to an item.
#[derive(Serialize)]
#[serde(untagged)]
enum ItemEvent<'a> {
    Part { content_index: usize, part: &'a TextPart },
    TextDelta { content_index: usize, delta: &'a str, logprobs: [(); 0] },
    TextDone { content_index: usize, text: &'a str, logprobs: [(); 0] },
    Delta { delta: &'a str },
    Arguments { name: &'a str, arguments: &'a str },
    Input { input: &'a str },
}

impl ItemWriter {
    pub(super) fn new(echo: RequestEcho) -> Self {
        Self { echo, ..Self::default() }
    }

    pub(super) fn echo(&self) -> &RequestEcho {
        &self.echo
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held
    }

    pub(super) fn write_step(&mut self, step: StreamStep, out: &mut Vec<u8>) {
        match step {
            StreamStep::Begin(head) => self.begin(head, out),
            StreamStep::Text(piece) => self.text(&piece, out),
            StreamStep::CallStart { id, name } => {
                let call = ResponseCall { id, name, arguments: String::new() };
                let item = self.echo.call(&call, &self.id(), "in_progress");
                self.open = Some(OpenItem::Call(call));
                self.write_item("response.output_item.added", &item, out);
            }
            StreamStep::Arguments(piece) => {
                let Some(OpenItem::Call(call)) = &mut self.open else { return };
                self.held += piece.len();
                call.arguments.push_str(&piece);
                // The input of a custom tool arrives inside a JSON object, so it can be sent only when the object is
                // complete.
                if !self.echo.is_custom(&call.name) {
                    let event = ItemEvent::Delta { delta: &piece };
                    self.write_item_event(
                        "response.function_call_arguments.delta",
                        "fc",
                        event,
                        out,
                    );
                }
            }
            StreamStep::PartEnd { truncated } => self.close(item_status(truncated), out),
            StreamStep::End { finish, usage } => {
                let head = self.head.clone().unwrap_or_default();
                let done = std::mem::take(&mut self.done);
                let echo = std::mem::take(&mut self.echo);
                let response = ResponseObject::begin(&head, &echo).end(&done, finish, usage);
                let name = format!("response.{}", response.status);
                self.write(&name, EventBody::Response { response }, out);
            }
            StreamStep::Failed { head, error } => {
                if self.head.is_none() {
                    self.begin(head.clone(), out);
                }
                let done = std::mem::take(&mut self.done);
                let echo = std::mem::take(&mut self.echo);
                let response = ResponseObject::begin(&head, &echo).fail(&done, &error);
                self.write("response.failed", EventBody::Response { response }, out);
            }
        }
    }

    fn begin(&mut self, head: ResponseHead, out: &mut Vec<u8>) {
        let echo = std::mem::take(&mut self.echo);
        for name in ["response.created", "response.in_progress"] {
            let response = ResponseObject::begin(&head, &echo);
            self.write(name, EventBody::Response { response }, out);
        }
        (self.echo, self.head) = (echo, Some(head));
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        if self.open.is_none() {
            let item = ResponsesItem::message(&self.id(), "in_progress", Vec::new());
            self.open = Some(OpenItem::Text(String::new()));
            self.write_item("response.output_item.added", &item, out);
            let part = TextPart::new(String::new());
            let event = ItemEvent::Part { content_index: 0, part: &part };
            self.write_item_event("response.content_part.added", "msg", event, out);
        }
        if let Some(OpenItem::Text(text)) = &mut self.open {
            self.held += piece.len();
            text.push_str(piece);
        }
        let event = ItemEvent::TextDelta { content_index: 0, delta: piece, logprobs: [] };
        self.write_item_event("response.output_text.delta", "msg", event, out);
    }

    fn close(&mut self, status: &'static str, out: &mut Vec<u8>) {
        let item = match self.open.take() {
            None => return,
            Some(OpenItem::Text(text)) => {
                let event = ItemEvent::TextDone { content_index: 0, text: &text, logprobs: [] };
                self.write_item_event("response.output_text.done", "msg", event, out);
                let part = TextPart::new(text);
                let event = ItemEvent::Part { content_index: 0, part: &part };
                self.write_item_event("response.content_part.done", "msg", event, out);
                ResponsesItem::message(&self.id(), status, vec![part])
            }
            Some(OpenItem::Call(call)) if self.echo.is_custom(&call.name) => {
                let text = input(&call.arguments);
                let event = ItemEvent::Delta { delta: &text };
                self.write_item_event("response.custom_tool_call_input.delta", "ctc", event, out);
                let event = ItemEvent::Input { input: &text };
                self.write_item_event("response.custom_tool_call_input.done", "ctc", event, out);
                self.echo.call(&call, &self.id(), status)
            }
            Some(OpenItem::Call(call)) => {
                let event = ItemEvent::Arguments { name: &call.name, arguments: &call.arguments };
                self.write_item_event("response.function_call_arguments.done", "fc", event, out);
                self.echo.call(&call, &self.id(), status)
            }
        };
        self.write_item("response.output_item.done", &item, out);
        self.done.push(item);
    }

    /// Returns the id of the current item, without the prefix that shows its kind.
    fn id(&self) -> String {
        let id = self.head.as_ref().map_or("", |head| &head.id);
        format!("{id}_{}", self.done.len())
    }

    fn write_item(&mut self, name: &str, item: &ResponsesItem, out: &mut Vec<u8>) {
        self.write(name, EventBody::Item { output_index: self.done.len(), item }, out);
    }

    fn write_item_event(
        &mut self,
        name: &str,
        kind: &str,
        event: ItemEvent<'_>,
        out: &mut Vec<u8>,
    ) {
        let item_id = format!("{kind}_{}", self.id());
        let output_index = self.done.len();
        self.write(name, EventBody::ItemEvent { item_id: &item_id, output_index, event }, out);
    }

    fn write(&mut self, name: &str, body: EventBody<'_>, out: &mut Vec<u8>) {
        let event = ResponsesEvent { r#type: name, sequence_number: self.sequence_number, body };
        let data = serde_json::to_string(&event).unwrap_or_default();
        sse::write_event(Some(name), &data, out);
        self.sequence_number += 1;
    }
}
