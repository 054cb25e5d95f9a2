//! Text from strangers, made visible.
//!
//! A description can carry words that no person reviewing it sees: Unicode tags, bidirectional
//! overrides, zero-width characters, terminal escapes. Whatever reaches a model or a terminal goes
//! through here first, and what was removed is reported, since hidden text is a finding about the
//! server that sent it.

use std::borrow::Cow;
use std::fmt;

/// A class of characters that are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// C0 and C1 controls other than newline and tab.
    Control,
    /// A terminal escape sequence, as a whole.
    Ansi,
    /// Bidirectional marks, embeddings, overrides and isolates.
    Bidi,
    /// Zero-width spaces and joiners, word joiners, soft hyphens, fillers, the byte order mark.
    ZeroWidth,
    /// The tag block, which spells invisible ASCII.
    Tag,
    /// Variation selectors, which can encode bytes.
    Variation,
    /// Private-use characters and non-characters.
    Private,
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control characters",
            Self::Ansi => "terminal escapes",
            Self::Bidi => "bidirectional marks",
            Self::ZeroWidth => "zero-width characters",
            Self::Tag => "Unicode tags",
            Self::Variation => "variation selectors",
            Self::Private => "private-use characters",
        })
    }
}

/// The class of a character that must not be shown, if it is one.
pub fn hidden(c: char) -> Option<Hidden> {
    match c {
        '\n' | '\t' => None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Hidden::Control),
        _ if c.is_ascii() => None,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(Hidden::Bidi)
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' => Some(Hidden::ZeroWidth),
        '\u{e0000}'..='\u{e007f}' => Some(Hidden::Tag),
        '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            Some(Hidden::Variation)
        }
        '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..='\u{10ffff}' => {
            Some(Hidden::Private)
        }
        _ => None,
    }
}

/// Whether nothing would be removed.
pub fn is_clean(text: &str) -> bool {
    // Printable ASCII is nearly all text there is; the loop below it is for the rest.
    text.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\n' || b == b'\t')
        || text.chars().all(|c| hidden(c).is_none())
}

/// `text` without anything hidden, and the classes that were removed, each once, in order.
///
/// A carriage return before a newline is dropped silently: it hides nothing.
pub fn clean(text: &str) -> (Cow<'_, str>, Vec<Hidden>) {
    if is_clean(text) {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut out = String::with_capacity(text.len());
    let mut removed = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match hidden(c) {
            None => out.push(c),
            Some(_) if c == '\r' && chars.peek() == Some(&'\n') => {}
            Some(class) => {
                let class = if skip_escape(c, &mut chars) { Hidden::Ansi } else { class };
                removed.push(class);
            }
        }
    }
    removed.sort_unstable();
    removed.dedup();
    (Cow::Owned(out), removed)
}

/// Consumes the rest of a terminal escape that begins with `first`; false when it is none.
fn skip_escape(first: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let kind = match first {
        '\u{1b}' => match rest.peek() {
            Some(&kind @ ('[' | ']' | 'P' | '_' | '^' | 'X')) => {
                rest.next();
                kind
            }
            Some('\u{20}'..='\u{7e}') => {
                rest.next();
                return true;
            }
            _ => return false,
        },
        '\u{9b}' => '[',
        '\u{9d}' => ']',
        _ => return false,
    };
    if kind == '[' {
        // Parameters and intermediates, then one final byte.
        while rest.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
        rest.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
    } else {
        // A string command runs to BEL or ST. Without either, only its opening is taken: the text
        // after it is the reader's to see.
        let mut ahead = rest.clone();
        let mut length = 0usize;
        while let Some(c) = ahead.next() {
            length += 1;
            match c {
                '\u{7}' | '\u{9c}' => break,
                '\u{1b}' if ahead.peek() == Some(&'\\') => {
                    length += 1;
                    break;
                }
                '\n' => return true,
                _ => {}
            }
            if ahead.peek().is_none() {
                return true;
            }
        }
        for _ in 0..length {
            rest.next();
        }
    }
    true
}

/// `text` on one line: cleaned, with every run of white space made one blank.
pub fn one_line(text: &str) -> String {
    let (text, _) = clean(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_removed_and_named() {
        let cases = [
            ("a\u{e0041}b", Hidden::Tag),
            ("a\u{202e}b", Hidden::Bidi),
            ("a\u{200b}b", Hidden::ZeroWidth),
            ("a\u{1b}[31mb", Hidden::Ansi),
            ("a\u{1b}]0;title\u{7}b", Hidden::Ansi),
            ("a\u{9b}2Jb", Hidden::Ansi),
            ("a\u{0}b", Hidden::Control),
            ("a\u{85}b", Hidden::Control),
            ("a\u{fe0f}b", Hidden::Variation),
            ("a\u{e000}b", Hidden::Private),
        ];
        for (text, class) in cases {
            assert_eq!(clean(text), (Cow::Borrowed("ab"), vec![class]), "{text:?}");
        }
    }

    #[test]
    fn visible_text_is_not_touched() {
        for text in ["plain", "two\nlines\tand a tab", "日本語 – naïve café", "❤ λ → €"]
        {
            assert_eq!(clean(text), (Cow::Borrowed(text), vec![]));
        }
    }

    #[test]
    fn an_unclosed_escape_does_not_swallow_the_text_after_it() {
        assert_eq!(clean("a\u{1b}]0;b and c").0, "a0;b and c");
    }

    #[test]
    fn cleaning_twice_changes_nothing_more() {
        for code in 0..=0x0010_ffff_u32 {
            let Some(c) = char::from_u32(code) else { continue };
            let text = format!("x{c}[y");
            let once = clean(&text).0.into_owned();
            assert!(is_clean(&once), "U+{code:04X}");
        }
    }
}
