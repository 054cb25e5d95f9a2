//! Clients of OpenAI Responses.

mod history;
mod request;
mod response;
mod stream;

use self::response::Echo;
use self::stream::Items;
use crate::translate::foreign::Dropped;
use crate::translate::reply::Reply;
use crate::translate::tale::Step;
use crate::translate::trouble::Trouble;
use crate::translate::{Side, Untranslatable};

/// Responses over Chat Completions.
#[derive(Debug, Default)]
pub(super) struct Responses {
    items: Items,
}

impl Side for Responses {
    fn ask(&mut self, body: &str, dropped: &mut Dropped) -> Result<String, Untranslatable> {
        let (echo, ask) = request::translate(body, dropped)?;
        *self = Self { items: Items::new(echo) };
        Ok(ask.write())
    }

    fn reply(&self, reply: &Reply) -> String {
        response::response(reply, self.echo())
    }

    fn trouble(&self, trouble: &Trouble) -> String {
        response::error(trouble)
    }

    fn held(&self) -> usize {
        self.items.held()
    }

    fn step(&mut self, step: Step, out: &mut Vec<u8>) {
        self.items.step(step, out);
    }
}

impl Responses {
    fn echo(&self) -> &Echo {
        self.items.echo()
    }
}
