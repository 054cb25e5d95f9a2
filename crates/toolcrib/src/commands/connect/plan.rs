//! Decides what `connect` changes in the files of one client, without changing anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_client_files::{
    Change, Edit, KeyPath, Place, UndoError, Undone, get, replace_entries, undo,
};
use toolcrib_mcp::config::ClientKind;

use super::client_file::ClientFile;
use super::client_format::{self, Endpoint};
use super::parsed_file::{ParsedFile, file_failure};
use super::preview::KnownWords;
use super::record::{Purpose, Record, Records};
use super::report::{FileReport, Status};
use crate::commands::import::client_files::ClientFolders;
use crate::commands::import::merge::ServerMerge;
use crate::output::Failure;

/// The names for our entry, in order of preference. The second is used if another server with the first name stays in
/// the file.
const ENTRY_NAMES: [&str; 2] = ["toolcrib", "toolcrib-gateway"];

/// A change of one file that has not been made yet.
pub(super) struct PlannedChange {
    pub(super) file: ClientFile,
    /// What is saved so that the change can be undone. It contains the new text.
    pub(super) record: Record,
    pub(super) known: KnownWords,
}

/// What was found out about a file, and how it would be changed.
pub(super) struct FilePlan {
    pub(super) report: FileReport,
    pub(super) change: Option<PlannedChange>,
}

/// Our entry in a client's file.
struct OwnEntry {
    name: String,
    value: Value,
}

/// Plans the changes for clients. Servers are collected in `merge`.
pub(super) struct Planner<'a> {
    pub(super) folders: &'a ClientFolders,
    pub(super) records: &'a Records,
    pub(super) endpoint: Endpoint,
    /// The config that servers are moved to.
    pub(super) config: &'a Path,
    pub(super) merge: ServerMerge,
}

impl Planner<'_> {
    /// Plans the changes of a client's files. `is_named` tells whether the user named the client.
    pub(super) fn plan(
        &mut self,
        client: ClientKind,
        is_named: bool,
    ) -> Result<Vec<FilePlan>, Failure> {
        let existing = self.folders.user_files(client).into_iter().filter(|file| {
            // A link that leads to no file must not be replaced by a file.
            file.is_file() || file.is_symlink() && !file.exists()
        });
        let mut files: Vec<ParsedFile> =
            existing.map(|file| ParsedFile::read(client, &file)).collect::<Result<_, _>>()?;
        if let Some(damaged) = self.records.damaged.iter().find(|one| one.client == Some(client)) {
            return Err(damaged.failure());
        }
        // A connected client whose file was deleted is connected again.
        let was_connected = || {
            let mut records = self.records.all.iter();
            records.any(|record| record.client == client && record.purpose == Purpose::Servers)
        };
        if files.is_empty() && !is_named && !(was_connected() && self.new_file(client).is_ok()) {
            return Ok(Vec::new());
        }
        // Symbolic links may lead to the same file.
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(file.file.path.clone()));
        if let Some(by_hand) = files.iter().find_map(|file| self.entry_by_hand(client, file)) {
            return Ok(vec![by_hand]);
        }
        for file in &files {
            self.check_config(client, file)?;
        }
        let main = files.iter().position(|file| self.recorded_entry(client, file).is_some());
        let main = main.or_else(|| files.iter().position(ParsedFile::has_servers));
        let main =
            main.or_else(|| files.iter().position(|file| !file.is_settings_of_vs_code(client)));
        let main = if let Some(main) = main {
            main
        } else {
            files.push(ParsedFile::read(client, &self.new_file(client)?)?);
            files.len() - 1
        };
        let mut plans = Vec::new();
        // If the client has several files, only one gets the entry. Otherwise, the client would start Toolcrib twice.
        let mut merge = self.merge.clone();
        for (index, file) in files.into_iter().enumerate() {
            let is_main = index == main;
            plans.extend(self.plan_file(client, file, is_main, &mut merge)?);
        }
        self.merge = merge;
        Ok(plans)
    }

    /// Returns the path of the file to create for a client that has none.
    fn new_file(&self, client: ClientKind) -> Result<PathBuf, Failure> {
        let files = self.folders.user_files(client);
        let folder_of = |file: &PathBuf| match client {
            // The file is in the home folder, which exists even if Claude Code is not installed.
            ClientKind::ClaudeCode => file.with_file_name(".claude"),
            _ => file.parent().map(Path::to_owned).unwrap_or_default(),
        };
        let installed = files.iter().find(|file| folder_of(file).is_dir());
        installed.cloned().ok_or_else(|| {
            let expected = files.first().map(folder_of).unwrap_or_default();
            Failure::input(
                client.name(),
                &format!("not found: `{}` does not exist", expected.display()),
                "start the client once, so that it creates the folder; `toolcrib connect` without a name connects \
                 the clients that are found",
            )
        })
    }

    /// Returns the name of the entry that an earlier `connect` added to this file, if it is still there.
    fn recorded_entry(&self, client: ClientKind, file: &ParsedFile) -> Option<String> {
        let record = self.records.find(client, Purpose::Servers, &file.file.path)?;
        let written = record.format().parse(&record.connected).ok()?;
        let is_entry =
            |path: &&KeyPath| get(&written, path).is_some() && get(&file.value, path).is_some();
        record.paths.iter().find(is_entry)?.last().cloned()
    }

    /// Fails if the client uses another config. Its servers are there, and it would lose them.
    fn check_config(&self, client: ClientKind, file: &ParsedFile) -> Result<(), Failure> {
        let record = self.records.find(client, Purpose::Servers, &file.file.path);
        let config = record.and_then(|record| record.config.as_deref());
        let Some(config) = config.filter(|_| self.recorded_entry(client, file).is_some()) else {
            return Ok(());
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if real(config) == real(self.config) {
            return Ok(());
        }
        let problem = format!(
            "{client} is connected with the config `{}`, and not with `{}`",
            config.display(),
            self.config.display()
        );
        let hint =
            format!("run `toolcrib disconnect {client}` first, or use the config that it has");
        Err(Failure::input(format!("`{}`", file.file.path.display()), &problem, hint))
    }

    /// Returns a plan without changes if the user has added an entry for Toolcrib. That entry may use another config,
    /// so the servers must not be moved to this one.
    fn entry_by_hand(&self, client: ClientKind, file: &ParsedFile) -> Option<FilePlan> {
        let recorded = self.recorded_entry(client, file);
        let by_hand =
            file.imported.own_entries.iter().find(|name| recorded.as_ref() != Some(name))?;
        let mut report = FileReport::new(client, &file.file.path, Status::ByHand);
        report.entry = Some(by_hand.clone());
        report.notes.push(format!(
            "the entry `{by_hand}` already starts Toolcrib, so nothing is changed; to let `toolcrib connect` manage this \
             file, remove the entry"
        ));
        Some(FilePlan { report, change: None })
    }

    fn plan_file(
        &self,
        client: ClientKind,
        parsed: ParsedFile,
        is_main: bool,
        merge: &mut ServerMerge,
    ) -> Result<Option<FilePlan>, Failure> {
        let mut report = FileReport::new(client, &parsed.file.path, Status::Planned);
        let recorded = self.recorded_entry(client, &parsed);
        let removed =
            parsed.moved_servers(client, recorded.as_deref(), self.folders, merge, &mut report);
        let entry = is_main.then(|| self.entry(client, &parsed, &removed));
        report.entry = entry.as_ref().map(|entry| entry.name.clone());
        if removed.is_empty() {
            let Some(entry) = &entry else { return Ok(None) };
            let path = entry_path(&parsed.container, &entry.name);
            if get(&parsed.value, &path) == Some(&entry.value) {
                report.status = Status::AlreadyConnected;
                return Ok(Some(FilePlan { report, change: None }));
            }
        }
        parsed.file.check_writable()?;
        if let Some(entry) = &entry {
            parsed.add_notes(client, &entry.name, &mut report);
        }
        let change = self.change(client, parsed, entry, &removed)?;
        Ok(Some(FilePlan { report, change: Some(change) }))
    }

    /// Returns the name and the value of our entry. If the user has changed the entry, the change stays.
    fn entry(&self, client: ClientKind, parsed: &ParsedFile, removed: &[String]) -> OwnEntry {
        let value = client_format::entry(client, &self.endpoint);
        let recorded = self.recorded_entry(client, parsed);
        let record = self.records.find(client, Purpose::Servers, &parsed.file.path);
        if let (Some(name), Some(record)) = (recorded, record) {
            let path = entry_path(&parsed.container, &name);
            let written = record.format().parse(&record.connected).ok();
            let written = written.as_ref().and_then(|written| get(written, &path));
            let now = get(&parsed.value, &path).filter(|now| Some(*now) != written);
            return OwnEntry { value: now.cloned().unwrap_or(value), name };
        }
        let is_free = |name: &&&str| {
            removed.iter().any(|removed| removed == **name)
                || get(&parsed.value, &entry_path(&parsed.container, name)).is_none()
        };
        let name = ENTRY_NAMES.iter().find(is_free).unwrap_or(&ENTRY_NAMES[0]);
        OwnEntry { name: (*name).to_owned(), value }
    }

    fn change(
        &self,
        client: ClientKind,
        parsed: ParsedFile,
        entry: Option<OwnEntry>,
        removed: &[String],
    ) -> Result<PlannedChange, Failure> {
        let ParsedFile { file, value, imported, container } = parsed;
        let mut known = KnownWords::default();
        known.add_keys(&value);
        known.add_servers(&imported);
        known.add_numbers(get(&value, &container).unwrap_or(&Value::Null));
        let own_path = entry.as_ref().map(|entry| entry_path(&container, &entry.name));
        let earlier = self.records.find(client, Purpose::Servers, &file.path);
        if let Some(record) = earlier
            && let Ok(written) = record.format().parse(&record.connected)
        {
            // What an earlier `connect` wrote is not secret.
            let ours = record.paths.iter().filter_map(|path| get(&written, path));
            ours.for_each(|value| known.add_all(value));
        }
        let edits = match entry {
            Some(OwnEntry { name, value }) => {
                known.add_all(&value);
                known.add_all(&Value::from(entry_path(&container, &name)));
                replace_entries(&container, &name, value, removed)
            }
            None => removals(&container, removed),
        };
        let text = file.text.clone().unwrap_or_default();
        let edited = client_format::format(client)
            .edit(&text, &edits)
            .map_err(|problem| file_failure(&file.path, &problem))?;
        let mut paths: Vec<KeyPath> = edits.iter().map(|edit| edit.path().to_vec()).collect();
        let mut original = file.text.clone();
        if let Some(record) = earlier {
            let earlier = record.paths.iter().filter(|path| !paths.contains(path));
            let earlier: Vec<KeyPath> = earlier.cloned().collect();
            paths.extend(earlier);
            original = if text.trim().is_empty() {
                // The file was deleted or emptied, so the earlier original is all that there is.
                record.original.clone()
            } else {
                self.original_with_later_edits(record, &text, &value, own_path)?
            };
        }
        let mut record =
            self.records.create(client, Purpose::Servers, &file.path, original, edited, paths);
        record.config = Some(self.config.to_owned());
        Ok(PlannedChange { file, record, known })
    }

    /// Returns the original of an existing record, with the edits that were made since. The new record restores it. A
    /// change of our own entry, at `entry`, is no conflict here, because the entry stays. If the user has added a moved
    /// server again, the added one is the original.
    fn original_with_later_edits(
        &self,
        record: &Record,
        current: &str,
        value: &Value,
        entry: Option<KeyPath>,
    ) -> Result<Option<String>, Failure> {
        let failed =
            |error: &UndoError| super::disconnect::undo_failure(self.records, record, error);
        let format = record.format();
        let place = Place::Last;
        let entry = entry.filter(|path| get(value, path).is_some());
        let copy = entry.map(|path| Edit::Copy { path, from: current, place });
        let copied = copy.map(|copy| format.edit(&record.connected, &[copy])).transpose();
        let edited = copied.map_err(|problem| failed(&problem.into()))?;
        let edited = edited.as_deref().unwrap_or(&record.connected);
        let written = format.parse(edited).map_err(|problem| failed(&problem.into()))?;
        let is_added_again =
            |path: &KeyPath| get(&written, path).is_none() && get(value, path).is_some();
        let paths: Vec<KeyPath> =
            record.paths.iter().filter(|path| !is_added_again(path)).cloned().collect();
        match undo(format, Change { edited, paths: &paths, ..record.change() }, current) {
            Ok(Undone::Original(text)) => Ok(text),
            Ok(Undone::Merged(text)) => Ok(Some(text)),
            Ok(Undone::Empty) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn entry_path(container: &[String], name: &str) -> KeyPath {
    container.iter().cloned().chain([name.to_owned()]).collect()
}

fn removals(container: &[String], removed: &[String]) -> Vec<Edit<'static>> {
    let remove =
        |name: &String| Edit::Remove { path: entry_path(container, name), keep_comments: false };
    removed.iter().map(remove).collect()
}
