//! Words into pieces that the table has a row for.
//!
//! A run with humps is one word if the vocabulary has the whole, and else a word for each hump:
//! `GitHub` and `github` are then the same, while `createIssue` stays two words.
//!
//! Greedy, longest piece first, as BERT does it, with one difference: where nothing fits, one character
//! is skipped and the rest is read on, so a foreign letter costs itself and not its whole word. Two
//! neighbouring words that are a phrase of the vocabulary give the phrase's row beside their own.

use std::ops::ControlFlow;

use crate::run::{MOST_BYTES, Run};
use crate::vocabulary::{Key, Vocabulary};
use crate::words;

/// Calls `visit` with the row of every piece of `text`, in order, a phrase after its second word, until
/// it breaks.
pub(crate) fn each(
    vocabulary: &Vocabulary,
    text: &str,
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) {
    let mut last = Last { bytes: [0; MOST_BYTES], len: 0 };
    // That the visitor had enough is no news to the caller.
    let _ = words::each(text, &mut |run| {
        if let Some(row) = row_of_whole(vocabulary, run) {
            visit(row)?;
            return each_phrase(vocabulary, &mut last, run.whole(), visit);
        }
        for word in run.humps() {
            each_piece(vocabulary, word, visit)?;
            each_phrase(vocabulary, &mut last, word, visit)?;
        }
        ControlFlow::Continue(())
    });
}

/// The row of a run whose humps are one word.
fn row_of_whole(vocabulary: &Vocabulary, run: &Run) -> Option<u32> {
    if run.has_humps() { vocabulary.get(Key::Word(run.whole())) } else { None }
}

/// The word before, which may be the whole of a run. It lives on the stack.
struct Last {
    bytes: [u8; MOST_BYTES],
    len: usize,
}

/// The phrase that `word` ends, if it does; then `word` is the last one.
fn each_phrase(
    vocabulary: &Vocabulary,
    last: &mut Last,
    word: &[u8],
    visit: &mut impl FnMut(u32) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if !vocabulary.has_phrases() {
        return ControlFlow::Continue(());
    }
    if let Some(row) = vocabulary.get(Key::Phrase(&last.bytes[..last.len], word)) {
        visit(row)?;
    }
    last.bytes[..word.len()].copy_from_slice(word);
    last.len = word.len();
    ControlFlow::Continue(())
}

fn each_piece(
    vocabulary: &Vocabulary,
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

/// The longest piece that begins at `start`, and where it ends.
fn longest_piece(vocabulary: &Vocabulary, word: &[u8], start: usize) -> Option<(u32, usize)> {
    let mut end = word.len().min(start + vocabulary.longest());
    while end > start {
        if is_boundary(word, end) {
            let piece = &word[start..end];
            let key = if start == 0 { Key::Word(piece) } else { Key::Continuation(piece) };
            if let Some(row) = vocabulary.get(key) {
                return Some((row, end));
            }
        }
        end -= 1;
    }
    None
}

/// Whether a character of UTF-8 ends before `at`.
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
        let vocabulary = Vocabulary::parse(entries.join("\n").into(), entries.len()).unwrap();
        let mut pieces = Vec::new();
        each(&vocabulary, text, &mut |row| {
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
    fn what_has_no_piece_is_skipped_by_the_character() {
        assert_eq!(pieces(&["a", "##b", "b"], "xab axb жb xyz b"), ["##b", "a", "##b", "##b", "b"]);
    }

    #[test]
    fn a_phrase_comes_beside_its_words() {
        let entries = ["pull", "request", "pull request", "open"];
        assert_eq!(
            pieces(&entries, "open pull_request"),
            ["open", "pull", "request", "pull request"]
        );
        assert_eq!(pieces(&entries, "PullRequest"), ["pull", "request", "pull request"]);
        assert_eq!(pieces(&entries, "pull the request"), ["pull", "request"]);
        // Words of a phrase need no row of their own.
        assert_eq!(pieces(&["in progress"], "in progress"), ["in progress"]);
    }
    #[test]
    fn a_run_is_one_word_where_the_vocabulary_has_it() {
        let entries = ["git", "hub", "github", "issue"];
        assert_eq!(pieces(&entries, "GitHub github git_hub"), ["github", "github", "git", "hub"]);
        assert_eq!(pieces(&["git", "hub", "issue"], "GitHub"), ["git", "hub"]);
        // The whole is looked for, not some of its humps.
        assert_eq!(pieces(&entries, "GitHubIssue"), ["git", "hub", "issue"]);
        // A beginning, a continuation or a phrase is not the whole.
        assert_eq!(
            pieces(&["git", "hub", "##github", "git hub"], "GitHub"),
            ["git", "hub", "git hub"]
        );
        assert_eq!(pieces(&["githu", "git", "hub"], "GitHub"), ["git", "hub"]);
    }

    #[test]
    fn a_whole_is_folded_as_its_humps_are() {
        assert_eq!(pieces(&["git", "hub", "github"], "GítHüb"), ["github"]);
        assert_eq!(pieces(&["eleve", "ecole"], "élèveÉcole"), ["eleve", "ecole"]);
        assert_eq!(pieces(&["eleve", "ecole", "eleveecole"], "élèveÉcole"), ["eleveecole"]);
    }

    #[test]
    fn a_whole_is_a_neighbour_like_other_words() {
        let entries = ["git", "hub", "github", "issue", "open github", "github issue", "hub issue"];
        assert_eq!(
            pieces(&entries, "open GitHub issue"),
            ["github", "open github", "issue", "github issue"]
        );
        assert_eq!(pieces(&entries, "GitHubIssue"), ["git", "hub", "issue", "hub issue"]);
    }

    #[test]
    fn a_whole_may_be_as_long_as_a_run() {
        // Each of its letters is three bytes.
        let whole = "ⲁⲃ".repeat(128);
        let phrase = format!("{whole} now");
        let entries = [whole.as_str(), &phrase, "now"];
        let run = "ⲁⲂ".repeat(150);
        assert_eq!(pieces(&entries, &format!("{run} now")), [&whole, "now", &phrase]);
    }
}
