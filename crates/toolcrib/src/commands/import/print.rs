//! The list of files that servers were imported from, as text: one block for each file.
//!
//! Rejected: a table. Paths and notes are long, so it was wider than most terminals, which cut words in the middle.

use toolcrib_text::clean::one_line;

use super::discover::FoundFile;
use crate::terminal::{labelled, wrap};

/// Width of the labels in a block, in columns.
const LABEL_WIDTH: usize = 11;

/// Formats the files for a terminal with this width.
pub(super) fn files(found: &[FoundFile], width: usize) -> String {
    let blocks: Vec<String> = found.iter().map(|file| block(file, width)).collect();
    blocks.join("\n\n")
}

/// Formats one file as a block: the client and the path, then the servers and the notes below them.
fn block(file: &FoundFile, width: usize) -> String {
    let path = one_line(&file.file.display().to_string());
    let mut lines = vec![wrap(&format!("{}: {path}", file.client.name()), width)];
    if !file.servers.is_empty() {
        lines.push(labelled("  servers", &file.servers.join(", "), LABEL_WIDTH, width));
    }
    let notes = notes(file);
    lines.extend(notes.iter().map(|note| labelled("  note", note, LABEL_WIDTH, width)));
    lines.join("\n")
}

/// Returns notes on the servers of a file: which are disabled, which were not imported, and the warnings.
fn notes(file: &FoundFile) -> Vec<String> {
    let disabled = file.disabled.iter();
    let disabled =
        disabled.map(|server| format!("`{}` stays disabled: {}", server.server, server.reason));
    let skipped = file.skipped.iter();
    let skipped =
        skipped.map(|server| format!("`{}` is not imported: {}", server.server, server.reason));
    // Names in these files are untrusted text, and must not look like separate lines.
    disabled.chain(skipped).chain(file.odd.iter().cloned()).map(|text| one_line(&text)).collect()
}
