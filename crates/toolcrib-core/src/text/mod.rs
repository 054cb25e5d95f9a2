//! Text into terms, and text into short text.

mod excerpt;
mod lexicon;
pub(crate) mod words;

pub(crate) use excerpt::first_sentence_of;
pub use excerpt::{first_sentence, shorten};
pub(crate) use lexicon::{is_common, is_filler, is_stop, related, split_compound, stem};
