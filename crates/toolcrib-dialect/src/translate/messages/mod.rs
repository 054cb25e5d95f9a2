//! Clients of Anthropic Messages.

mod request;
mod response;
mod stream;

use self::stream::Blocks;
use super::foreign::Dropped;
use super::reply::Reply;
use super::tale::Step;
use super::trouble::Trouble;
use super::{Side, Untranslatable};

/// Messages over Chat Completions.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The model that was asked for.
    model: String,
    blocks: Blocks,
}

impl Side for Messages {
    fn ask(&mut self, body: &str, dropped: &mut Dropped) -> Result<String, Untranslatable> {
        let (model, ask) = request::translate(body, dropped)?;
        *self = Self { blocks: Blocks::new(model.clone()), model };
        Ok(ask.write())
    }

    fn reply(&self, reply: &Reply) -> String {
        response::message(reply, &self.model)
    }

    fn trouble(&self, trouble: &Trouble) -> String {
        response::error(trouble)
    }

    fn held(&self) -> usize {
        0
    }

    fn step(&mut self, step: Step, out: &mut Vec<u8>) {
        self.blocks.step(step, out);
    }
}
