//! Tokens without a vocabulary, for a process that stays.
//!
//! A vocabulary is two hundred thousand entries in memory, and reading a text with it is work for each
//! piece of it. Where a count only decides how much to show, and to models that have other vocabularies
//! anyway, this is near enough: text is cut into runs of one kind, as the vocabularies' own rules begin
//! by doing, and each kind of run has a length that it takes for one token.

use toolcrib_core::TokenCounter;

/// Letters of a word that are one token; a longer one is more. Fitted to `o200k` on tool definitions, as
/// are the numbers below: see the test.
const LETTERS: usize = 7;
/// Letters of other scripts.
const FOREIGN: usize = 3;
/// Digits, as the vocabularies have them.
const DIGITS: usize = 3;
/// Marks: `"},{"` is one token.
const MARKS: usize = 4;

/// Counts tokens by the shape of the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimate;

/// What a run is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Foreign,
    Digits,
    Marks,
    Blank,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            _ if c.is_ascii_alphabetic() => Self::Letters,
            _ if c.is_ascii_digit() => Self::Digits,
            _ if c.is_ascii_whitespace() => Self::Blank,
            _ if c.is_ascii() => Self::Marks,
            _ => Self::Foreign,
        }
    }

    fn tokens(self, run: usize) -> usize {
        match self {
            Self::Letters => run.div_ceil(LETTERS),
            Self::Foreign => run.div_ceil(FOREIGN),
            Self::Digits => run.div_ceil(DIGITS),
            Self::Marks => run.div_ceil(MARKS),
            // One blank goes with the word behind it.
            Self::Blank => usize::from(run > 1),
        }
    }
}

impl TokenCounter for Estimate {
    fn count(&self, text: &str) -> usize {
        let (mut tokens, mut run, mut kind) = (0, 0, Kind::Blank);
        let mut upper = false;
        for c in text.chars() {
            let next = Kind::of(c);
            // `createIssue` is two words.
            let hump = c.is_ascii_uppercase() && !upper;
            if next == kind && !hump {
                run += 1;
            } else {
                // One mark goes with the word behind it: `_name`.
                let joined = kind == Kind::Marks && run == 1 && next == Kind::Letters;
                tokens += if joined { 0 } else { kind.tokens(run) };
                (run, kind) = (1, next);
            }
            upper = c.is_ascii_uppercase();
        }
        tokens + kind.tokens(run)
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
    use crate::{Counter, Vocabulary};

    #[test]
    fn the_estimate_is_near_the_count_on_tool_definitions() {
        let sample = include_str!("../../toolcrib/sample/catalog.jsonl");
        let exact = Counter::exact(Vocabulary::O200k);
        let (mut counted, mut guessed, mut far) = (0, 0, 0);
        for line in sample.lines() {
            let (count, guess) = (exact.count(line), Estimate.count(line));
            (counted, guessed) = (counted + count, guessed + guess);
            far += usize::from(count.abs_diff(guess) * 5 > count);
        }
        assert!(guessed.abs_diff(counted) * 100 <= counted, "{guessed} for {counted}");
        assert!(far * 100 <= sample.lines().count(), "{far} are off by more than a fifth");
    }

    #[test]
    fn other_scripts_are_not_free() {
        assert_eq!(Estimate.count(""), 0);
        assert!(Estimate.count("Создать задачу в репозитории") >= 8);
        assert!(Estimate.count(&"漢".repeat(30)) >= 10);
    }
}
