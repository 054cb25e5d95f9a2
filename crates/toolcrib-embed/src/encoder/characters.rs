//! Which characters BERT's tokenizer drops, and at which it splits.
//!
//! The classes are those of the package `tokenizers`, which the original model was trained with, except for
//! characters that were added to Unicode after version 8. That package does not know their categories, and the
//! vocabulary does not have them.

use unicode_general_category::{GeneralCategory, get_general_category};

/// How the tokenizer treats a character of the original text.
pub(super) enum SourceClass {
    /// Dropped; the characters before and after it belong to the same word.
    Dropped,
    /// Ends a word.
    Space,
    /// Is a word.
    Ideograph,
    Other,
}

pub(super) fn source_class(c: char) -> SourceClass {
    if matches!(c, '!'..='~') {
        SourceClass::Other
    } else if c.is_whitespace() && !matches!(c, '\u{b}' | '\u{c}' | '\u{85}') {
        SourceClass::Space
    } else if is_dropped(c) {
        SourceClass::Dropped
    } else if is_ideograph(c) {
        SourceClass::Ideograph
    } else {
        SourceClass::Other
    }
}

fn is_dropped(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    c == '\u{fffd}' || matches!(get_general_category(c), Control | Format | PrivateUse)
}

/// Whether this is a Han character, in the ranges that the original tokenizer has. Kana and Hangul are not split.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}'
        | '\u{2f800}'..='\u{2fa1f}')
}

/// Whether a decomposed character is an accent, which is dropped.
pub(super) fn is_accent(c: char) -> bool {
    !c.is_ascii() && get_general_category(c) == GeneralCategory::NonspacingMark
}

/// Whether a decomposed character is a word of its own: punctuation, or an ASCII symbol.
pub(super) fn is_punctuation(c: char) -> bool {
    use GeneralCategory as Category;
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    matches!(
        get_general_category(c),
        Category::ConnectorPunctuation
            | Category::DashPunctuation
            | Category::OpenPunctuation
            | Category::ClosePunctuation
            | Category::InitialPunctuation
            | Category::FinalPunctuation
            | Category::OtherPunctuation
    )
}
