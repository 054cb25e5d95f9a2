//! Splits text into pieces: with the built-in tokenizer, or with the tokenizer of an external table.

mod external;

pub(crate) use external::ExternalSegmenter;
pub use external::Tokenizer;

use std::ops::ControlFlow;

use crate::vocabulary::PieceVocabulary;
use crate::wordpiece;

/// Splits text into pieces and maps pieces to rows of the table.
#[derive(Clone)]
pub(crate) enum Segmenter {
    /// The built-in tokenizer. The id of a piece is its row.
    Wordpiece(PieceVocabulary),
    /// The tokenizer of an external table.
    External(ExternalSegmenter),
}

impl Segmenter {
    /// Calls `visit` with the first `max_pieces` pieces of `text`, in order.
    pub(crate) fn each_piece(&self, text: &str, max_pieces: usize, mut visit: impl FnMut(u32)) {
        match self {
            Self::Wordpiece(vocabulary) => {
                let mut left = max_pieces;
                wordpiece::each_row(vocabulary, text, &mut |piece| {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    visit(piece);
                    ControlFlow::Continue(())
                });
            }
            Self::External(external) => external.each_piece(text, max_pieces, visit),
        }
    }

    /// Returns the row of a piece.
    pub(crate) fn row(&self, piece: u32) -> usize {
        match self {
            Self::Wordpiece(_) => piece as usize,
            Self::External(external) => external.row(piece),
        }
    }

    /// Returns the text of a piece, as in the vocabulary.
    pub(crate) fn piece_text(&self, piece: u32) -> String {
        match self {
            Self::Wordpiece(vocabulary) => vocabulary.entry(piece).to_owned(),
            Self::External(external) => external.piece_text(piece),
        }
    }
}
