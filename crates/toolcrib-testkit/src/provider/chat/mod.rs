//! OpenAI Chat Completions: no native search, and many compatible servers with quirks.

mod check;
mod read;
mod write;

pub(super) use check::check;
pub(super) use read::read;
pub(super) use write::write;
