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
    let mut escapes = Escapes { text, endless: 0 };
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let next = at + c.len_utf8();
        let Some(class) = hidden(c) else {
            out.push(c);
            at = next;
            continue;
        };
        let end = escapes.end(c, next);
        if !(c == '\r' && text[next..].starts_with('\n')) {
            removed.push(if end > next { Hidden::Ansi } else { class });
            // What broke a line kept two words apart.
            if matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}') {
                out.push(' ');
            }
        }
        at = end;
    }
    removed.sort_unstable();
    removed.dedup();
    (Cow::Owned(out), removed)
}

/// Finds the ends of terminal escapes.
struct Escapes<'a> {
    text: &'a str,
    /// Up to here no string command ends, so that text full of openings is read once.
    endless: usize,
}

impl Escapes<'_> {
    /// Where the escape that begins with `first`, right before `at`, ends; `at` when it is none.
    fn end(&mut self, first: char, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        let (kind, body) = match (first, rest.first()) {
            ('\u{1b}', Some(kind @ (b'[' | b']' | b'P' | b'_' | b'^' | b'X'))) => (*kind, at + 1),
            ('\u{1b}', Some(0x20..=0x7e)) => return at + 1,
            ('\u{9b}', _) => (b'[', at),
            ('\u{9d}', _) => (b']', at),
            _ => return at,
        };
        let rest = &self.text[body..];
        if kind == b'[' {
            // Parameters and intermediates, then one final byte.
            let count = rest.bytes().take_while(|b| (0x20..=0x3f).contains(b)).count();
            let last = rest.as_bytes().get(count).is_some_and(|b| (0x40..=0x7e).contains(b));
            return body + count + usize::from(last);
        }
        // A string command runs to BEL or ST. Without either, only its opening is taken: the text
        // after it is the reader's to see.
        if body < self.endless {
            return body;
        }
        let mut chars = rest.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            match c {
                '\u{7}' | '\u{9c}' => return body + i + c.len_utf8(),
                '\u{1b}' if chars.peek().is_some_and(|(_, c)| *c == '\\') => return body + i + 2,
                '\n' => {
                    self.endless = body + i;
                    return body;
                }
                _ => {}
            }
        }
        self.endless = self.text.len();
        body
    }
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
            ("a\u{81}b", Hidden::Control),
            ("a\u{fe0f}b", Hidden::Variation),
            ("a\u{e000}b", Hidden::Private),
        ];
        for (text, class) in cases {
            assert_eq!(clean(text), (Cow::Borrowed("ab"), vec![class]), "{text:?}");
        }
    }

    #[test]
    fn what_broke_a_line_still_parts_two_words() {
        for text in ["a\rb", "a\u{b}b", "a\u{c}b", "a\u{85}b", "a\u{2028}b"] {
            assert_eq!(clean(text).0, "a b", "{text:?}");
        }
        assert_eq!(clean("a\r\nb").0, "a\nb");
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
