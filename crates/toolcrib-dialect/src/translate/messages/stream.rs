//! Streams, as Messages has them: blocks one after the other, each with its own index.

use serde::Serialize;

use super::response::{self, Message, Usage, stop_reason};
use crate::sse;
use crate::translate::tale::Step;

/// A message under way.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The model that was asked for.
    model: String,
    /// The index of the block that is open, or of the next one.
    index: usize,
    open: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: usize, content_block: Start<'a> },
    ContentBlockDelta { index: usize, delta: Delta<'a> },
    ContentBlockStop { index: usize },
    MessageDelta { delta: Stop, usage: Usage },
    MessageStop,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Start<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Empty },
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta<'a> {
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
struct Stop {
    stop_reason: &'static str,
    stop_sequence: Option<&'static str>,
}

impl Event<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let data = serde_json::to_string(self).unwrap_or_default();
        sse::write(Some(self.name()), &data, out);
    }
}

impl Blocks {
    pub(super) fn new(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    pub(super) fn step(&mut self, step: Step, out: &mut Vec<u8>) {
        let index = self.index;
        match step {
            Step::Begin(head) => {
                let message = Message::begin(&head, &self.model);
                Event::MessageStart { message }.write(out);
            }
            Step::Text(text) => {
                if !self.open {
                    let content_block = Start::Text { text: "" };
                    self.start(content_block, out);
                }
                let delta = Delta::TextDelta { text: &text };
                Event::ContentBlockDelta { index, delta }.write(out);
            }
            Step::Call { id, name } => {
                self.start(Start::ToolUse { id: &id, name: &name, input: Empty {} }, out);
            }
            Step::Arguments(json) => {
                let delta = Delta::InputJsonDelta { partial_json: &json };
                Event::ContentBlockDelta { index, delta }.write(out);
            }
            Step::Close { .. } => {
                Event::ContentBlockStop { index }.write(out);
                (self.index, self.open) = (index + 1, false);
            }
            Step::End { finish, usage } => {
                let delta = Stop { stop_reason: stop_reason(finish), stop_sequence: None };
                Event::MessageDelta { delta, usage: usage.into() }.write(out);
                Event::MessageStop.write(out);
            }
            Step::Trouble { trouble, .. } => {
                sse::write(Some("error"), &response::error(&trouble), out);
            }
        }
    }

    fn start(&mut self, content_block: Start<'_>, out: &mut Vec<u8>) {
        self.open = true;
        Event::ContentBlockStart { index: self.index, content_block }.write(out);
    }
}
