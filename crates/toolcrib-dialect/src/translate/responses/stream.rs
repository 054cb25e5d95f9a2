//! Streams, as Responses has them: items one after the other, every event numbered.

use serde::Serialize;

use super::response::{Echo, Item, Part, Response, input, status};
use crate::sse;
use crate::translate::reply::{Call, Head};
use crate::translate::tale::Step;

/// A response under way.
#[derive(Debug, Default)]
pub(super) struct Items {
    echo: Echo,
    head: Option<Head>,
    /// The number of the next event.
    number: u64,
    done: Vec<Item>,
    open: Option<Open>,
    /// Bytes of text and arguments so far: the last event repeats all of them.
    held: usize,
}

/// The item that is being told.
#[derive(Debug)]
enum Open {
    Text(String),
    Call(Call),
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'a str,
    sequence_number: u64,
    #[serde(flatten)]
    body: Body<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Response {
        response: Response<'a>,
    },
    Item {
        output_index: usize,
        item: &'a Item,
    },
    Inside {
        item_id: &'a str,
        output_index: usize,
        #[serde(flatten)]
        what: What<'a>,
    },
}

/// Something inside an item.
#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Part { content_index: usize, part: &'a Part },
    TextDelta { content_index: usize, delta: &'a str, logprobs: [(); 0] },
    TextDone { content_index: usize, text: &'a str, logprobs: [(); 0] },
    Delta { delta: &'a str },
    Arguments { name: &'a str, arguments: &'a str },
    Input { input: &'a str },
}

impl Items {
    pub(super) fn new(echo: Echo) -> Self {
        Self { echo, ..Self::default() }
    }

    pub(super) fn echo(&self) -> &Echo {
        &self.echo
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn step(&mut self, step: Step, out: &mut Vec<u8>) {
        match step {
            Step::Begin(head) => self.begin(head, out),
            Step::Text(piece) => self.text(&piece, out),
            Step::Call { id, name } => {
                let call = Call { id, name, arguments: String::new() };
                let item = self.echo.call(&call, &self.id(), "in_progress");
                self.open = Some(Open::Call(call));
                self.item("response.output_item.added", &item, out);
            }
            Step::Arguments(piece) => {
                let Some(Open::Call(call)) = &mut self.open else { return };
                self.held += piece.len();
                call.arguments.push_str(&piece);
                // The text of a custom tool is wrapped, and can be told only once it is whole.
                if !self.echo.is_custom(&call.name) {
                    let what = What::Delta { delta: &piece };
                    self.inside("response.function_call_arguments.delta", "fc", what, out);
                }
            }
            Step::Close { cut } => self.close(status(cut), out),
            Step::End { finish, usage } => {
                let head = self.head.clone().unwrap_or_default();
                let done = std::mem::take(&mut self.done);
                let echo = std::mem::take(&mut self.echo);
                let response = Response::begin(&head, &echo).end(&done, finish, usage);
                let name = format!("response.{}", response.status);
                self.write(&name, Body::Response { response }, out);
            }
            Step::Trouble { head, trouble } => {
                if self.head.is_none() {
                    self.begin(head.clone(), out);
                }
                let done = std::mem::take(&mut self.done);
                let echo = std::mem::take(&mut self.echo);
                let response = Response::begin(&head, &echo).fail(&done, &trouble);
                self.write("response.failed", Body::Response { response }, out);
            }
        }
    }

    fn begin(&mut self, head: Head, out: &mut Vec<u8>) {
        let echo = std::mem::take(&mut self.echo);
        for name in ["response.created", "response.in_progress"] {
            let response = Response::begin(&head, &echo);
            self.write(name, Body::Response { response }, out);
        }
        (self.echo, self.head) = (echo, Some(head));
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        if self.open.is_none() {
            let item = Item::message(&self.id(), "in_progress", Vec::new());
            self.open = Some(Open::Text(String::new()));
            self.item("response.output_item.added", &item, out);
            let part = Part::new(String::new());
            let what = What::Part { content_index: 0, part: &part };
            self.inside("response.content_part.added", "msg", what, out);
        }
        if let Some(Open::Text(text)) = &mut self.open {
            self.held += piece.len();
            text.push_str(piece);
        }
        let what = What::TextDelta { content_index: 0, delta: piece, logprobs: [] };
        self.inside("response.output_text.delta", "msg", what, out);
    }

    fn close(&mut self, status: &'static str, out: &mut Vec<u8>) {
        let item = match self.open.take() {
            None => return,
            Some(Open::Text(text)) => {
                let what = What::TextDone { content_index: 0, text: &text, logprobs: [] };
                self.inside("response.output_text.done", "msg", what, out);
                let part = Part::new(text);
                let what = What::Part { content_index: 0, part: &part };
                self.inside("response.content_part.done", "msg", what, out);
                Item::message(&self.id(), status, vec![part])
            }
            Some(Open::Call(call)) if self.echo.is_custom(&call.name) => {
                let text = input(&call.arguments);
                let what = What::Delta { delta: &text };
                self.inside("response.custom_tool_call_input.delta", "ctc", what, out);
                let what = What::Input { input: &text };
                self.inside("response.custom_tool_call_input.done", "ctc", what, out);
                self.echo.call(&call, &self.id(), status)
            }
            Some(Open::Call(call)) => {
                let what = What::Arguments { name: &call.name, arguments: &call.arguments };
                self.inside("response.function_call_arguments.done", "fc", what, out);
                self.echo.call(&call, &self.id(), status)
            }
        };
        self.item("response.output_item.done", &item, out);
        self.done.push(item);
    }

    /// The id of the item that is open, less what tells its kind.
    fn id(&self) -> String {
        let id = self.head.as_ref().map_or("", |head| &head.id);
        format!("{id}_{}", self.done.len())
    }

    fn item(&mut self, name: &str, item: &Item, out: &mut Vec<u8>) {
        self.write(name, Body::Item { output_index: self.done.len(), item }, out);
    }

    fn inside(&mut self, name: &str, kind: &str, what: What<'_>, out: &mut Vec<u8>) {
        let item_id = format!("{kind}_{}", self.id());
        let output_index = self.done.len();
        self.write(name, Body::Inside { item_id: &item_id, output_index, what }, out);
    }

    fn write(&mut self, name: &str, body: Body<'_>, out: &mut Vec<u8>) {
        let event = Event { r#type: name, sequence_number: self.number, body };
        let data = serde_json::to_string(&event).unwrap_or_default();
        sse::write(Some(name), &data, out);
        self.number += 1;
    }
}
