//! `toolcrib import`: combines the servers of other clients into one config.
//!
//! The printed config contains no secrets: `***` replaces each literal secret. Only the file that `--write` names
//! contains the secrets.

pub(super) mod client_files;
pub(super) mod discover;
pub(super) mod merge;
mod print;
mod sent_references;
pub(super) mod target;
pub(super) mod write_lock;

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_mcp::config::{masked_for_preview, server_toml};
use toolcrib_text::clean::one_line;

use crate::args::ImportArgs;
use crate::output::{Failure, Output, print_stderr};
use crate::terminal;
use discover::{DiscoveredFiles, FoundFile, SkippedFile, UnreadableFile, discover};
use merge::ServerMerge;
use target::Target;
use write_lock::WriteLock;

#[derive(Serialize)]
struct ImportReport {
    found: Vec<FoundFile>,
    broken: Vec<UnreadableFile>,
    /// Files in the working folder that were not read.
    left_out: Vec<SkippedFile>,
    /// The new servers, in the format of the config; literal secrets are `***`.
    toml: String,
    /// Whether `toml` contains a `***`.
    masked: bool,
    /// The names of the new servers.
    added: Vec<String>,
    /// The file that the new servers were written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<PathBuf>,
}

pub(crate) fn run(args: &ImportArgs, output: &mut Output) -> Result<bool, Failure> {
    let _lock = match args.write {
        Some(_) => WriteLock::take_if_available()?,
        None => None,
    };
    let target = args.write.as_deref().map(Target::open).transpose()?;
    let existing = target.as_ref().map(Target::servers).unwrap_or_default();
    let mut merge = ServerMerge::new(existing);
    let DiscoveredFiles { found, broken, left_out } =
        discover(args.from, args.project, &mut merge)?;
    let mut report = ImportReport {
        found,
        broken,
        left_out,
        toml: String::new(),
        masked: false,
        added: merge.added.clone(),
        written: None,
    };
    add_preview(&merge, &mut report);
    if let (Some(target), false) = (target, report.added.is_empty()) {
        target.write(merge.into_servers(), &report.added)?;
        report.written.clone_from(&args.write);
    }
    if output.is_json() {
        output.document(&report)?;
    } else {
        print(&report, args.write.as_deref(), output)?;
    }
    output.finish()?;
    if report.broken.is_empty() {
        Ok(!report.found.is_empty())
    } else {
        Err(Failure::AlreadyReported)
    }
}

/// Adds the new servers to the report, with their secrets masked.
fn add_preview(merge: &ServerMerge, report: &mut ImportReport) {
    let mut tables = Vec::new();
    for name in &merge.added {
        let Some(server) = merge.server(name) else { continue };
        let shown = masked_for_preview(server);
        report.masked |= shown != *server;
        tables.push(server_toml(name, &shown));
    }
    report.toml = tables.join("\n");
}

fn print(report: &ImportReport, write: Option<&Path>, output: &mut Output) -> Result<(), Failure> {
    if report.found.is_empty() && report.broken.is_empty() {
        print_stderr("no MCP servers found in the files of other clients");
        note_skipped_files(report);
        return Ok(());
    }
    if !report.found.is_empty() {
        let files = print::files(&report.found, terminal::width());
        // Without `--write`, standard output contains only the config, so the table goes to standard error.
        match write {
            Some(_) => output.line(&files)?,
            None => print_stderr(&format!("{files}\n")),
        }
    }
    for file in &report.broken {
        let place = one_line(&file.file.display().to_string());
        print_stderr(&format!("error: `{place}`: {}\nhint: {}", file.error, file.hint));
    }
    note_skipped_files(report);
    match (write, report.added.len()) {
        (Some(path), 0) => output.line(&format!("\n`{}` already has all of them.", path.display())),
        (Some(path), count) => {
            let servers = if count == 1 { "1 server" } else { &format!("{count} servers") };
            output.line(&format!("\nAdded {servers} to `{}`.", path.display()))
        }
        (None, 0) => Ok(()),
        (None, _) => {
            if report.masked {
                print_stderr(
                    "note: secrets are shown as `***`; `--write F` writes them to the file",
                );
            }
            output.line(report.toml.trim_end())
        }
    }
}

/// Prints a note for each file that was not read.
fn note_skipped_files(report: &ImportReport) {
    for file in &report.left_out {
        let place = one_line(&file.file.display().to_string());
        print_stderr(&format!("note: `{place}` was not read: {}", file.reason));
    }
}
