//! Translates between clients of Anthropic Messages and a Chat Completions backend.

mod request;
mod response;
mod stream;

use self::stream::BlockWriter;
use super::backend_error::BackendError;
use super::chat_response::ChatResponse;
use super::chunk_assembler::StreamStep;
use super::lenient::DroppedContent;
use super::{ClientApi, Untranslatable};

/// Translates Messages to and from Chat Completions.
#[derive(Debug, Default)]
pub(super) struct MessagesOverChat {
    /// The model that the client requested.
    model: String,
    blocks: BlockWriter,
}

impl ClientApi for MessagesOverChat {
    fn translate_request(
        &mut self,
        body: &str,
        dropped: &mut DroppedContent,
    ) -> Result<String, Untranslatable> {
        let (model, request) = request::translate(body, dropped)?;
        *self = Self { blocks: BlockWriter::new(model.clone()), model };
        Ok(request.write())
    }

    fn translate_response(&self, response: &ChatResponse) -> String {
        response::message(response, &self.model)
    }

    fn translate_error(&self, error: &BackendError) -> String {
        response::error(error)
    }

    fn held_bytes(&self) -> usize {
        0
    }

    fn write_step(&mut self, step: StreamStep, out: &mut Vec<u8>) {
        self.blocks.write_step(step, out);
    }
}
