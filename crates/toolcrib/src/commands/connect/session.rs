//! Shows the planned changes, asks the user, and makes the changes.

use std::path::PathBuf;

use serde::Serialize;
use toolcrib_client_files::DiffLine;

use super::client_file::Written;
use super::confirm::{self, Answer};
use super::launcher::LaunchReason;
use super::plan::{FilePlan, PlannedChange};
use super::record::Records;
use super::report::{FileReport, Status, print_failures};
use super::{preview, running};
use crate::args::ConnectArgs;
use crate::output::{Failure, Output};

#[derive(Serialize)]
pub(super) struct ConnectReport {
    pub(super) clients: Vec<FileReport>,
    /// The config that the servers are added to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) config: Option<PathBuf>,
    /// The names of the new servers in the config.
    pub(super) added: Vec<String>,
    /// Why clients start Toolcrib with the command in their files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) launch: Option<LaunchReason>,
    /// Whether files were changed.
    pub(super) written: bool,
    /// Whether the config was changed. It is written first, so this may be true although no client's file was changed.
    pub(super) config_written: bool,
}

/// Shows the plans, asks, and makes the changes.
pub(super) struct Session<'a> {
    pub(super) args: &'a ConnectArgs,
    pub(super) records: &'a Records,
    pub(super) plans: Vec<FilePlan>,
    pub(super) report: ConnectReport,
}

impl Session<'_> {
    pub(super) fn run(
        mut self,
        write_config: impl FnOnce() -> Result<bool, Failure>,
        output: &mut Output,
    ) -> Result<bool, Failure> {
        let mut changes: Vec<(usize, PlannedChange, Vec<DiffLine>)> = Vec::new();
        for (index, FilePlan { mut report, change }) in self.plans.drain(..).enumerate() {
            if let Some(change) = change {
                prepare(&mut report, &change);
                let before = change.file.text.as_deref().unwrap_or_default();
                let lines = preview::preview(before, &change.record.connected, &change.known);
                report.set_diff(&lines);
                changes.push((index, change, lines));
            }
            self.report.clients.push(report);
        }
        if !output.is_json() {
            self.print_plan(&changes, output)?;
        }
        if !changes.is_empty() {
            let files = changes.len() + usize::from(!self.report.added.is_empty());
            if confirm::ask(self.args.yes, files, output)? == Answer::Yes {
                self.report.config_written = write_config()?;
                for (index, change, _) in &changes {
                    apply(self.records, change, &mut self.report.clients[*index]);
                }
                let is_changed = |client: &FileReport| client.status == Status::Connected;
                self.report.written =
                    self.report.config_written || self.report.clients.iter().any(is_changed);
            }
        }
        self.finish(!changes.is_empty(), output)
    }

    fn print_plan(
        &self,
        changes: &[(usize, PlannedChange, Vec<DiffLine>)],
        output: &mut Output,
    ) -> Result<(), Failure> {
        for (index, report) in self.report.clients.iter().enumerate() {
            match (changes.iter().find(|(of, ..)| *of == index), report.status) {
                (Some((_, _, lines)), _) => report.print_plan(lines, output)?,
                (None, Status::AlreadyConnected) => {
                    output.line(&format!("{}: already connected", report.client))?;
                }
                (None, Status::Failed) => {}
                (None, _) => report.print_head(output)?,
            }
        }
        let Some(config) = self.report.config.as_ref().filter(|_| !self.report.added.is_empty())
        else {
            return Ok(());
        };
        let count = self.report.added.len();
        let servers = if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
        output.wrapped(&format!(
            "To be added to `{}`: {servers} ({})\n",
            config.display(),
            self.report.added.join(", ")
        ))?;
        if changes.len() > 1 {
            output.wrapped(
                "All connected clients can use all of these servers. `toolcrib docs gateway#profiles` describes how to limit a client.\n",
            )?;
        }
        Ok(())
    }

    fn finish(self, had_changes: bool, output: &mut Output) -> Result<bool, Failure> {
        let Self { report, .. } = self;
        let has_failures = report.clients.iter().any(|client| client.status == Status::Failed);
        if output.is_json() {
            output.document(&report)?;
        } else {
            print_result(&report, had_changes, output)?;
        }
        output.finish()?;
        if has_failures {
            print_failures(&report.clients);
            return Err(Failure::AlreadyReported);
        }
        Ok(report.written || !had_changes && !report.clients.is_empty())
    }
}

/// Adds a note to the report if the client is running.
fn prepare(report: &mut FileReport, change: &PlannedChange) {
    if let Some(process) = running::process(change.record.client) {
        report.notes.push(format!(
            "{} is running (process {process}): quit it now, because it may write this file again, or restart it \
             afterwards",
            change.record.client
        ));
    }
}

fn apply(records: &Records, change: &PlannedChange, report: &mut FileReport) {
    let PlannedChange { file, record, .. } = change;
    let previous = records.find(record.client, record.purpose, &record.file);
    let saved = file
        .check_writable()
        .and_then(|()| file.check_unchanged())
        .and_then(|()| records.save(record, previous));
    if let Err(failure) = saved {
        report.set_failed(&failure);
        return;
    }
    match file.write(Some(&record.connected)) {
        Ok(written) => {
            report.status = Status::Connected;
            report.backup = records.backup(record);
            let note = match written {
                Written::Kept => return,
                Written::Overwritten => "the client has written the file again already; check it",
                Written::Unreadable => "the file was written, but cannot be read again; check it",
            };
            report.notes.push(note.to_owned());
        }
        Err(failure) => {
            // The record describes a change that was not made.
            let restored = previous
                .map_or_else(|| records.remove(record), |old| records.save(old, Some(record)));
            report.set_failed(&failure);
            if let Err(failure) = restored {
                report.notes.push(failure.to_string());
            }
        }
    }
}

fn print_result(
    report: &ConnectReport,
    had_changes: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let connected: Vec<&FileReport> =
        report.clients.iter().filter(|client| client.status == Status::Connected).collect();
    if report.clients.is_empty() {
        return output.line("No client was found.");
    }
    if connected.is_empty() {
        return match &report.config {
            Some(config) if report.config_written => output.wrapped(&format!(
                "Only `{}` was changed. The servers are now in it, and still in the files of the clients.",
                config.display()
            )),
            _ if had_changes => output.line("Nothing was changed."),
            _ => Ok(()),
        };
    }
    let mut names: Vec<&str> = connected.iter().map(|report| report.client.name()).collect();
    names.dedup();
    output.line(&format!("Connected {}.", names.join(", ")))?;
    for backup in connected.iter().filter_map(|report| report.backup.as_ref()) {
        output.line(&format!("  backup: {}", backup.display()))?;
    }
    output.line("Restart these clients. `toolcrib disconnect` undoes the changes.")
}
