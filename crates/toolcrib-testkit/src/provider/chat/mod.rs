//! OpenAI Chat Completions: no native search, many compatible servers with odd shapes.

mod check;
mod read;
mod write;

pub(super) use check::check;
pub(super) use read::read;
pub(super) use write::write;
