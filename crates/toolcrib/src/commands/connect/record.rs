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
use crate::user_folders::state_folder;

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
    /// The config that the client's servers were moved to. `None` for a base URL.
    pub(super) config: Option<PathBuf>,
    /// The name of the record in the state folder, without an ending.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<PathBuf>,
    /// What the backup must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backup: Option<Digest>,
}

/// The length and the hash of a backup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Digest {
    bytes: usize,
    blake3: String,
}

impl Digest {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len(), blake3: blake3::hash(bytes).to_hex().to_string() }
    }
}

/// A record that cannot be used.
pub(super) struct DamagedRecord {
    /// The client, according to the name of the record.
    pub(super) client: Option<ClientKind>,
    pub(super) problem: String,
    pub(super) hint: String,
}

impl DamagedRecord {
    pub(super) fn failure(&self) -> Failure {
        Failure::Input {
            subject: "record of `toolcrib connect`".to_owned(),
            problem: self.problem.clone(),
            hint: self.hint.clone(),
        }
    }
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
    /// Records that cannot be used. They must not prevent the use of the others.
    pub(super) damaged: Vec<DamagedRecord>,
}

fn failed(error: &PrivateFileError) -> Failure {
    Failure::input("backups of clients' files", error, error.hint())
}

impl Records {
    pub(super) fn load() -> Result<Self, Failure> {
        let state = state_folder().ok_or_else(|| {
            let problem = "there is no state folder for them";
            Failure::input("backups of clients' files", &problem, "set HOME or XDG_STATE_HOME")
        })?;
        let folder = state.subfolder("connected");
        let mut records = Self { folder, all: Vec::new(), damaged: Vec::new() };
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
            match records.read(&name) {
                Ok(record) => records.all.push(record),
                Err(failure) => records.damaged.push(DamagedRecord {
                    client: client_of(&name),
                    problem: failure.to_string(),
                    hint: failure.hint(),
                }),
            }
        }
        Ok(records)
    }

    fn read(&self, name: &str) -> Result<Record, Failure> {
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
        if saved.version != VERSION {
            return Err(broken());
        }
        let original = match (saved.had_file, read("original")?) {
            (false, _) => None,
            (true, bytes) => Some(self.checked_backup(name, &saved, bytes)?),
        };
        let SavedRecord { purpose, file, connected, paths, config, .. } = saved;
        let name = name.to_owned();
        Ok(Record { client, purpose, file, original, connected, paths, config, name })
    }

    /// Returns the text of a backup if it is still the one that was saved.
    fn checked_backup(
        &self,
        name: &str,
        saved: &SavedRecord,
        bytes: Option<Vec<u8>>,
    ) -> Result<String, Failure> {
        let is_same = |bytes: &Vec<u8>| {
            saved.backup.as_ref().is_none_or(|digest| *digest == Digest::of(bytes))
        };
        let problem = match bytes {
            None => "the backup no longer exists",
            Some(bytes) if !is_same(&bytes) => {
                "the backup is no longer the one that `toolcrib connect` saved"
            }
            Some(bytes) => match String::from_utf8(bytes) {
                Ok(text) => return Ok(text),
                Err(_) => "the backup is not UTF-8 text",
            },
        };
        let backup = self.folder.file(&format!("{name}.original"));
        let hint = format!(
            "check `{}` by hand; without a backup, remove the entry for Toolcrib from it and add its servers again, \
             then delete `{}`",
            saved.file.display(),
            self.folder.file(&format!("{name}.json")).display()
        );
        Err(Failure::input(format!("`{}`", backup.display()), &problem, hint))
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
        let file = file.to_owned();
        Record { client, purpose, file, original, connected, paths, config: None, name }
    }

    /// Returns a name that says which file the record is about. A number is added if another record has the name,
    /// or if there is a backup of that name, which may be the only copy of the user's file.
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
        let exists = |name: &str, ending: &str| {
            self.folder.file(&format!("{name}.{ending}")).is_symlink()
                || self.folder.file(&format!("{name}.{ending}")).exists()
        };
        let is_free = |name: &String| !exists(name, "json") && !exists(name, "original");
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

    /// Saves the backup and then the record, so that a record always has a backup. `previous` is the record that this one
    /// replaces. If this fails, the previous record and its backup are as before.
    pub(super) fn save(&self, record: &Record, previous: Option<&Record>) -> Result<(), Failure> {
        let saved = SavedRecord {
            version: VERSION,
            client: record.client.name().to_owned(),
            purpose: record.purpose,
            file: record.file.clone(),
            had_file: record.original.is_some(),
            connected: record.connected.clone(),
            paths: record.paths.clone(),
            config: record.config.clone(),
            backup: record.original.as_ref().map(|text| Digest::of(text.as_bytes())),
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
        replace("json", &text).inspect_err(|_| {
            // The first error is reported.
            let _ = match previous.and_then(|previous| previous.original.as_ref()) {
                Some(original) => replace("original", original.as_bytes()),
                None => self.remove_file(record, "original"),
            };
        })
    }

    pub(super) fn remove(&self, record: &Record) -> Result<(), Failure> {
        self.remove_file(record, "json")?;
        self.remove_file(record, "original")
    }

    fn remove_file(&self, record: &Record, ending: &str) -> Result<(), Failure> {
        self.folder.remove(&format!("{}.{ending}", record.name)).map_err(|error| failed(&error))
    }
}

/// Returns the client that a record of this name is about.
fn client_of(name: &str) -> Option<ClientKind> {
    let is_start = |client: &ClientKind| {
        name.strip_prefix(client.name()).is_some_and(|rest| rest.starts_with('-'))
    };
    ClientKind::ALL.into_iter().find(is_start)
}
