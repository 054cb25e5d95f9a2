//! Estimates token counts without a vocabulary, for long-running processes.
//!
//! A vocabulary keeps two hundred thousand entries in memory, and encoding with it takes time. An estimate is enough if
//! a count only decides how much is shown, and many models have other vocabularies anyway. Text is split into runs of
//! one character class, as the tokenizers themselves do first. For each class, a fixed number of characters counts as
//! one token.

use toolcrib_core::TokenCounter;

/// ASCII letters per token. This number and the next three were chosen so that the estimates for tool definitions are
/// close to the counts of `o200k`. A test below limits the difference.
const LETTERS_PER_TOKEN: usize = 7;
/// Non-ASCII characters per token.
const NON_ASCII_PER_TOKEN: usize = 3;
/// Digits per token, as in the vocabularies.
const DIGITS_PER_TOKEN: usize = 3;
/// Punctuation characters per token: `"},{"` is one token.
const PUNCTUATION_PER_TOKEN: usize = 4;

/// Estimates the number of tokens from the classes of the characters.
#[derive(Debug, Clone, Copy, Default)]
pub struct EstimateCounter;

/// The class of the characters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letters,
    NonAscii,
    Digits,
    Punctuation,
    Space,
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            _ if c.is_ascii_alphabetic() => Self::Letters,
            _ if c.is_ascii_digit() => Self::Digits,
            _ if c.is_ascii_whitespace() => Self::Space,
            _ if c.is_ascii() => Self::Punctuation,
            _ => Self::NonAscii,
        }
    }

    fn tokens(self, run: usize) -> usize {
        match self {
            Self::Letters => run.div_ceil(LETTERS_PER_TOKEN),
            Self::NonAscii => run.div_ceil(NON_ASCII_PER_TOKEN),
            Self::Digits => run.div_ceil(DIGITS_PER_TOKEN),
            Self::Punctuation => run.div_ceil(PUNCTUATION_PER_TOKEN),
            // A single space belongs to the token of the following word.
            Self::Space => usize::from(run > 1),
        }
    }
}

impl TokenCounter for EstimateCounter {
    fn count(&self, text: &str) -> usize {
        let (mut tokens, mut run, mut class) = (0, 0, CharClass::Space);
        let mut after_upper = false;
        for c in text.chars() {
            let next = CharClass::of(c);
            // An upper-case letter begins a new word, because `createIssue` is two words.
            let begins_word = c.is_ascii_uppercase() && !after_upper;
            if next == class && !begins_word {
                run += 1;
            } else {
                // A single punctuation character belongs to the token of the following word: `_name`.
                let joined =
                    class == CharClass::Punctuation && run == 1 && next == CharClass::Letters;
                tokens += if joined { 0 } else { class.tokens(run) };
                (run, class) = (1, next);
            }
            after_upper = c.is_ascii_uppercase();
        }
        tokens + class.tokens(run)
    }

    fn label(&self) -> &'static str {
        "estimate"
    }

    fn is_exact(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Vocabulary, VocabularyCounter};

    #[test]
    fn the_estimate_is_close_to_the_exact_count_of_tool_definitions() {
        let sample = include_str!("../../toolcrib/sample/catalog.jsonl");
        let exact = VocabularyCounter::exact(Vocabulary::O200k);
        let (mut exact_total, mut estimated_total, mut far_off) = (0, 0, 0);
        for line in sample.lines() {
            let (count, estimate) = (exact.count(line), EstimateCounter.count(line));
            (exact_total, estimated_total) = (exact_total + count, estimated_total + estimate);
            far_off += usize::from(count.abs_diff(estimate) * 5 > count);
        }
        let error = estimated_total.abs_diff(exact_total);
        assert!(error * 100 <= exact_total, "{estimated_total} instead of {exact_total}");
        assert!(
            far_off * 100 <= sample.lines().count(),
            "{far_off} definitions are off by more than 20 %"
        );
    }

    #[test]
    fn non_ascii_text_is_counted() {
        assert_eq!(EstimateCounter.count(""), 0);
        assert!(EstimateCounter.count("Создать задачу в репозитории") >= 8);
        assert!(EstimateCounter.count(&"漢".repeat(30)) >= 10);
    }
}
