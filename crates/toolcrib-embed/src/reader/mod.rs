//! How a model reads text: with our own tokenizer, or with the one of an external table.

mod external;

pub(crate) use external::ExternalReader;
pub use external::Tokenizer;

use std::ops::ControlFlow;

use crate::vocabulary::Vocabulary;
use crate::wordpiece;

/// Text into pieces, pieces into rows of the table.
#[derive(Clone)]
pub(crate) enum Reader {
    /// Ours; a piece is its row.
    Wordpiece(Vocabulary),
    /// An external table's own.
    External(ExternalReader),
}

impl Reader {
    /// Calls `visit` with the first `most` pieces of `text`, in order.
    pub(crate) fn each(&self, text: &str, most: usize, mut visit: impl FnMut(u32)) {
        match self {
            Self::Wordpiece(vocabulary) => {
                let mut left = most;
                wordpiece::each(vocabulary, text, &mut |piece| {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    visit(piece);
                    ControlFlow::Continue(())
                });
            }
            Self::External(reader) => reader.each(text, most, visit),
        }
    }

    /// The row of a piece.
    pub(crate) fn row(&self, piece: u32) -> usize {
        match self {
            Self::Wordpiece(_) => piece as usize,
            Self::External(reader) => reader.row(piece),
        }
    }

    /// How the vocabulary writes a piece.
    pub(crate) fn written(&self, piece: u32) -> String {
        match self {
            Self::Wordpiece(vocabulary) => vocabulary.entry(piece).to_owned(),
            Self::External(reader) => reader.written(piece),
        }
    }
}
