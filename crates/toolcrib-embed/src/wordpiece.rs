//! Splits words into pieces that have a row in the table.
//!
//! If the vocabulary contains a run with several camel-case parts as one word, the run is one word. Otherwise each part
//! is a word. So `GitHub` and `github` are the same word, while `createIssue` is two words.
//!
//! A word is split greedily, longest piece first, as in BERT's `WordPiece`, with one difference: if no piece fits, one
//! character is skipped instead of the entire word. Two adjacent words that form a phrase of the vocabulary produce the
//! row of the phrase in addition to their own rows.

use std::ops::ControlFlow;

use crate::alphanumeric_run::{AlphanumericRun, MAX_RUN_BYTES};
use crate::split;
use crate::vocabulary::{PieceKey, PieceVocabulary};

/// Calls `visit` with the row of every piece of `text`, in order, until `visit` breaks. A phrase comes after its second
/// word.
pub(crate) fn each_row(
    vocabulary: &PieceVocabulary,
    text: &str,
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) {
    let mut previous = PreviousWord { bytes: [0; MAX_RUN_BYTES], len: 0 };
    // The result is ignored, because the caller knows whether its `visit` has stopped.
    let _ = split::each_run(text, &mut |run| {
        if let Some(row) = row_of_one_word(vocabulary, run) {
            visit(row)?;
            return visit_phrase(vocabulary, &mut previous, run.as_one_word(), visit);
        }
        for word in run.parts() {
            each_piece(vocabulary, word, visit)?;
            visit_phrase(vocabulary, &mut previous, word, visit)?;
        }
        ControlFlow::Continue(())
    });
}

/// If `run` is compound and the vocabulary contains it as a single word, returns that word's row.
fn row_of_one_word(vocabulary: &PieceVocabulary, run: &AlphanumericRun) -> Option<u32> {
    if run.is_compound() { vocabulary.get(PieceKey::Word(run.as_one_word())) } else { None }
}

/// A copy of the previous word, on the stack. A word may be as long as an entire run.
struct PreviousWord {
    bytes: [u8; MAX_RUN_BYTES],
    len: usize,
}

/// Visits the row of the phrase that the previous word and `word` form, if there is one. Then stores `word` as
/// the previous word.
fn visit_phrase(
    vocabulary: &PieceVocabulary,
    previous: &mut PreviousWord,
    word: &[u8],
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if !vocabulary.has_phrases() {
        return ControlFlow::Continue(());
    }
    if let Some(row) = vocabulary.get(PieceKey::Phrase(&previous.bytes[..previous.len], word)) {
        visit(row)?;
    }
    previous.bytes[..word.len()].copy_from_slice(word);
    previous.len = word.len();
    ControlFlow::Continue(())
}

fn each_piece(
    vocabulary: &PieceVocabulary,
    word: &[u8],
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut start = 0;
    while start < word.len() {
        let Some((row, end)) = longest_piece(vocabulary, word, start) else {
            start = next_boundary(word, start);
            continue;
        };
        visit(row)?;
        start = end;
    }
    ControlFlow::Continue(())
}

/// Returns the row of the longest piece of `word` that begins at `start`, and the position at which the piece ends.
/// Returns `None` if no piece of the vocabulary fits.
fn longest_piece(vocabulary: &PieceVocabulary, word: &[u8], start: usize) -> Option<(u32, usize)> {
    let mut end = word.len().min(start + vocabulary.longest_piece());
    while end > start {
        if is_boundary(word, end) {
            let piece = &word[start..end];
            let key =
                if start == 0 { PieceKey::Word(piece) } else { PieceKey::Continuation(piece) };
            if let Some(row) = vocabulary.get(key) {
                return Some((row, end));
            }
        }
        end -= 1;
    }
    None
}

/// Whether `at` is a character boundary of the UTF-8 text.
fn is_boundary(word: &[u8], at: usize) -> bool {
    word.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
}

fn next_boundary(word: &[u8], start: usize) -> usize {
    (start + 1..word.len()).find(|at| is_boundary(word, *at)).unwrap_or(word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(entries: &[&str], text: &str) -> Vec<String> {
        let vocabulary = PieceVocabulary::parse(entries.join("\n").into(), entries.len()).unwrap();
        let mut pieces = Vec::new();
        each_row(&vocabulary, text, &mut |row| {
            pieces.push(vocabulary.entry(row).to_owned());
            ControlFlow::Continue(())
        });
        pieces
    }

    #[test]
    fn the_longest_piece_is_taken_first() {
        let entries = ["un", "##aff", "##able", "##a", "##ff", "unaff", "issue", "##s"];
        assert_eq!(pieces(&entries, "Unaffable"), ["unaff", "##able"]);
        assert_eq!(pieces(&entries, "issues"), ["issue", "##s"]);
    }

    #[test]
    fn characters_without_a_piece_are_skipped_one_by_one() {
        assert_eq!(pieces(&["a", "##b", "b"], "xab axb жb xyz b"), ["##b", "a", "##b", "##b", "b"]);
    }

    #[test]
    fn a_phrase_is_added_after_its_words() {
        let entries = ["pull", "request", "pull request", "open"];
        assert_eq!(
            pieces(&entries, "open pull_request"),
            ["open", "pull", "request", "pull request"]
        );
        assert_eq!(pieces(&entries, "PullRequest"), ["pull", "request", "pull request"]);
        assert_eq!(pieces(&entries, "pull the request"), ["pull", "request"]);
        // The words of a phrase need not have rows themselves.
        assert_eq!(pieces(&["in progress"], "in progress"), ["in progress"]);
    }

    #[test]
    fn a_run_is_one_word_if_the_vocabulary_has_it() {
        let entries = ["git", "hub", "github", "issue"];
        assert_eq!(pieces(&entries, "GitHub github git_hub"), ["github", "github", "git", "hub"]);
        assert_eq!(pieces(&["git", "hub", "issue"], "GitHub"), ["git", "hub"]);
        // Only the entire run is looked up as one word. `GitHub` is only a part of this run, so it is split.
        assert_eq!(pieces(&entries, "GitHubIssue"), ["git", "hub", "issue"]);
        // A continuation such as `##github`, a phrase such as `git hub`, or a prefix of the run such as `githu` does
        // not make `GitHub` one word.
        assert_eq!(
            pieces(&["git", "hub", "##github", "git hub"], "GitHub"),
            ["git", "hub", "git hub"]
        );
        assert_eq!(pieces(&["githu", "git", "hub"], "GitHub"), ["git", "hub"]);
    }

    #[test]
    fn a_run_read_as_one_word_is_folded_like_its_parts() {
        assert_eq!(pieces(&["git", "hub", "github"], "GítHüb"), ["github"]);
        assert_eq!(pieces(&["eleve", "ecole"], "élèveÉcole"), ["eleve", "ecole"]);
        assert_eq!(pieces(&["eleve", "ecole", "eleveecole"], "élèveÉcole"), ["eleveecole"]);
    }

    #[test]
    fn a_run_read_as_one_word_can_be_part_of_a_phrase() {
        let entries = ["git", "hub", "github", "issue", "open github", "github issue", "hub issue"];
        assert_eq!(
            pieces(&entries, "open GitHub issue"),
            ["github", "open github", "issue", "github issue"]
        );
        assert_eq!(pieces(&entries, "GitHubIssue"), ["git", "hub", "issue", "hub issue"]);
    }

    #[test]
    fn a_one_word_run_may_have_the_maximum_length() {
        // Each of these letters takes three bytes.
        let whole = "ⲁⲃ".repeat(128);
        let phrase = format!("{whole} now");
        let entries = [whole.as_str(), &phrase, "now"];
        let run = "ⲁⲂ".repeat(150);
        assert_eq!(pieces(&entries, &format!("{run} now")), [&whole, "now", &phrase]);
    }
}
