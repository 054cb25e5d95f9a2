//! Splits text into words, and words into terms.

mod lexicon;
pub(crate) mod words;

pub(crate) use lexicon::{is_common, is_filler, is_stop, related, split_compound, stem};
