//! Counts tokens: exactly if the vocabulary is public, otherwise with a labelled estimate.
//!
//! OpenAI publishes its vocabularies, and a dependency contains them. Anthropic and Google publish none, so for their
//! models the count is that of `o200k`, labelled as an estimate. It is close enough to decide what to defer, but not to
//! predict a bill.

// This crate is pure, so it may not use the methods and types that clippy.toml disallows.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod estimate;

pub use estimate::EstimateCounter;

use std::sync::Arc;

use tiktoken_rs::CoreBPE;
use toolcrib_core::TokenCounter;

/// A published token vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// The vocabulary of GPT-4o and later models.
    O200k,
    /// The vocabulary of GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// Returns the name of the vocabulary.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    /// Returns the encoder, which is loaded on first use and shared by the process.
    fn encoder(self) -> &'static CoreBPE {
        match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        }
    }
}

/// Counts tokens with a vocabulary: exactly, or as an estimate if the model has another vocabulary.
#[derive(Debug, Clone)]
pub struct VocabularyCounter {
    vocabulary: Vocabulary,
    label: String,
    exact: bool,
}

impl VocabularyCounter {
    /// Returns a counter for models that use this vocabulary.
    pub fn exact(vocabulary: Vocabulary) -> Self {
        Self { vocabulary, label: vocabulary.name().to_owned(), exact: true }
    }

    /// Returns the counter for a model: exact for OpenAI models, an estimate for all others.
    ///
    /// ```
    /// use toolcrib_core::TokenCounter;
    /// use toolcrib_tokens::VocabularyCounter;
    /// assert!(VocabularyCounter::for_model("gpt-4o-mini").is_exact());
    /// assert_eq!(VocabularyCounter::for_model("claude-opus-5").label(), "o200k, an estimate for claude-opus-5");
    /// ```
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let begins = |families: &[&str]| families.iter().any(|family| name.starts_with(family));
        if begins(&["gpt-4o", "gpt-4.", "gpt-5", "gpt-6", "chatgpt", "o1", "o3", "o4"]) {
            Self::exact(Vocabulary::O200k)
        } else if begins(&["gpt-4", "gpt-3.5"]) {
            Self::exact(Vocabulary::Cl100k)
        } else {
            let label = format!("o200k, an estimate for {model}");
            Self { vocabulary: Vocabulary::O200k, label, exact: false }
        }
    }

    /// Converts the counter to a shared trait object, which the engine needs.
    pub fn shared(self) -> Arc<dyn TokenCounter> {
        Arc::new(self)
    }
}

/// Maximum length of a run of white space, or of other characters, that is encoded at once, in bytes.
///
/// The encoder takes quadratic time in the length of an unbroken run of letters, and fails on a run of a million
/// spaces. Untrusted text may contain both, so longer runs are split. Real text has no such runs.
const MAX_RUN_BYTES: usize = 4 << 10;

impl TokenCounter for VocabularyCounter {
    fn count(&self, text: &str) -> usize {
        let encoder = self.vocabulary.encoder();
        chunks(text).map(|chunk| encoder.count_ordinary(chunk)).sum()
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn is_exact(&self) -> bool {
        self.exact
    }
}

/// Splits text into chunks. It is split only inside runs of white space, or of other characters, that are longer than
/// [`MAX_RUN_BYTES`].
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut run, mut blank) = (0, false);
        for (at, byte) in rest.bytes().enumerate() {
            let same = byte.is_ascii_whitespace() == blank;
            (run, blank) = (if same { run + 1 } else { 1 }, byte.is_ascii_whitespace());
            if run > MAX_RUN_BYTES && rest.is_char_boundary(at) {
                let (chunk, tail) = rest.split_at(at);
                rest = tail;
                return Some(chunk);
            }
        }
        Some(std::mem::take(&mut rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_match_the_vocabulary() {
        let text = "Create an issue in a repository.";
        assert_eq!(VocabularyCounter::exact(Vocabulary::O200k).count(text), 7);
        assert_eq!(VocabularyCounter::exact(Vocabulary::Cl100k).count(text), 7);
        assert_eq!(VocabularyCounter::exact(Vocabulary::O200k).count(""), 0);
    }

    #[test]
    fn special_tokens_in_text_count_as_plain_text() {
        assert!(VocabularyCounter::exact(Vocabulary::O200k).count("<|endoftext|>") > 1);
    }

    #[test]
    fn text_is_split_only_inside_very_long_runs() {
        let prose = "word ".repeat(10_000);
        assert_eq!(chunks(&prose).count(), 1);
        let long_run = "é".repeat(10_000);
        assert_eq!(chunks(&long_run).collect::<String>(), long_run);
        assert_eq!(chunks(&long_run).count(), 5);
        assert_eq!(chunks(&" ".repeat(10_000)).count(), 3);
    }
}
