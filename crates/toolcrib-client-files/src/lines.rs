//! Texts as lines: line endings, differences, and a three-way merge.

use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

/// Maximum number of lines that a merge compares, because the time can grow with the square of that number.
const MAX_MERGED_LINES: usize = 20_000;

/// Returns the line ending of the first line, or `\n` if there is only one line.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the text without the `\r` before each `\n`.
pub(crate) fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Gives the lines of `edited`, which end with `\n`, the line endings that they have in `original`. New lines get the
/// line ending of the first line.
pub(crate) fn restore_line_endings(original: &str, edited: &str) -> String {
    if !original.contains('\r') {
        return edited.to_owned();
    }
    let normalized = with_lf(original);
    let (raw, old, new) = (split(original), split(&normalized), split(edited));
    let ending = newline(original);
    let mut out = String::with_capacity(original.len());
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (tag, before, after) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            out.extend(raw[before].iter().copied());
            continue;
        }
        for line in &new[after] {
            match line.strip_suffix('\n') {
                Some(line) => out.extend([line, ending]),
                None => out.push_str(line),
            }
        }
    }
    out
}

/// What a line of a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The header of a group of changes, such as `@@ -3,2 +3,1 @@`.
    Group,
    /// A line that both texts have.
    Context,
    /// A line that only the first text has.
    Removed,
    /// A line that only the second text has.
    Added,
}

/// A line of a difference between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// What the line is.
    pub kind: LineKind,
    /// The text, without the line ending.
    pub text: String,
}

/// Returns the difference between two texts, with `context` lines around each change.
pub fn diff(before: &str, after: &str, context: usize) -> Vec<DiffLine> {
    let (old, new) = (split(before), split(after));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut lines = Vec::new();
    for group in similar::group_diff_ops(ops, context) {
        lines.push(DiffLine { kind: LineKind::Group, text: group_header(&group) });
        for op in &group {
            let (tag, before, after) = op.as_tag_tuple();
            let mut push = |kind, all: &[&str]| {
                let text = |line: &&str| line.trim_end_matches(['\r', '\n']).to_owned();
                lines.extend(all.iter().map(|line| DiffLine { kind, text: text(line) }));
            };
            if tag == DiffTag::Equal {
                push(LineKind::Context, &old[before]);
            } else {
                push(LineKind::Removed, &old[before]);
                push(LineKind::Added, &new[after]);
            }
        }
    }
    lines
}

fn group_header(group: &[DiffOp]) -> String {
    let range = |ranges: Vec<Range<usize>>| {
        let start = ranges.first().map_or(0, |range| range.start);
        let end = ranges.last().map_or(0, |range| range.end);
        // In the unified diff format, an empty range has the number of the line before it.
        let first = if start == end { start } else { start + 1 };
        format!("{first},{}", end - start)
    };
    let old = range(group.iter().map(DiffOp::old_range).collect());
    let new = range(group.iter().map(DiffOp::new_range).collect());
    format!("@@ -{old} +{new} @@")
}

/// Merges the changes from `base` to `ours` and from `base` to `theirs`. Returns `None` if they overlap, or if the
/// texts are too long.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let (base, ours, theirs) = (split(base), split(ours), split(theirs));
    if base.len() + ours.len().max(theirs.len()) > MAX_MERGED_LINES {
        return None;
    }
    let mut hunks = hunks(&base, &ours);
    let others = self::hunks(&base, &theirs);
    let overlaps =
        |hunk: &Hunk<'_>| others.iter().any(|other| other != hunk && other.overlaps(hunk));
    if hunks.iter().any(overlaps) {
        return None;
    }
    hunks.retain(|hunk| !others.contains(hunk));
    hunks.extend(others);
    // An insertion comes before a change that starts at the same line.
    hunks.sort_by_key(|hunk| (hunk.base.start, hunk.base.end));
    let mut out = String::new();
    let mut at = 0;
    for hunk in hunks {
        out.extend(base.get(at..hunk.base.start)?.iter().copied());
        out.extend(hunk.lines.iter().copied());
        at = hunk.base.end;
    }
    out.extend(base.get(at..)?.iter().copied());
    Some(out)
}

/// A change of some lines of the base. The range is empty for an insertion.
#[derive(PartialEq)]
struct Hunk<'a> {
    base: Range<usize>,
    lines: Vec<&'a str>,
}

impl Hunk<'_> {
    fn overlaps(&self, other: &Self) -> bool {
        self.base.start < other.base.end && other.base.start < self.base.end
            || self.base.is_empty() && other.base.is_empty() && self.base == other.base
    }
}

fn hunks<'a>(base: &[&'a str], changed: &[&'a str]) -> Vec<Hunk<'a>> {
    let ops = capture_diff_slices(Algorithm::Myers, base, changed);
    let changes = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    changes
        .map(|op| Hunk { base: op.old_range(), lines: changed[op.new_range()].to_vec() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_different_lines_are_merged_and_overlapping_ones_are_not() {
        let base = "a\nb\nc\nd\n";
        assert_eq!(merge(base, "a\nB\nc\nd\n", "a\nb\nc\nd\ne\n").unwrap(), "a\nB\nc\nd\ne\n");
        assert_eq!(merge(base, "a\nc\nd\n", "a\nc\nd\n").unwrap(), "a\nc\nd\n");
        assert_eq!(merge(base, "a\nB\nc\nd\n", "a\nX\nc\nd\n"), None);
        assert_eq!(merge(base, "a\nb\nc\nd\nx\n", "a\nb\nc\nd\ny\n"), None);
    }

    #[test]
    fn line_endings_are_kept_line_by_line() {
        assert_eq!(restore_line_endings("a\r\nb\nc\r\n", "a\nx\nb\nc\n"), "a\r\nx\r\nb\nc\r\n");
    }

    #[test]
    fn a_difference_names_the_lines() {
        let lines = diff("a\nb\nc\n", "a\nx\nc\n", 1);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["@@ -1,3 +1,3 @@", "a", "b", "x", "c"]);
    }
}
