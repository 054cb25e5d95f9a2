//! `OpenAI` Responses, with items, stored responses, hosted and client-side search, and namespaces.

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
