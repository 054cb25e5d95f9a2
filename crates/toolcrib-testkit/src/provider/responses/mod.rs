//! OpenAI Responses: items, stored answers, native search in two kinds, namespaces.

mod check;
mod history;
mod items;
mod pairs;
mod read;
mod write;

pub(super) use check::check;
pub(crate) use history::History;
pub(super) use read::read;
pub(super) use write::write;
