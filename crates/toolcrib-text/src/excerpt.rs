//! Shortens text, and marks the end of a shortened text with an ellipsis.

use std::borrow::Cow;

use crate::clean::one_line;

/// Truncates a text to at most `max` characters. A truncated text ends with an ellipsis.
pub fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    if text.chars().nth(max).is_none() {
        return Cow::Borrowed(text);
    }
    let keep = max.saturating_sub(1);
    let end = text.char_indices().nth(keep).map_or(text.len(), |(at, _)| at);
    let kept = &text[..end];
    // The text is cut at a space if there is one in the second half, so that words stay complete.
    let kept = match kept.rfind(' ') {
        Some(blank) if blank >= end / 2 => &kept[..blank],
        _ => kept,
    };
    let kept = kept.trim_end_matches(|c: char| !c.is_alphanumeric() && c != ')' && c != '"');
    Cow::Owned(format!("{kept}…"))
}

/// Returns the first sentence of `text`, cleaned, on one line and truncated to at most `max` characters.
pub fn first_sentence(text: &str, max: usize) -> String {
    // Only the beginning of the text is cleaned, because a longer sentence would be truncated anyway.
    let head = &text[..text.floor_char_boundary(max.saturating_mul(8))];
    let line = one_line(head);
    let end = sentence_end(&line).unwrap_or(line.len());
    shorten(&line[..end], max).into_owned()
}

/// Returns the first sentence as a slice of `text`, cut to at most `max` bytes. A line break also ends the sentence.
pub fn first_sentence_of(text: &str, max: usize) -> &str {
    let text = text.trim_start();
    let head = text[..text.floor_char_boundary(max)].lines().next().unwrap_or_default();
    &head[..sentence_end(head).unwrap_or(head.len())]
}

/// Returns the end of the first sentence, after its punctuation mark, or `None` if no sentence ends in `line`.
fn sentence_end(line: &str) -> Option<usize> {
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = at + c.len_utf8();
        match c {
            '。' | '！' | '？' => return Some(after),
            '.' | '!' | '?'
                if chars.peek().is_none_or(|(_, next)| *next == ' ')
                    && !(c == '.' && is_abbreviation(&line[..at])) =>
            {
                return Some(after);
            }
            _ => {}
        }
    }
    None
}

/// Whether a full stop after `before` marks an abbreviation rather than the end of a sentence.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '(', ',']).next().unwrap_or_default().to_ascii_lowercase();
    matches!(word.as_str(), "e.g" | "i.e" | "etc" | "vs" | "cf" | "no" | "dr" | "st" | "approx")
        || (word.len() == 1 && word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_not_cut_at_an_abbreviation() {
        let text = "Fetches a page, e.g. a blog\npost. Then it rests.";
        assert_eq!(first_sentence(text, 120), "Fetches a page, e.g. a blog post.");
        assert_eq!(first_sentence("搜索文件。返回列表。", 120), "搜索文件。");
        assert_eq!(first_sentence("Reads config.toml files", 120), "Reads config.toml files");
    }

    #[test]
    fn truncation_is_visible_and_keeps_words_complete() {
        assert_eq!(shorten("create a new issue", 12), "create a…");
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("abcdefghij", 5), "abcd…");
    }
}
