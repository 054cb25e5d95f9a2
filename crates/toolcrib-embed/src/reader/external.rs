//! Reading text with a tokenizer from another crate.

use std::sync::Arc;

use crate::words;

/// The tokenizer of an external table.
pub trait Tokenizer: Send + Sync {
    /// Calls `visit` with the id of every token of `text`, in order. The caller ignores ids without a row.
    fn tokenize(&self, text: &str, visit: &mut dyn FnMut(u32));

    /// The text of a token, as the vocabulary has it.
    fn token(&self, id: u32) -> String;
}

/// Text is cut to this many characters per wanted token before it is tokenized, because a tokenizer processes all of
/// it. Tokens are rarely longer.
const CHARACTERS_PER_TOKEN: usize = 8;

/// How text becomes rows of an external table.
#[derive(Clone)]
pub(crate) struct ExternalReader {
    pub(crate) tokenizer: Arc<dyn Tokenizer>,
    pub(crate) mapping: Option<Vec<u32>>,
    pub(crate) tokens: usize,
}

impl ExternalReader {
    /// Calls `visit` with the first `most` tokens of `text`. Identifiers are read as prose, since that is
    /// what such a table was trained on: `createIssue` and `create_issue` are two words.
    pub(crate) fn each(&self, text: &str, most: usize, mut visit: impl FnMut(u32)) {
        let prose: String = words::with_humps_parted(text, ' ')
            .map(|c| if c == '_' { ' ' } else { c })
            .take(most * CHARACTERS_PER_TOKEN)
            .collect();
        let mut left = most;
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

    pub(crate) fn written(&self, token: u32) -> String {
        self.tokenizer.token(token)
    }
}
