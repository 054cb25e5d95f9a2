//! Splits text into the tokens of an uncased BERT model, with their positions in the text.
//!
//! The steps are: drop control characters, split at white space and around ideographs, decompose (NFD) and drop
//! accents, convert to lower case, make each punctuation character a word, and split each word into the longest
//! pieces that the vocabulary has. Spellings of special tokens such as `[SEP]` in the text have no special meaning.
//!
//! Characters are decomposed one by one. A complete normalisation would also sort marks, but nearly all marks that it
//! sorts are accents, which are dropped.

use std::ops::Range;

use unicode_normalization::char::decompose_canonical;

use super::characters::{SourceClass, is_accent, is_punctuation, source_class};
use super::weights_file::Weights;
use crate::Error;
use crate::vocabulary::{PieceKey, PieceVocabulary};

/// Maximum number of characters of a word. A longer word is unknown.
const MAX_WORD: usize = 100;
/// Only the beginning of a longer text is read, so that a text without tokens, or with one endless word, costs
/// little.
const MAX_TEXT_BYTES: usize = 1 << 16;

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Position in the vocabulary.
    pub id: u32,
    /// The bytes of the text that the token covers. Accents and control characters at its end may be left out.
    pub range: Range<usize>,
}

#[derive(Clone)]
pub(super) struct Tokenizer {
    vocabulary: PieceVocabulary,
    /// The token at the beginning of each input of the model.
    pub(super) start: u32,
    /// The token at the end of each input of the model.
    pub(super) end: u32,
    /// The token for a word that the vocabulary cannot spell.
    pub(super) unknown: u32,
}

impl Tokenizer {
    pub(super) fn new(weights: &Weights) -> Result<Self, Error> {
        let vocabulary = PieceVocabulary::parse(weights.vocabulary()?, weights.shape.entries)?;
        let special = |entry: &'static str| {
            vocabulary.get(PieceKey::Word(entry.as_bytes())).ok_or(Error::MissingEntry { entry })
        };
        let (start, end, unknown) = (special("[CLS]")?, special("[SEP]")?, special("[UNK]")?);
        Ok(Self { vocabulary, start, end, unknown })
    }

    /// Returns the first tokens of `text`, at most `limit`, without the special tokens at the start and the end.
    pub(super) fn tokens(&self, text: &str, limit: usize) -> Vec<Token> {
        let mut tokens = TokenBuffer { tokenizer: self, tokens: Vec::new(), word: Word::default() };
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        for (start, c) in text.char_indices() {
            if tokens.tokens.len() >= limit {
                break;
            }
            let range = start..start + c.len_utf8();
            match source_class(c) {
                SourceClass::Dropped => {}
                SourceClass::Space => tokens.end_word(),
                SourceClass::Ideograph => {
                    tokens.end_word();
                    tokens.push(c, &range);
                    tokens.end_word();
                }
                SourceClass::Other => tokens.push(c, &range),
            }
        }
        tokens.end_word();
        tokens.tokens.truncate(limit);
        tokens.tokens
    }
}

/// A normalised word, and where its characters come from.
#[derive(Default)]
struct Word {
    text: String,
    /// For each character, where it begins in `text`, and the range of the source.
    characters: Vec<(usize, Range<usize>)>,
    /// Whether the word has more characters than are stored.
    is_too_long: bool,
}

struct TokenBuffer<'a> {
    tokenizer: &'a Tokenizer,
    tokens: Vec<Token>,
    word: Word,
}

impl TokenBuffer<'_> {
    /// Normalises a character at `range` of the text and adds it to the word.
    fn push(&mut self, c: char, range: &Range<usize>) {
        if c.is_ascii() {
            return self.push_normalised(c.to_ascii_lowercase(), range);
        }
        decompose_canonical(c, |c| {
            if !is_accent(c) {
                for c in c.to_lowercase() {
                    self.push_normalised(c, range);
                }
            }
        });
    }

    fn push_normalised(&mut self, c: char, range: &Range<usize>) {
        let is_word = is_punctuation(c);
        if is_word {
            self.end_word();
        }
        let Word { text, characters, is_too_long } = &mut self.word;
        if characters.len() < MAX_WORD {
            characters.push((text.len(), range.clone()));
            text.push(c);
        } else {
            *is_too_long = true;
            if let Some((_, last)) = characters.last_mut() {
                last.end = range.end;
            }
        }
        if is_word {
            self.end_word();
        }
    }

    /// Adds the tokens of the word, if there is one, and begins the next word.
    fn end_word(&mut self) {
        let before = self.tokens.len();
        if self.word.is_too_long || !self.push_pieces() {
            self.tokens.truncate(before);
            let range = self.word.source(0, self.word.characters.len());
            self.tokens.push(Token { id: self.tokenizer.unknown, range });
        }
        self.word.text.clear();
        self.word.characters.clear();
        self.word.is_too_long = false;
    }

    /// Adds the longest pieces that spell the word. Returns whether there are pieces for the entire word.
    fn push_pieces(&mut self) -> bool {
        let vocabulary = &self.tokenizer.vocabulary;
        let count = self.word.characters.len();
        let mut first = 0;
        while first < count {
            let piece = (first + 1..=count).rev().find_map(|end| {
                let spelling = self.word.spelling(first, end);
                if spelling.len() > vocabulary.longest_piece() {
                    return None;
                }
                let key = if first == 0 {
                    PieceKey::Word(spelling)
                } else {
                    PieceKey::Continuation(spelling)
                };
                vocabulary.get(key).map(|id| (id, end))
            });
            let Some((id, end)) = piece else {
                return false;
            };
            self.tokens.push(Token { id, range: self.word.source(first, end) });
            first = end;
        }
        true
    }
}

impl Word {
    /// Returns the characters from `first` up to `end`.
    fn spelling(&self, first: usize, end: usize) -> &[u8] {
        let offset =
            |at: usize| self.characters.get(at).map_or(self.text.len(), |(start, _)| *start);
        &self.text.as_bytes()[offset(first)..offset(end)]
    }

    /// Returns the bytes of the source of the characters from `first` up to `end`.
    fn source(&self, first: usize, end: usize) -> Range<usize> {
        self.characters[first].1.start..self.characters[end - 1].1.end
    }
}
