//! The terminal: its width, whether it shows colours, and text that is wrapped between words.
//!
//! Output for people is wrapped here and not by the terminal, which would break lines in the middle of words.

use terminal_size::{terminal_size, terminal_size_of};
use unicode_width::UnicodeWidthStr as _;

/// Width in columns if it is unknown, for example because the output is a pipe. clap wraps help at the same width.
const DEFAULT_WIDTH: usize = 100;
/// Minimum width in columns to which text is wrapped. On a narrower terminal, one word per line would be unreadable.
const MIN_WIDTH: usize = 20;

type Size = Option<(terminal_size::Width, terminal_size::Height)>;

/// Returns the width of the terminal in columns, else the value of `COLUMNS`, else 100.
pub(crate) fn width() -> usize {
    columns(terminal_size()).or_else(from_environment).unwrap_or(DEFAULT_WIDTH)
}

/// Returns the width to which text on standard output is wrapped. `None` if standard output is not a terminal and
/// `COLUMNS` is not set, because programs that read the output expect one line for each result.
pub(crate) fn stdout_width() -> Option<usize> {
    columns(terminal_size_of(std::io::stdout())).or_else(from_environment)
}

/// Like [`stdout_width`], for standard error, and without `COLUMNS`.
pub(crate) fn stderr_width() -> Option<usize> {
    columns(terminal_size_of(std::io::stderr()))
}

fn columns(size: Size) -> Option<usize> {
    let (width, _) = size?;
    Some(usize::from(width.0)).filter(|width| *width > 0).map(|width| width.max(MIN_WIDTH))
}

fn from_environment() -> Option<usize> {
    let width: usize = std::env::var("COLUMNS").ok()?.parse().ok()?;
    (width > 0).then_some(width.max(MIN_WIDTH))
}

/// Whether output may have colours. Any value of `NO_COLOR` switches them off, and `CLICOLOR_FORCE` switches them on
/// even if the output is not a terminal.
pub(crate) fn has_colours(is_terminal: bool) -> bool {
    let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = value("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    value("NO_COLOR").is_none() && (is_terminal || is_forced)
}

/// Breaks lines between words so that each has at most `width` columns. Lines that fit stay as they are. The parts of a
/// broken line have the indentation of the line. A word that is longer than a line, such as a path, is not cut.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if line.width() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        let mut part = String::new();
        for word in line.split_whitespace() {
            if !part.is_empty() && part.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut part));
            }
            part.push_str(if part.is_empty() { indent } else { " " });
            part.push_str(word);
        }
        lines.push(part);
    }
    lines.join("\n")
}

/// Formats a text next to a label. The text is wrapped, and all its lines begin in the same column: after the label,
/// which is padded to `label_width` columns.
pub(crate) fn labelled(label: &str, text: &str, label_width: usize, width: usize) -> String {
    let wrapped = wrap(text, width.saturating_sub(label_width).max(MIN_WIDTH));
    let padding = " ".repeat(label_width.saturating_sub(label.width()));
    let next_line = format!("\n{}", " ".repeat(label_width));
    format!("{label}{padding}{}", wrapped.replace('\n', &next_line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_words_are_not_cut() {
        for (text, width, expected) in [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two\nthree"),
            ("a /very/long/path b", 6, "a\n/very/long/path\nb"),
            ("/very/long/path", 6, "/very/long/path"),
            ("日本 日本 日本", 9, "日本 日本\n日本"),
            ("one\n\ntwo  three", 10, "one\n\ntwo  three"),
            ("  one two three", 9, "  one two\n  three"),
            ("", 9, ""),
        ] {
            assert_eq!(wrap(text, width), expected, "{text}");
        }
    }

    #[test]
    fn all_lines_of_a_labelled_text_begin_in_the_same_column() {
        let text = labelled("servers", "files, github, memory, time", 9, 30);
        assert_eq!(text, "servers  files, github,\n         memory, time");
    }
}
