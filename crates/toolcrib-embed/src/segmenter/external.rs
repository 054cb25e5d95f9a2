//! Splits text with a tokenizer from another crate.

use std::sync::Arc;

use crate::split;

/// The tokenizer of an external table.
pub trait Tokenizer: Send + Sync {
    /// Calls `visit` with the id of every token of `text`, in order. The caller ignores ids without a row.
    fn tokenize(&self, text: &str, visit: &mut dyn FnMut(u32));

    /// Returns the text of a token, as in the vocabulary.
    fn token(&self, id: u32) -> String;
}

/// Number of characters per wanted token to which a text is cut before tokenizing. The text is cut because a tokenizer
/// processes all of its input. Tokens are rarely longer than this.
const CHARACTERS_PER_TOKEN: usize = 8;

/// Maps text to rows of an external table.
#[derive(Clone)]
pub(crate) struct ExternalSegmenter {
    pub(crate) tokenizer: Arc<dyn Tokenizer>,
    /// The row of each token, if tokens share rows.
    pub(crate) mapping: Option<Vec<u32>>,
    /// Number of tokens that have a row in the table.
    pub(crate) tokens: usize,
}

impl ExternalSegmenter {
    /// Calls `visit` with the first `max_tokens` tokens of `text`. Identifiers are converted to prose
    /// (`createIssue` and `create_issue` become `create issue`), because published tables are trained on
    /// prose.
    pub(crate) fn each_piece(&self, text: &str, max_tokens: usize, mut visit: impl FnMut(u32)) {
        let prose: String = split::with_part_marks(text, ' ')
            .map(|c| if c == '_' { ' ' } else { c })
            .take(max_tokens * CHARACTERS_PER_TOKEN)
            .collect();
        let mut left = max_tokens;
        self.tokenizer.tokenize(&prose, &mut |token| {
            if left > 0 && (token as usize) < self.tokens {
                left -= 1;
                visit(token);
            }
        });
    }

    pub(crate) fn row(&self, token: u32) -> usize {
        self.mapping.as_ref().map_or(token, |mapping| mapping[token as usize]) as usize
    }

    pub(crate) fn piece_text(&self, token: u32) -> String {
        self.tokenizer.token(token)
    }
}
