//! What `connect` and `disconnect` report about each file.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_client_files::DiffLine;
use toolcrib_mcp::config::ClientKind;
use toolcrib_text::clean::one_line;

use super::preview::sign;
use crate::commands::import::discover::ServerReason;
use crate::output::{Failure, Output, print_stderr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    /// The change was shown, but not made.
    Planned,
    Connected,
    AlreadyConnected,
    /// The user has added an entry for Toolcrib by hand, so the file is not changed.
    ByHand,
    Disconnected,
    Failed,
}

/// A server that was moved to our config, and its name there.
#[derive(Debug, Serialize)]
pub(super) struct MovedServer {
    pub(super) name: String,
    pub(super) imported_as: String,
}

/// The report on one file of a client.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    pub(super) client: ClientKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<PathBuf>,
    pub(super) status: Status,
    /// The name of our entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<String>,
    pub(super) servers: Vec<MovedServer>,
    /// Servers that stay disabled, by their names in our config.
    pub(super) disabled: Vec<ServerReason>,
    /// Servers that stay in the client's file.
    pub(super) stays: Vec<ServerReason>,
    pub(super) notes: Vec<String>,
    /// The change, with `***` in place of everything that may be a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
    /// The backup of the original file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backup: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl FileReport {
    pub(super) fn new(client: ClientKind, file: &Path, status: Status) -> Self {
        Self {
            client,
            file: Some(file.to_owned()),
            status,
            entry: None,
            servers: Vec::new(),
            disabled: Vec::new(),
            stays: Vec::new(),
            notes: Vec::new(),
            diff: None,
            backup: None,
            error: None,
            hint: None,
        }
    }

    pub(super) fn failed(client: ClientKind, failure: &Failure) -> Self {
        let mut report = Self::new(client, Path::new(""), Status::Failed);
        report.file = None;
        report.set_failed(failure);
        report
    }

    pub(super) fn set_failed(&mut self, failure: &Failure) {
        self.status = Status::Failed;
        self.error = Some(failure.to_string());
        self.hint = Some(failure.hint());
    }

    pub(super) fn set_diff(&mut self, lines: &[DiffLine]) {
        let lines = lines.iter().map(|line| format!("{}{}\n", sign(line.kind), line.text));
        self.diff = Some(lines.collect());
    }

    /// Prints the plan for the file, with the diff.
    pub(super) fn print_plan(
        &self,
        lines: &[DiffLine],
        output: &mut Output,
    ) -> Result<(), Failure> {
        self.print_head(output)?;
        for line in lines {
            output.diff_line(sign(line.kind), &line.text)?;
        }
        output.line("")
    }

    /// Prints the client, the file and the notes.
    pub(super) fn print_head(&self, output: &mut Output) -> Result<(), Failure> {
        let file = self.file.as_deref().unwrap_or(Path::new("")).display().to_string();
        output.line(&format!("{}: {}", self.client, one_line(&file)))?;
        let disabled = self.disabled.iter();
        let disabled =
            disabled.map(|server| format!("`{}` stays disabled: {}", server.server, server.reason));
        let renamed = self.servers.iter().filter(|server| server.name != server.imported_as);
        let renamed = renamed.map(|MovedServer { name, imported_as }| {
            format!(
                "`{name}` is imported as `{imported_as}`, because the config has a different server with that name"
            )
        });
        let stays = self.stays.iter();
        let stays = stays
            .map(|server| format!("`{}` stays in this file: {}", server.server, server.reason));
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        for text in disabled.chain(renamed).chain(stays).chain(notes) {
            // Names in these files are untrusted text, and must not look like separate lines.
            output.wrapped(&format!("  {}", one_line(&text)))?;
        }
        Ok(())
    }
}

/// Prints the errors of files to standard error.
pub(super) fn print_failures(reports: &[FileReport]) {
    for report in reports {
        if let (Some(error), Some(hint)) = (&report.error, &report.hint) {
            print_stderr(&format!("error: {error}\nhint: {hint}"));
        }
    }
}
