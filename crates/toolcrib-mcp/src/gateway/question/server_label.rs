//! The label that names the server of a question. Texts from servers are changed so that they cannot forge such a
//! label.

use serde_json::Value;
use toolcrib_text::clean::{clean, one_line};
use toolcrib_text::shorten;

/// Maximum number of lines of a question.
pub(super) const MAX_LINES: usize = 60;
/// Maximum length of a server's name in a label, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;

/// Builds the label at the beginning of a server's text. `link` is either empty or a text about the host that the
/// question links to, and is added after the server's name.
pub(super) fn server_label(server: &str, link: &str) -> String {
    format!("[server \"{}\"{link}]", label_name(server))
}

/// Returns a server's name without the characters that end a label or begin another one.
pub(super) fn label_name(server: &str) -> String {
    let replace = |c| match c {
        '"' | '“' | '”' | '＂' => '\'',
        ']' | '］' | '】' | '〕' | '⟧' | '❳' | '〛' | '﹞' => ')',
        c if is_opening(c) => '(',
        c => c,
    };
    let name: String = one_line(server).chars().map(replace).collect();
    shorten(&name, MAX_NAME_CHARS).into_owned()
}

/// Replaces the opening bracket of each text block that begins like a label. The rest of the text stays unchanged,
/// because the model's answer depends on every character.
pub(super) fn replace_label_brackets(content: &mut Value) {
    match content {
        Value::Array(blocks) => blocks.iter_mut().for_each(replace_label_brackets),
        Value::Object(block) => {
            if let Some(Value::String(text)) = block.get_mut("text")
                && begins_like_label(text)
            {
                let rest = text.trim_start_matches(is_before_label).to_owned();
                text.truncate(text.len() - rest.len());
                *text = text.replace(is_opening, "(") + &rest;
            }
            if let Some(content) = block.get_mut("content") {
                replace_label_brackets(content);
            }
        }
        _ => {}
    }
}

/// Prepares a server's text to follow its label. Anything that looks like a label is replaced, runs of empty lines that
/// would push the label out of view are reduced to one, and the text is truncated at the limits, with a note.
pub(super) fn text_after_label(text: &str, limit: usize) -> String {
    let (text, _) = clean(text);
    let text = without_labels_or_leading_brackets(text.trim());
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    let has_more = lines.len() > MAX_LINES;
    lines.truncate(MAX_LINES);
    let shown = lines.join("\n");
    match shown.char_indices().nth(limit) {
        Some((end, _)) => format!("{}… [cut at {limit} characters]", &shown[..end]),
        None if has_more => format!("{shown}… [cut at {MAX_LINES} lines]"),
        None => shown,
    }
}

/// Replaces the opening brackets of labels in a server's text. At the beginning of a line every opening bracket is
/// replaced, because the word after it may imitate `server` with similar-looking letters.
pub(super) fn without_labels_or_leading_brackets(text: &str) -> String {
    let mut is_start = true;
    let replace = |(at, c): (usize, char)| {
        let is_bracket = is_opening(c);
        let is_label = is_bracket && (is_start || begins_with_server(&text[at + c.len_utf8()..]));
        is_start = c == '\n' || (is_start && is_before_label(c));
        if is_label { '(' } else { c }
    };
    text.char_indices().map(replace).collect()
}

/// Replaces the opening brackets of labels in a system prompt. Other brackets stay, because the model's answer depends
/// on every character.
pub(super) fn without_labels(text: &str) -> String {
    let replace = |(at, c): (usize, char)| {
        let is_label = is_opening(c) && begins_with_server(&text[at + c.len_utf8()..]);
        if is_label { '(' } else { c }
    };
    text.char_indices().map(replace).collect()
}

/// Whether a text begins with an opening bracket and `server`, ignoring markup.
pub(super) fn begins_like_label(text: &str) -> bool {
    let rest = text.trim_start_matches(is_before_label);
    text[..text.len() - rest.len()].contains(is_opening) && begins_with_server(rest)
}

fn begins_with_server(rest: &str) -> bool {
    let letters = rest.chars().filter(|c| !is_combining(*c)).skip_while(|c| is_markup(*c));
    letters.take(6).map(|c| c.to_ascii_lowercase()).eq("server".chars())
}

fn is_before_label(c: char) -> bool {
    is_opening(c) || is_markup(c)
}

/// Whether a character is an opening square bracket or looks like one.
fn is_opening(c: char) -> bool {
    matches!(
        c,
        '[' | '［'
            | '【'
            | '〔'
            | '〖'
            | '〘'
            | '〚'
            | '⟦'
            | '⟬'
            | '❲'
            | '⁅'
            | '⦋'
            | '﹇'
            | '﹝'
    )
}

/// Whether a character is whitespace or Markdown formatting, which a reader would overlook at the beginning of a text.
fn is_markup(c: char) -> bool {
    c.is_whitespace()
        || is_combining(c)
        || matches!(c, '*' | '_' | '`' | '>' | '#' | '-' | '.' | '~' | '\\')
}

/// Whether a character is in one of the blocks of combining marks that are used with any script.
fn is_combining(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}
