//! `toolcrib disconnect`: undoes the changes of `connect`, and keeps what was changed since.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use toolcrib_client_files::{DiffLine, UndoError, Undone, get, undo};
use toolcrib_mcp::config::ClientKind;

use super::client_file::ClientFile;
use super::confirm::{self, Answer};
use super::preview::{KnownWords, preview};
use super::record::{Purpose, Record, Records};
use super::report::{FileReport, Status, print_failures};
use super::status::{ConnectedClient, connected_clients};
use crate::args::DisconnectArgs;
use crate::commands::import::discover::import_text;
use crate::commands::import::write_lock::WriteLock;
use crate::output::{Failure, Output, print_stderr};

#[derive(Serialize)]
struct DisconnectReport {
    clients: Vec<FileReport>,
    /// Whether files were changed.
    written: bool,
    /// Whether servers of these clients were moved to our config.
    #[serde(skip)]
    had_servers: bool,
}

/// A file whose original content is restored.
struct Restoration {
    file: ClientFile,
    /// The new text, or `None` if the file is removed.
    text: Option<String>,
    records: Vec<Record>,
    report: FileReport,
    lines: Vec<DiffLine>,
}

pub(crate) fn run(args: &DisconnectArgs, output: &mut Output) -> Result<bool, Failure> {
    confirm::check(args.yes, output.is_json())?;
    let _lock = WriteLock::take()?;
    let records = Records::load()?;
    let mut failed = Vec::new();
    for client in &args.clients {
        let is_damaged = records.damaged.iter().any(|record| record.client == Some(*client));
        if !is_damaged && !records.all.iter().any(|record| record.client == *client) {
            failed.push(FileReport::failed(*client, &not_connected(*client)));
        }
    }
    let is_wanted = |client| args.clients.is_empty() || args.clients.contains(&client);
    for damaged in &records.damaged {
        match damaged.client {
            Some(client) if is_wanted(client) => {
                failed.push(FileReport::failed(client, &damaged.failure()));
            }
            Some(_) => {}
            None => {
                let failure = damaged.failure();
                print_stderr(&format!("warning: {failure}\nhint: {}", failure.hint()));
            }
        }
    }
    let mut by_file: BTreeMap<&Path, Vec<&Record>> = BTreeMap::new();
    for record in records.all.iter().filter(|record| is_wanted(record.client)) {
        by_file.entry(&record.file).or_default().push(record);
    }
    let mut restorations = Vec::new();
    for of_file in by_file.into_values() {
        let client = of_file[0].client;
        match plan(&records, of_file) {
            Ok(restoration) => restorations.push(restoration),
            Err(failure) => failed.push(FileReport::failed(client, &failure)),
        }
    }
    let mut written = false;
    if !restorations.is_empty() {
        if !output.is_json() {
            for restoration in &restorations {
                restoration.report.print_plan(&restoration.lines, output)?;
            }
        }
        match confirm::ask(args.yes, restorations.len(), output)? {
            Answer::Yes => {
                for restoration in &mut restorations {
                    written |= restoration.apply(&records);
                }
            }
            Answer::No => {}
        }
    }
    let is_empty = records.all.is_empty();
    let records = restorations.iter().flat_map(|restoration| &restoration.records);
    let had_servers = records.map(|record| record.purpose).any(|of| of == Purpose::Servers);
    let mut clients: Vec<FileReport> =
        restorations.into_iter().map(|restoration| restoration.report).collect();
    clients.extend(failed);
    finish(&DisconnectReport { clients, written, had_servers }, is_empty, output)
}

fn finish(report: &DisconnectReport, is_empty: bool, output: &mut Output) -> Result<bool, Failure> {
    let has_failures = report.clients.iter().any(|client| client.status == Status::Failed);
    if output.is_json() {
        output.document(report)?;
    } else {
        print(report, is_empty, output)?;
    }
    output.finish()?;
    if has_failures {
        print_failures(&report.clients);
        return Err(Failure::AlreadyReported);
    }
    Ok(report.written)
}

fn print(report: &DisconnectReport, is_empty: bool, output: &mut Output) -> Result<(), Failure> {
    if report.clients.is_empty() && is_empty {
        return output.line("No client is connected.");
    }
    let done = report.clients.iter().filter(|client| client.status == Status::Disconnected);
    let mut names: Vec<&str> = done.map(|client| client.client.name()).collect();
    names.dedup();
    if !names.is_empty() {
        output.line(&format!("Disconnected {}.", names.join(", ")))?;
        if report.had_servers {
            output.line("The servers stay in toolcrib.toml, where you can remove them by hand.")?;
        }
    } else if !report.written && !report.clients.is_empty() {
        output.line("Nothing was changed.")?;
    }
    Ok(())
}

fn not_connected(client: ClientKind) -> Failure {
    let connected = connected_clients().unwrap_or_default();
    let names: Vec<String> = connected.iter().map(ConnectedClient::to_string).collect();
    let hint = match names.as_slice() {
        [] => "no client is connected; remove an entry that you added by hand in the client's file"
            .to_owned(),
        names => format!("connected: {}", names.join(", ")),
    };
    Failure::input(client.name(), &"not connected by `toolcrib connect`", hint)
}

/// Plans the undo of all changes of one file.
fn plan(records: &Records, mut of_file: Vec<&Record>) -> Result<Restoration, Failure> {
    let path = of_file[0].file.clone();
    let client = of_file[0].client;
    let file = ClientFile::read(&path)?;
    let mut text = file.text.clone();
    let mut known = KnownWords::default();
    let mut done = Vec::new();
    while !of_file.is_empty() {
        // The latest change is undone first, because this gives exactly the text that the change before it wrote.
        let latest = of_file.iter().position(|record| text.as_ref() == Some(&record.connected));
        let record = of_file.remove(latest.unwrap_or(of_file.len() - 1));
        text = match &text {
            Some(current) => match undo(record.format(), record.change(), current) {
                Ok(Undone::Original(text)) => text,
                Ok(Undone::Merged(text)) => Some(text),
                Ok(Undone::Empty) => None,
                Err(error) => return Err(undo_failure(records, record, &error)),
            },
            // The file did not exist before, and does not exist now.
            None if record.original.is_none() => None,
            None => return Err(missing_file(records, record)),
        };
        add_known_words(record, &mut known);
        done.push(record.clone());
    }
    let mut report = FileReport::new(client, &path, Status::Planned);
    if text.is_none() && file.text.is_some() {
        report.notes.push("the file is removed, because `connect` created it".into());
    }
    let before = file.text.clone().unwrap_or_default();
    let lines = preview(&before, text.as_deref().unwrap_or_default(), &known);
    report.set_diff(&lines);
    Ok(Restoration { file, text, records: done, report, lines })
}

/// Adds those words of a record's texts that may be shown.
fn add_known_words(record: &Record, known: &mut KnownWords) {
    let format = record.format();
    for text in record.original.iter().chain([&record.connected]) {
        let Ok(value) = format.parse(text) else { continue };
        known.add_keys(&value);
        for value in record.paths.iter().filter_map(|path| get(&value, path)) {
            known.add_numbers(value);
        }
        if record.purpose == Purpose::Servers
            && let Ok(imported) = import_text(record.client, &record.file, text, Path::new(""))
        {
            known.add_servers(&imported);
        }
    }
    let Ok(connected) = format.parse(&record.connected) else { return };
    let original = format.parse(record.original.as_deref().unwrap_or_default()).unwrap_or_default();
    for path in &record.paths {
        // What `connect` added is not secret.
        if let (Some(value), None) = (get(&connected, path), get(&original, path)) {
            known.add_all(value);
        }
    }
}

impl Restoration {
    /// Returns whether the file was changed or its record removed.
    fn apply(&mut self, records: &Records) -> bool {
        let changed = if self.text == self.file.text {
            Ok(())
        } else {
            self.file.write(self.text.as_deref()).map(|_| ())
        };
        let is_changed = changed.is_ok();
        let removed = changed
            .and_then(|()| self.records.iter().try_for_each(|record| records.remove(record)));
        match removed {
            Ok(()) => self.report.status = Status::Disconnected,
            Err(failure) => self.report.set_failed(&failure),
        }
        is_changed
    }
}

fn missing_file(records: &Records, record: &Record) -> Failure {
    let backup = records.backup(record).map(|path| path.display().to_string()).unwrap_or_default();
    let hint = format!(
        "to restore it, copy `{backup}` to this path; to forget the file, delete `{}`",
        records.path(record).display()
    );
    Failure::input(format!("`{}`", record.file.display()), &"the file no longer exists", hint)
}

/// Returns the failure for a change that cannot be undone, with the path of the backup.
pub(super) fn undo_failure(records: &Records, record: &Record, error: &UndoError) -> Failure {
    let place = format!("`{}`", record.file.display());
    let original = match records.backup(record) {
        Some(backup) => format!("the original file is in `{}`", backup.display()),
        None => "there was no file before".to_owned(),
    };
    let forget = records.path(record).display().to_string();
    match error {
        UndoError::Conflicts(conflicts) => {
            let described: Vec<String> = conflicts
                .iter()
                .map(|conflict| format!("`{}` {}", conflict.path.join("."), conflict.problem))
                .collect();
            let problem = format!("changed since `toolcrib connect`: {}", described.join("; "));
            let hint = format!(
                "remove or rename these keys by hand, then run the command again; {original}; to keep the file as it \
                 is, delete `{forget}`"
            );
            Failure::input(place, &problem, hint)
        }
        UndoError::File(problem) => {
            Failure::input(place, problem, format!("{}; {original}", problem.hint))
        }
    }
}
