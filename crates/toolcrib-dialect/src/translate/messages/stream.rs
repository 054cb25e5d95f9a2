//! Writes the event streams of Messages. Blocks are written one after the other, each with its own index.

use serde::Serialize;

use super::response::{self, MessagesUsage, OutputMessage, stop_reason};
use crate::sse;
use crate::translate::chunk_assembler::StreamStep;

/// Writes the events of a message.
#[derive(Debug, Default)]
pub(super) struct BlockWriter {
    /// The model that the client requested.
    model: String,
    /// The index of the open block or, if none is open, of the next block.
    index: usize,
    open: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagesEvent<'a> {
    MessageStart { message: OutputMessage<'a> },
    ContentBlockStart { index: usize, content_block: BlockStart<'a> },
    ContentBlockDelta { index: usize, delta: BlockDelta<'a> },
    ContentBlockStop { index: usize },
    MessageDelta { delta: StopDelta, usage: MessagesUsage },
    MessageStop,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockStart<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: EmptyInput },
}

#[derive(Serialize)]
struct EmptyInput {}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta<'a> {
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
struct StopDelta {
    stop_reason: &'static str,
    stop_sequence: Option<&'static str>,
}

impl MessagesEvent<'_> {
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
        sse::write_event(Some(self.name()), &data, out);
    }
}

impl BlockWriter {
    pub(super) fn new(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    pub(super) fn write_step(&mut self, step: StreamStep, out: &mut Vec<u8>) {
        let index = self.index;
        match step {
            StreamStep::Begin(head) => {
                let message = OutputMessage::begin(&head, &self.model);
                MessagesEvent::MessageStart { message }.write(out);
            }
            StreamStep::Text(text) => {
                if !self.open {
                    let content_block = BlockStart::Text { text: "" };
                    self.start(content_block, out);
                }
                let delta = BlockDelta::TextDelta { text: &text };
                MessagesEvent::ContentBlockDelta { index, delta }.write(out);
            }
            StreamStep::CallStart { id, name } => {
                self.start(BlockStart::ToolUse { id: &id, name: &name, input: EmptyInput {} }, out);
            }
            StreamStep::Arguments(json) => {
                let delta = BlockDelta::InputJsonDelta { partial_json: &json };
                MessagesEvent::ContentBlockDelta { index, delta }.write(out);
            }
            StreamStep::PartEnd { .. } => {
                MessagesEvent::ContentBlockStop { index }.write(out);
                (self.index, self.open) = (index + 1, false);
            }
            StreamStep::End { finish, usage } => {
                let delta = StopDelta { stop_reason: stop_reason(finish), stop_sequence: None };
                MessagesEvent::MessageDelta { delta, usage: usage.into() }.write(out);
                MessagesEvent::MessageStop.write(out);
            }
            StreamStep::Failed { error, .. } => {
                sse::write_event(Some("error"), &response::error(&error), out);
            }
        }
    }

    fn start(&mut self, content_block: BlockStart<'_>, out: &mut Vec<u8>) {
        self.open = true;
        MessagesEvent::ContentBlockStart { index: self.index, content_block }.write(out);
    }
}
