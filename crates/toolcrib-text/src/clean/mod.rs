//! Removes hidden characters from untrusted text.
//!
//! A description can contain text that no reviewer sees: Unicode tags, bidirectional overrides, zero-width characters,
//! terminal escapes. Text for a model or a terminal is cleaned here first, and what was removed is reported, because
//! hidden text says something about the server that sent it. Invisible characters that ordinary text needs are kept
//! (see `context`).

mod context;

use std::borrow::Cow;
use std::fmt;

/// A class of hidden characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// C0 and C1 controls other than newline and tab.
    Control,
    /// A complete terminal escape sequence.
    Ansi,
    /// Bidirectional marks, embeddings, overrides and isolates.
    Bidi,
    /// Zero-width spaces and joiners, word joiners, soft hyphens, fillers, the braille
    /// blank, the byte order mark.
    ZeroWidth,
    /// The tag block, an invisible copy of ASCII.
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

/// Returns the class of a hidden character; `None` for any other character.
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
        | '\u{2800}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{16fe4}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => Some(Hidden::ZeroWidth),
        '\u{180b}'..='\u{180d}'
        | '\u{180f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => Some(Hidden::Variation),
        '\u{e0000}'..='\u{effff}' => Some(Hidden::Tag),
        '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..='\u{10ffff}' => {
            Some(Hidden::Private)
        }
        // The last two code points of every plane are non-characters.
        _ if u32::from(c) & 0xfffe == 0xfffe => Some(Hidden::Private),
        _ => None,
    }
}

/// Whether a text contains a hidden character, even one that [`clean`] would keep. This check is for names, keys and
/// addresses: if two of them look the same, they must be the same.
pub fn has_hidden(text: &str) -> bool {
    !is_printable_ascii(text) && text.chars().any(|c| hidden(c).is_some())
}

/// Whether [`clean`] would remove nothing.
pub fn is_clean(text: &str) -> bool {
    if is_printable_ascii(text) {
        return true;
    }
    let (mut before, mut kept_to) = (None, 0);
    for (at, c) in text.char_indices() {
        if at >= kept_to && hidden(c).is_some() {
            let kept = context::ordinary_bytes(before, &text[at..]);
            if kept == 0 {
                return false;
            }
            kept_to = at + kept;
        }
        before = Some(c);
    }
    true
}

/// Whether a text is printable ASCII. Most text is, and only other text needs the slower checks.
fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\n' || b == b'\t')
}

/// Returns `text` without hidden characters, and the classes of the removed characters, sorted and without duplicates.
/// Joiners and variation selectors are kept where ordinary text has them.
///
/// A carriage return before a newline is removed without being reported, because it hides nothing.
pub fn clean(text: &str) -> (Cow<'_, str>, Vec<Hidden>) {
    if is_clean(text) {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut out = String::with_capacity(text.len());
    let mut removed = Vec::new();
    let mut escapes = Escapes { text, unclosed_until: 0 };
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let next = at + c.len_utf8();
        let Some(class) = hidden(c) else {
            out.push(c);
            at = next;
            continue;
        };
        let written = context::ordinary_bytes(out.chars().next_back(), &text[at..]);
        if written > 0 {
            out.push_str(&text[at..at + written]);
            at += written;
            continue;
        }
        let end = escapes.end(c, next);
        if !(c == '\r' && text[next..].starts_with('\n')) {
            removed.push(if end > next { Hidden::Ansi } else { class });
            // Line breaks and the braille blank separate words, so a space replaces them.
            if matches!(
                c,
                '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{2800}'
            ) {
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
    /// The position up to which the text after the current command is known to contain no end of a string command. So
    /// text with many unclosed commands is scanned only once.
    unclosed_until: usize,
}

impl Escapes<'_> {
    /// Returns the end of the escape sequence whose first character is `first`, directly before `at`. Returns `at` if
    /// there is no escape sequence.
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
            // The sequence has parameter and intermediate bytes, followed by one final byte.
            let count = rest.bytes().take_while(|b| (0x20..=0x3f).contains(b)).count();
            let last = rest.as_bytes().get(count).is_some_and(|b| (0x40..=0x7e).contains(b));
            return body + count + usize::from(last);
        }
        // A string command ends with BEL or ST. If neither follows on its line, only its opening is removed, so that
        // the text after it stays visible.
        if body < self.unclosed_until {
            return body;
        }
        let mut chars = rest.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            match c {
                '\u{7}' | '\u{9c}' => return body + i + c.len_utf8(),
                '\u{1b}' if chars.peek().is_some_and(|(_, c)| *c == '\\') => return body + i + 2,
                '\n' => {
                    self.unclosed_until = body + i;
                    return body;
                }
                _ => {}
            }
        }
        self.unclosed_until = self.text.len();
        body
    }
}

/// Cleans and trims `text`, and replaces every run of white space by one space.
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
    fn removed_line_breaks_still_separate_words() {
        for text in ["a\rb", "a\u{b}b", "a\u{c}b", "a\u{85}b", "a\u{2028}b", "a\u{2800}b"] {
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

    /// The texts are flags, families, keycaps and hearts, and words in Persian, Hindi, Malayalam and Sinhala.
    #[test]
    fn ordinary_writing_keeps_its_invisible_parts() {
        let texts = [
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308} \u{1f44d}\u{1f3fd}",
            "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
            "\u{260e}\u{fe0e}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{d28}\u{d4d}\u{200d} \u{d28}",
            "\u{dc1}\u{dca}\u{200d}\u{dbb}\u{dd3}",
        ];
        for text in texts {
            assert_eq!(clean(text), (Cow::Borrowed(text), vec![]), "{text}");
            assert!(is_clean(text) && has_hidden(text), "{text}");
        }
    }

    /// Characters that ordinary text needs could encode hidden text if they are in other positions or repeated.
    #[test]
    fn invisible_characters_in_unusual_positions_are_removed() {
        let flag = "\u{1f3f4}\u{e0068}\u{e0069}\u{e007f}";
        for (text, cleaned) in [
            ("a\u{200d}b", "ab"),
            ("a\u{200c}b", "ab"),
            ("\u{2764}\u{fe0f}\u{fe0f}\u{fe0e}x", "\u{2764}\u{fe0f}x"),
            ("\u{1f468}\u{200d}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
            ("\u{1f468}\u{200d}x", "\u{1f468}x"),
            ("\u{645}\u{200c}\u{200d}\u{200c}\u{62e}", "\u{645}\u{200c}\u{62e}"),
            ("\u{645}\u{200c} x", "\u{645} x"),
            ("7\u{fe0f}8", "78"),
            (flag, "\u{1f3f4}"),
            ("\u{8fb}\u{e0100}", "\u{8fb}"),
            ("\u{4e00}\u{e0101}", "\u{4e00}"),
            ("\u{200d}\u{1f469}", "\u{1f469}"),
        ] {
            assert_eq!(clean(text).0, cleaned, "{text:?}");
            assert!(is_clean(cleaned), "{cleaned:?}");
        }
    }

    /// Checks that every code point without a visible form belongs to a class of hidden characters.
    #[test]
    fn every_invisible_code_point_has_a_class() {
        let invisible = [
            0x0..=0x8,
            0xb..=0x1f,
            0x7f..=0x9f,
            0xad..=0xad,
            0x34f..=0x34f,
            0x61c..=0x61c,
            0x115f..=0x1160,
            0x17b4..=0x17b5,
            0x180b..=0x180f,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2060..=0x206f,
            0x2800..=0x2800,
            0x3164..=0x3164,
            0xe000..=0xf8ff,
            0xfdd0..=0xfdef,
            0xfe00..=0xfe0f,
            0xfeff..=0xfeff,
            0xffa0..=0xffa0,
            0xfff0..=0xfffb,
            0xfffe..=0xffff,
            0x13430..=0x1343f,
            0x1bca0..=0x1bca3,
            0x1d173..=0x1d17a,
            0xe0000..=0x0010_ffff,
        ];
        for code in invisible.into_iter().flatten() {
            let Some(c) = char::from_u32(code) else { continue };
            assert!(hidden(c).is_some(), "U+{code:04X}");
            let text = format!("a{c}b");
            assert!(has_hidden(&text) && !is_clean(&text), "U+{code:04X}");
            assert!(!clean(&text).0.contains(c), "U+{code:04X}");
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
            for text in
                [format!("x{c}[y"), format!("\u{2764}{c}\u{2764}"), format!("\u{645}{c}{c}\u{645}")]
            {
                let once = clean(&text).0.into_owned();
                assert!(is_clean(&once), "U+{code:04X}");
            }
        }
    }
}
