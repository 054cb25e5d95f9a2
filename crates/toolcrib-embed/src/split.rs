//! Splits text, including identifiers, into runs of letters and digits.
//!
//! The rules are kept simple because the table is trained in Python with the same rules (`training/text.py`),
//! and both implementations must produce exactly the same words:
//!
//! 1. A camel-case part begins where an upper-case letter follows a lower-case letter or a digit, and at the
//!    last of several upper-case letters before a lower-case one: `getHTTPServer` has three parts.
//! 2. Each character is lower-cased and decomposed (NFD), and accents (category Mn) are dropped.
//! 3. Letters, digits and other combining marks form runs. All other characters separate runs and are
//!    dropped. Each ideograph is a separate run.
//! 4. Only the first 256 characters of a run are used. Of each part among them, only the first 64 are used.
//! 5. The words of a run are its parts, unless the vocabulary has the run as one word: `GitHub` is `github`.
//!    The caller has the vocabulary and makes this decision, so it receives the run together with its parts.

use std::iter::once;
use std::ops::ControlFlow;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use crate::alphanumeric_run::AlphanumericRun;

/// Marks the beginning of a camel-case part until the text is split. If the text itself contains this control
/// character, it is first replaced by a space, which is a separator as well.
const PART_MARK: char = '\u{1f}';

/// Calls `visit` with every run of `text`, in order, until `visit` breaks. Each part is valid UTF-8.
pub(crate) fn each_run(
    text: &str,
    visit: &mut impl FnMut(&AlphanumericRun) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if text.is_ascii() {
        each_run_ascii(text.as_bytes(), visit)
    } else {
        each_run_unicode(text, visit)
    }
}

/// Like `each_run`, but faster and only for ASCII, which needs neither decomposition nor allocation. Nearly all text in
/// catalogs is ASCII.
fn each_run_ascii(
    text: &[u8],
    visit: &mut impl FnMut(&AlphanumericRun) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut run = AlphanumericRun::EMPTY;
    let mut before = ' ';
    for (at, byte) in text.iter().enumerate() {
        let here = char::from(*byte);
        let next = text.get(at + 1).map_or(' ', |byte| char::from(*byte));
        if byte.is_ascii_alphanumeric() {
            if begins_part(before, here, next) {
                run.end_part();
            }
            run.push(here.to_ascii_lowercase());
        } else {
            run.finish(visit)?;
        }
        before = here;
    }
    run.finish(visit)
}

fn each_run_unicode(
    text: &str,
    visit: &mut impl FnMut(&AlphanumericRun) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut run = AlphanumericRun::EMPTY;
    for c in with_part_marks(text, PART_MARK).flat_map(char::to_lowercase).nfd() {
        match class_of(c) {
            CharClass::Letter => run.push(c),
            CharClass::Ideograph => {
                run.finish(visit)?;
                run.push(c);
                run.finish(visit)?;
            }
            CharClass::Accent => {}
            CharClass::PartMark => run.end_part(),
            CharClass::Separator => run.finish(visit)?,
        }
    }
    run.finish(visit)
}

/// Returns the characters of `text` with `mark` inserted before each camel-case part that follows another one. A `mark`
/// in the text itself becomes a space.
pub(crate) fn with_part_marks(text: &str, mark: char) -> impl Iterator<Item = char> {
    let mut before = ' ';
    let next = text.chars().skip(1).chain(once(' '));
    text.chars().zip(next).flat_map(move |(here, next)| {
        let is_part = begins_part(before, here, next);
        before = here;
        let here = if here == mark { ' ' } else { here };
        is_part.then_some(mark).into_iter().chain(once(here))
    })
}

/// Whether a camel-case part begins at `here` directly after another part. `before` and `next` are the adjacent
/// characters.
fn begins_part(before: char, here: char, next: char) -> bool {
    here.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || before.is_uppercase() && next.is_lowercase())
}

/// How the splitter treats a character, after decomposition.
enum CharClass {
    Letter,
    Ideograph,
    Accent,
    PartMark,
    Separator,
}

fn class_of(c: char) -> CharClass {
    if c.is_ascii() {
        return match c {
            PART_MARK => CharClass::PartMark,
            _ if c.is_ascii_alphanumeric() => CharClass::Letter,
            _ => CharClass::Separator,
        };
    }
    if is_ideograph(c) {
        return CharClass::Ideograph;
    }
    match get_general_category(c) {
        GeneralCategory::NonspacingMark => CharClass::Accent,
        // Vowel signs of Indic scripts are spacing marks, not accents.
        GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => CharClass::Letter,
        _ if c.is_alphanumeric() => CharClass::Letter,
        _ => CharClass::Separator,
    }
}

/// Whether BERT's tokenizer treats this character as a separate word: Han, but neither kana nor Hangul.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2ceaf}'
        | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Returns the parts of each run.
    fn runs(text: &str) -> Vec<Vec<String>> {
        let mut runs = Vec::new();
        let _ = each_run(text, &mut |run| {
            let parts: Vec<String> = run.parts().map(string).collect();
            assert_eq!(string(run.as_one_word()), parts.concat());
            assert_eq!(run.is_compound(), parts.len() > 1);
            runs.push(parts);
            ControlFlow::Continue(())
        });
        runs
    }

    fn words(text: &str) -> Vec<String> {
        runs(text).concat()
    }

    #[test]
    fn identifiers_are_split_at_camel_case_and_punctuation() {
        assert_eq!(words("createIssue"), ["create", "issue"]);
        assert_eq!(words("get_HTTPServerURLs"), ["get", "http", "server", "ur", "ls"]);
        assert_eq!(words("S3Bucket v2Beta 2fa"), ["s3", "bucket", "v2", "beta", "2fa"]);
        assert_eq!(words("mcp__github.list-PRs"), ["mcp", "github", "list", "p", "rs"]);
        assert_eq!(words("don't (or do!)"), ["don", "t", "or", "do"]);
    }

    #[test]
    fn a_run_ends_at_a_separator_and_keeps_its_parts() {
        assert_eq!(
            runs("GitHub OAuth_URLs"),
            [vec!["git", "hub"], vec!["o", "auth"], vec!["ur", "ls"]]
        );
        assert_eq!(runs("élèveÉcole ÜberŻółw"), [["eleve", "ecole"], ["uber", "zołw"]]);
        assert_eq!(runs("搜YouTube索"), [vec!["搜"], vec!["you", "tube"], vec!["索"]]);
    }

    #[test]
    fn the_part_mark_is_a_separator_if_the_text_contains_it() {
        assert_eq!(runs("git\u{1f}hub"), [["git"], ["hub"]]);
        assert_eq!(runs("gít\u{1f}hub"), [["git"], ["hub"]]);
    }

    #[test]
    fn accents_are_dropped_and_other_marks_are_kept() {
        assert_eq!(words("Café naïve ÜBER"), ["cafe", "naive", "uber"]);
        assert_eq!(words("ПоискФайлов"), ["поиск", "фаилов"]);
        // The vowel signs aa and ii are spacing marks and are kept; the virama is dropped.
        assert_eq!(words("नमस्ते पानी"), ["नमसत", "पानी"]);
    }

    #[test]
    fn each_ideograph_is_a_word_and_kana_is_not_split() {
        assert_eq!(words("搜索API工具"), ["搜", "索", "api", "工", "具"]);
        // After decomposition the voiced sound mark of `ガ` counts as an accent.
        assert_eq!(words("カタガナを検索"), ["カタカナを", "検", "索"]);
    }

    #[test]
    fn emoji_separate_words_and_are_dropped() {
        assert_eq!(words("send📨mail 👩‍💻"), ["send", "mail"]);
    }

    #[test]
    fn a_word_is_cut_to_64_characters() {
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(64)]);
        assert_eq!(words(&"ж".repeat(100)), ["ж".repeat(64)]);
    }

    #[test]
    fn a_run_is_cut_to_256_characters() {
        assert_eq!(words(&"Issue".repeat(60)), [vec!["issue"; 51], vec!["i"]].concat());
        assert_eq!(words(&"Ünion".repeat(60)), [vec!["union"; 51], vec!["u"]].concat());
        // A part begins at every other character. The run is cut in the middle of the last part.
        assert_eq!(words(&"xY".repeat(150)), [vec!["x"], vec!["yx"; 127], vec!["y"]].concat());
        // Characters beyond the limit of a part count towards the limit of the run.
        let long = "x".repeat(250) + "LongName now";
        assert_eq!(words(&long), [&"x".repeat(64), "long", "na", "now"]);
        // The combining dot above is dropped and does not count towards the limits.
        let marked = "ė".repeat(255) + "AB";
        assert_eq!(words(&marked), ["e".repeat(64).as_str(), "a"]);
    }

    #[test]
    fn empty_text_and_punctuation_have_no_words() {
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words(" \t\u{0}…—"), [""; 0]);
    }

    #[test]
    fn a_visitor_can_stop_the_iteration() {
        for text in ["one two three", "один два три"] {
            let mut seen = 0;
            let flow = each_run(text, &mut |_| {
                seen += 1;
                if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!((flow, seen), (ControlFlow::Break(()), 2), "{text}");
        }
    }
}
