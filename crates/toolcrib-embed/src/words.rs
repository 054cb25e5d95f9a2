//! Text, identifiers included, into runs of folded words.
//!
//! The rules are few, since the table is trained in Python with the same ones (`training/text.py`) and
//! the two must agree to the letter:
//!
//! 1. A hump begins where an upper-case letter follows a lower-case one or a digit, and at the last
//!    of several upper-case letters before a lower-case one: `getHTTPServer` has three.
//! 2. Each character is put in lower case, then decomposed (NFD), and accents (Mn) are dropped.
//! 3. Letters, digits and the other marks make runs; everything else parts them and is dropped. An
//!    ideograph is a run of its own.
//! 4. Of a run its first 256 characters are read, and of each hump in them the first 64.
//! 5. The humps of a run are its words, unless the vocabulary knows the run as one word: `GitHub` is no
//!    hub. Who has the vocabulary decides that, so a run is handed over whole, with its humps.

use std::iter::once;
use std::ops::ControlFlow;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use crate::run::Run;

/// Stands for the beginning of a hump while a text is folded, where there is no other place to note it.
/// No other character is mistaken for it: a control character is a separator, as good as a blank.
const HUMP: char = '\u{1f}';

/// Calls `visit` with every run of `text`, in order, until it breaks. A hump is whole UTF-8.
pub(crate) fn each(text: &str, visit: &mut impl FnMut(&Run) -> ControlFlow<()>) -> ControlFlow<()> {
    if text.is_ascii() { each_ascii(text.as_bytes(), visit) } else { each_foreign(text, visit) }
}

/// Nearly all text of nearly all catalogs: nothing to decompose, nothing to allocate.
fn each_ascii(text: &[u8], visit: &mut impl FnMut(&Run) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut run = Run::EMPTY;
    let mut before = ' ';
    for (at, byte) in text.iter().enumerate() {
        let here = char::from(*byte);
        let next = text.get(at + 1).map_or(' ', |byte| char::from(*byte));
        if byte.is_ascii_alphanumeric() {
            if begins_hump(before, here, next) {
                run.part();
            }
            run.push(here.to_ascii_lowercase());
        } else {
            run.end(visit)?;
        }
        before = here;
    }
    run.end(visit)
}

fn each_foreign(text: &str, visit: &mut impl FnMut(&Run) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut run = Run::EMPTY;
    for c in with_humps_parted(text, HUMP).flat_map(char::to_lowercase).nfd() {
        match role(c) {
            Role::Letter => run.push(c),
            Role::Ideograph => {
                run.end(visit)?;
                run.push(c);
                run.end(visit)?;
            }
            Role::Accent => {}
            Role::Hump => run.part(),
            Role::Separator => run.end(visit)?,
        }
    }
    run.end(visit)
}

/// The characters of `text`, with `mark` before each hump and nowhere else: one in the text is a blank.
pub(crate) fn with_humps_parted(text: &str, mark: char) -> impl Iterator<Item = char> {
    let mut before = ' ';
    let next = text.chars().skip(1).chain(once(' '));
    text.chars().zip(next).flat_map(move |(here, next)| {
        let hump = begins_hump(before, here, next);
        before = here;
        let here = if here == mark { ' ' } else { here };
        hump.then_some(mark).into_iter().chain(once(here))
    })
}

/// Whether a hump begins at `here` although nothing parts it from `before`.
fn begins_hump(before: char, here: char, next: char) -> bool {
    here.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || before.is_uppercase() && next.is_lowercase())
}

/// What a character is to the splitter, after it was decomposed.
enum Role {
    Letter,
    Ideograph,
    Accent,
    Hump,
    Separator,
}

fn role(c: char) -> Role {
    if c.is_ascii() {
        return match c {
            HUMP => Role::Hump,
            _ if c.is_ascii_alphanumeric() => Role::Letter,
            _ => Role::Separator,
        };
    }
    if is_ideograph(c) {
        return Role::Ideograph;
    }
    match get_general_category(c) {
        GeneralCategory::NonspacingMark => Role::Accent,
        // Vowels of Indic scripts are spacing marks, and no accents.
        GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => Role::Letter,
        _ if c.is_alphanumeric() => Role::Letter,
        _ => Role::Separator,
    }
}

/// The ranges that BERT's tokenizer takes apart: Han, but neither kana nor hangul.
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

    /// The humps of each run, which together are the whole.
    fn runs(text: &str) -> Vec<Vec<String>> {
        let mut runs = Vec::new();
        let _ = each(text, &mut |run| {
            let humps: Vec<String> = run.humps().map(string).collect();
            assert_eq!(string(run.whole()), humps.concat());
            assert_eq!(run.has_humps(), humps.len() > 1);
            runs.push(humps);
            ControlFlow::Continue(())
        });
        runs
    }

    fn words(text: &str) -> Vec<String> {
        runs(text).concat()
    }

    #[test]
    fn identifiers_are_parted_at_humps_and_punctuation() {
        assert_eq!(words("createIssue"), ["create", "issue"]);
        assert_eq!(words("get_HTTPServerURLs"), ["get", "http", "server", "ur", "ls"]);
        assert_eq!(words("S3Bucket v2Beta 2fa"), ["s3", "bucket", "v2", "beta", "2fa"]);
        assert_eq!(words("mcp__github.list-PRs"), ["mcp", "github", "list", "p", "rs"]);
        assert_eq!(words("don't (or do!)"), ["don", "t", "or", "do"]);
    }

    #[test]
    fn a_run_is_what_separators_part_and_keeps_its_humps_together() {
        assert_eq!(
            runs("GitHub OAuth_URLs"),
            [vec!["git", "hub"], vec!["o", "auth"], vec!["ur", "ls"]]
        );
        assert_eq!(runs("élèveÉcole ÜberŻółw"), [["eleve", "ecole"], ["uber", "zołw"]]);
        assert_eq!(runs("搜YouTube索"), [vec!["搜"], vec!["you", "tube"], vec!["索"]]);
    }

    #[test]
    fn the_mark_of_a_hump_is_a_separator_where_the_text_has_it() {
        assert_eq!(runs("git\u{1f}hub"), [["git"], ["hub"]]);
        assert_eq!(runs("gít\u{1f}hub"), [["git"], ["hub"]]);
    }

    #[test]
    fn accents_fall_and_other_marks_stay() {
        assert_eq!(words("Café naïve ÜBER"), ["cafe", "naive", "uber"]);
        assert_eq!(words("ПоискФайлов"), ["поиск", "фаилов"]);
        // The vowel signs aa and ii are spacing marks; the virama is not.
        assert_eq!(words("नमस्ते पानी"), ["नमसत", "पानी"]);
    }

    #[test]
    fn ideographs_stand_alone_and_kana_does_not() {
        assert_eq!(words("搜索API工具"), ["搜", "索", "api", "工", "具"]);
        // The voiced mark of `ガ` is an accent once it is decomposed.
        assert_eq!(words("カタガナを検索"), ["カタカナを", "検", "索"]);
    }

    #[test]
    fn emoji_part_words_and_say_nothing() {
        assert_eq!(words("send📨mail 👩‍💻"), ["send", "mail"]);
    }

    #[test]
    fn a_word_is_its_first_64_characters() {
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(64)]);
        assert_eq!(words(&"ж".repeat(100)), ["ж".repeat(64)]);
    }

    #[test]
    fn a_run_is_read_for_256_characters() {
        assert_eq!(words(&"Issue".repeat(60)), [vec!["issue"; 51], vec!["i"]].concat());
        assert_eq!(words(&"Ünion".repeat(60)), [vec!["union"; 51], vec!["u"]].concat());
        // A hump on every second character, and none is empty.
        assert_eq!(words(&"xY".repeat(150)), [vec!["x"], vec!["yx"; 127], vec!["y"]].concat());
        // What a hump does not take is read all the same.
        let long = "x".repeat(250) + "LongName now";
        assert_eq!(words(&long), [&"x".repeat(64), "long", "na", "now"]);
        // The dot above falls and is no character of the run.
        let marked = "ė".repeat(255) + "AB";
        assert_eq!(words(&marked), ["e".repeat(64).as_str(), "a"]);
    }

    #[test]
    fn nothing_has_no_words() {
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words(" \t\u{0}…—"), [""; 0]);
    }

    #[test]
    fn a_visitor_may_stop() {
        for text in ["one two three", "один два три"] {
            let mut seen = 0;
            let flow = each(text, &mut |_| {
                seen += 1;
                if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!((flow, seen), (ControlFlow::Break(()), 2), "{text}");
        }
    }
}
