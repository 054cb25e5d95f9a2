//! Translates between clients of OpenAI Responses and a Chat Completions backend.

mod history;
mod request;
mod response;
mod stream;

use self::response::RequestEcho;
use self::stream::ItemWriter;
use crate::translate::backend_error::BackendError;
use crate::translate::chat_response::ChatResponse;
use crate::translate::chunk_assembler::StreamStep;
use crate::translate::lenient::DroppedContent;
use crate::translate::{ClientApi, Untranslatable};

/// Translates Responses to and from Chat Completions.
#[derive(Debug, Default)]
pub(super) struct ResponsesOverChat {
    items: ItemWriter,
}

impl ClientApi for ResponsesOverChat {
    fn translate_request(
        &mut self,
        body: &str,
        dropped: &mut DroppedContent,
    ) -> Result<String, Untranslatable> {
        let (echo, request) = request::translate(body, dropped)?;
        *self = Self { items: ItemWriter::new(echo) };
        Ok(request.write())
    }

    fn translate_response(&self, response: &ChatResponse) -> String {
        response::response(response, self.echo())
    }

    fn translate_error(&self, error: &BackendError) -> String {
        response::error(error)
    }

    fn held_bytes(&self) -> usize {
        self.items.held_bytes()
    }

    fn write_step(&mut self, step: StreamStep, out: &mut Vec<u8>) {
        self.items.write_step(step, out);
    }
}

impl ResponsesOverChat {
    fn echo(&self) -> &RequestEcho {
        self.items.echo()
    }
}
