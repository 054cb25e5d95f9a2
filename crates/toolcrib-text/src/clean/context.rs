//! Keeps the invisible characters that ordinary writing needs.
//!
//! Emoji are joined and styled by invisible characters, and some scripts cannot be written without joiners. Such a
//! character is kept if it is in a position where ordinary text has it. At most one is kept after each visible
//! character, so that a run of them cannot encode hidden text. The three flags that are written with tags are kept as
//! complete sequences. Rejected: keeping variation selectors after ideographs, because there are 240 of them, so they
//! can encode a byte after each character.

use super::hidden;

const JOINER: char = '\u{200d}';
const NON_JOINER: char = '\u{200c}';
const EMOJI_STYLE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';
const BLACK_FLAG: char = '\u{1f3f4}';

/// The tags after the black flag in the flags of England, Scotland and Wales.
const FLAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Returns the number of bytes at the beginning of `rest` that are an invisible part of ordinary text, or 0. `before`
/// is the last character that was kept.
pub(super) fn ordinary_bytes(before: Option<char>, rest: &str) -> usize {
    let mut chars = rest.chars();
    let (Some(before), Some(c)) = (before, chars.next()) else { return 0 };
    let next = chars.next().filter(|next| hidden(*next).is_none());
    let keep = match c {
        '\u{fe0e}' | EMOJI_STYLE => {
            let keycap = matches!(before, '0'..='9' | '#' | '*') && next == Some(KEYCAP);
            is_emoji(before) || keycap
        }
        JOINER if is_emoji(before) || before == EMOJI_STYLE => next.is_some_and(is_emoji),
        JOINER | NON_JOINER => {
            is_virama(before) || (needs_joiners(before) && next.is_some_and(needs_joiners))
        }
        _ if before == BLACK_FLAG => {
            let flag = FLAGS.iter().find(|flag| rest.starts_with(**flag));
            return flag.map_or(0, |flag| flag.len());
        }
        _ => false,
    };
    if keep { c.len_utf8() } else { 0 }
}

/// Whether a symbol is an emoji, or becomes one with a variation selector.
fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{a9}'
            | '\u{ae}'
            | '\u{203c}'
            | '\u{2049}'
            | '\u{2122}'
            | '\u{2139}'
            | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{24c2}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2900}'..='\u{297f}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{3030}'
            | '\u{303d}'
            | '\u{3297}'
            | '\u{3299}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// Whether a letter belongs to a script whose letters change their form with a joiner: Arabic and related scripts, the
/// scripts of India, Khmer, and Mongolian.
fn needs_joiners(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{8ff}'
            | '\u{900}'..='\u{dff}'
            | '\u{1780}'..='\u{18af}'
            | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
    )
}

/// Whether a character is a virama, the sign that removes a letter's vowel. A joiner after a virama is ordinary even at
/// the end of a word.
fn is_virama(c: char) -> bool {
    matches!(
        c,
        '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d4d}'
            | '\u{dca}'
    )
}
