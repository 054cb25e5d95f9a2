//! Token counts: exact where a vocabulary is public, a labelled estimate everywhere else.
//!
//! OpenAI publishes its vocabularies, and they travel inside a crate. Anthropic and Google publish
//! none, so for their models the count is that of `o200k` under the name of an estimate: close enough
//! to decide what to defer, not a bill.

// Pure: see clippy.toml.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod estimate;

pub use estimate::Estimate;

use std::sync::Arc;

use tiktoken_rs::CoreBPE;
use toolcrib_core::TokenCounter;

/// A public vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// GPT-4o and later.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// The vocabulary's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    /// Loaded on first use, once for the process.
    fn encoder(self) -> &'static CoreBPE {
        match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        }
    }
}

/// Counts with a vocabulary, exactly or as an estimate for another model.
#[derive(Debug, Clone)]
pub struct Counter {
    vocabulary: Vocabulary,
    label: String,
    exact: bool,
}

impl Counter {
    /// Exact counts in a vocabulary.
    pub fn exact(vocabulary: Vocabulary) -> Self {
        Self { vocabulary, label: vocabulary.name().to_owned(), exact: true }
    }

    /// The counter for a model: exact for OpenAI's, an estimate for any other.
    ///
    /// ```
    /// use toolcrib_core::TokenCounter;
    /// use toolcrib_tokens::Counter;
    /// assert!(Counter::for_model("gpt-4o-mini").is_exact());
    /// assert_eq!(Counter::for_model("claude-opus-5").label(), "o200k, an estimate for claude-opus-5");
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

    /// The counter behind the trait, to hand to an engine.
    pub fn shared(self) -> Arc<dyn TokenCounter> {
        Arc::new(self)
    }
}

/// Bytes that are encoded at once.
///
/// The encoder is quadratic in the length of an unbroken run of letters, and gives up on a run of a
/// million blanks; either may be a stranger's. Text is cut only inside runs longer than this, which
/// real text does not have.
const CHUNK: usize = 4 << 10;

impl TokenCounter for Counter {
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

/// Cuts text where a run of white space, or of anything else, is longer than [`CHUNK`].
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
            if run > CHUNK && rest.is_char_boundary(at) {
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
    fn counts_are_those_of_the_vocabulary() {
        let text = "Create an issue in a repository.";
        assert_eq!(Counter::exact(Vocabulary::O200k).count(text), 7);
        assert_eq!(Counter::exact(Vocabulary::Cl100k).count(text), 7);
        assert_eq!(Counter::exact(Vocabulary::O200k).count(""), 0);
    }

    #[test]
    fn special_tokens_in_a_description_are_plain_text() {
        assert!(Counter::exact(Vocabulary::O200k).count("<|endoftext|>") > 1);
    }

    #[test]
    fn text_is_cut_only_inside_endless_runs() {
        let prose = "word ".repeat(10_000);
        assert_eq!(chunks(&prose).count(), 1);
        let endless = "é".repeat(10_000);
        assert_eq!(chunks(&endless).collect::<String>(), endless);
        assert_eq!(chunks(&endless).count(), 5);
        assert_eq!(chunks(&" ".repeat(10_000)).count(), 3);
    }
}
