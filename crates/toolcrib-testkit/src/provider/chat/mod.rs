//! `OpenAI` Chat Completions. The API has no native search, and many servers that are compatible with it have quirks.

mod check;
mod read;
mod write;

pub(super) use check::check;
pub(super) use read::read;
pub(super) use write::write;
