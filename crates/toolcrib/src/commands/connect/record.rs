//! The record of each file that `connect` changed: the original bytes, and what was written. `disconnect` needs it.
//!
//! Records and backups contain the secrets of the client's file, so they are in the state folder, and only their owner
//! may read them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolcrib_client_files::{Change, Format, KeyPath};
use toolcrib_mcp::config::ClientKind;
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};

use super::client_format;
use crate::output::Failure;
use crate::user_folders::UserFolders;

/// Version of the file format.
const VERSION: u32 = 1;
/// Maximum size of a record or a backup, in bytes. Both contain a file of at most 4 MiB, and escapes can make it longer.
const MAX_BYTES: u64 = 64 << 20;

/// What `connect` changed in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Purpose {
    /// The client's servers were replaced by one entry.
    Servers,
    /// The client's base URL was set.
    Proxy,
}

/// A file that `connect` changed.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) client: ClientKind,
    pub(super) purpose: Purpose,
    /// The file, with symbolic links resolved.
    pub(super) file: PathBuf,
    /// The text before the change, or `None` if there was no file.
    pub(super) original: Option<String>,
    /// The text that was written.
    pub(super) connected: String,
    pub(super) paths: Vec<KeyPath>,
    /// The name of the record in the state folder, without an extension.
    name: String,
}

/// The contents of a record's file. The keys are part of the file format.
#[derive(Serialize, Deserialize)]
struct SavedRecord {
    version: u32,
    client: String,
    purpose: Purpose,
    file: PathBuf,
    /// Whether a backup of the original exists.
    had_file: bool,
    connected: String,
    paths: Vec<KeyPath>,
}

impl Record {
    pub(super) fn format(&self) -> Format {
        match (self.client, self.purpose) {
            (ClientKind::Gemini, Purpose::Proxy) => Format::Dotenv,
            (client, _) => client_format::format(client),
        }
    }

    pub(super) fn change(&self) -> Change<'_> {
        Change { original: self.original.as_deref(), edited: &self.connected, paths: &self.paths }
    }
}

/// The folder with the records.
pub(super) struct Records {
    folder: PrivateFolder,
    pub(super) all: Vec<Record>,
}

fn failed(error: &PrivateFileError) -> Failure {
    Failure::input("backups of clients' files", error, error.hint())
}

impl Records {
    pub(super) fn load() -> Result<Self, Failure> {
        let UserFolders { home, state, .. } = UserFolders::from_environment();
        let state = state.ok_or_else(|| {
            let problem = "there is no state folder for them";
            Failure::input("backups of clients' files", &problem, "set HOME or XDG_STATE_HOME")
        })?;
        let folder = PrivateFolder::new(state.join("toolcrib"), home).subfolder("connected");
        let mut records = Self { folder, all: Vec::new() };
        if !records.folder.check().map_err(|error| failed(&error))? {
            return Ok(records);
        }
        let listed = fs::read_dir(records.folder.path()).into_iter().flatten().flatten();
        let mut names: Vec<String> = listed
            .filter_map(|entry| {
                entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned)
            })
            .collect();
        names.sort();
        for name in names {
            let record = records.read(name)?;
            records.all.push(record);
        }
        Ok(records)
    }

    fn read(&self, name: String) -> Result<Record, Failure> {
        let file = self.folder.file(&format!("{name}.json"));
        let broken = || {
            let place = format!("`{}`", file.display());
            let hint = "it was written by another version of Toolcrib or is damaged; restore the client's file \
                        from the backup next to it, then delete both";
            Failure::input(place, &"not a record of `toolcrib connect`", hint)
        };
        let read = |ending: &str| {
            self.folder.read(&format!("{name}.{ending}"), MAX_BYTES).map_err(|error| failed(&error))
        };
        let saved: SavedRecord =
            serde_json::from_slice(&read("json")?.unwrap_or_default()).map_err(|_| broken())?;
        let client = ClientKind::from_name(&saved.client).ok_or_else(broken)?;
        let original = if saved.had_file {
            let bytes = read("original")?.ok_or_else(broken)?;
            Some(String::from_utf8(bytes).map_err(|_| broken())?)
        } else {
            None
        };
        let SavedRecord { version, purpose, file, connected, paths, .. } = saved;
        if version != VERSION {
            return Err(broken());
        }
        Ok(Record { client, purpose, file, original, connected, paths, name })
    }

    pub(super) fn find(
        &self,
        client: ClientKind,
        purpose: Purpose,
        file: &Path,
    ) -> Option<&Record> {
        self.all.iter().find(|record| {
            record.client == client && record.purpose == purpose && record.file == file
        })
    }

    /// Creates a record, which is not saved yet. It replaces an existing one for the same file.
    pub(super) fn create(
        &self,
        client: ClientKind,
        purpose: Purpose,
        file: &Path,
        original: Option<String>,
        connected: String,
        paths: Vec<KeyPath>,
    ) -> Record {
        let name = match self.find(client, purpose, file) {
            Some(record) => record.name.clone(),
            None => self.free_name(client, purpose, file),
        };
        Record { client, purpose, file: file.to_owned(), original, connected, paths, name }
    }

    /// Returns a name that says which file the record is about. A number is added if another record has the name.
    fn free_name(&self, client: ClientKind, purpose: Purpose, file: &Path) -> String {
        let stem = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let stem: String = stem
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
            .collect();
        let stem = stem.trim_start_matches('.');
        let proxy = if purpose == Purpose::Proxy { "-proxy" } else { "" };
        let name = format!("{client}{proxy}-{stem}");
        let is_free = |name: &String| self.all.iter().all(|record| record.name != *name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        [name.clone()].into_iter().chain(numbered).find(is_free).unwrap_or(name)
    }

    /// Returns the path of the backup of the original file.
    pub(super) fn backup(&self, record: &Record) -> Option<PathBuf> {
        record.original.as_ref().map(|_| self.folder.file(&format!("{}.original", record.name)))
    }

    /// Returns the path of the record itself.
    pub(super) fn path(&self, record: &Record) -> PathBuf {
        self.folder.file(&format!("{}.json", record.name))
    }

    /// Saves the backup and then the record, so that a record always has a backup.
    pub(super) fn save(&self, record: &Record) -> Result<(), Failure> {
        let saved = SavedRecord {
            version: VERSION,
            client: record.client.name().to_owned(),
            purpose: record.purpose,
            file: record.file.clone(),
            had_file: record.original.is_some(),
            connected: record.connected.clone(),
            paths: record.paths.clone(),
        };
        let text = serde_json::to_vec(&saved)
            .map_err(|error| Failure::input("record", &error, "this is a bug; report it"))?;
        let replace = |ending: &str, bytes: &[u8]| {
            self.folder
                .replace(&format!("{}.{ending}", record.name), bytes)
                .map_err(|error| failed(&error))
        };
        if let Some(original) = &record.original {
            replace("original", original.as_bytes())?;
        }
        replace("json", &text)
    }

    pub(super) fn remove(&self, record: &Record) -> Result<(), Failure> {
        for ending in ["json", "original"] {
            self.folder
                .remove(&format!("{}.{ending}", record.name))
                .map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}
