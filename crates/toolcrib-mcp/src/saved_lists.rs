//! The lists of each server, saved between runs.
//!
//! There is one file for each server, named by a hash of the server's name and its resolved transport, so a server whose
//! transport was changed in the config counts as a new one.
//!
//! If the config contains references, the lists are also saved in a second file, which is named by the transport before
//! the references are resolved. If no lists are saved for the current values of the references, for example in a new
//! folder, the lists in the second file are shown until the server has answered.
//!
//! Saved lists only make a server's first list available sooner. A file that cannot be read, or was written by another version, is ignored, and a failed write is only
//! logged. A folder that other users can change is not used at all.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};

use crate::ClientEnvironment;
use crate::config::{Server, Transport};
use crate::json_hash::json_hash;
use crate::upstream::ServerLists;

/// Version of the file format.
const VERSION: u32 = 1;
/// Maximum size of a file that is read, in bytes. Even two thousand tools of the maximum size take less.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The folder with the saved lists.
#[derive(Debug, Clone)]
pub(crate) struct SavedLists {
    /// The folder, or `None` if nothing is saved between runs.
    folder: Option<PrivateFolder>,
}

/// The contents of a file. The keys are part of the file format.
#[derive(Serialize, Deserialize)]
struct SavedFile<K> {
    version: u32,
    server: String,
    /// The checksum of `known`, to detect a damaged file.
    checksum: String,
    known: K,
}

impl SavedLists {
    /// Uses a subfolder of the state folder. Without a state folder, nothing is saved.
    pub(crate) fn new(state: Option<&PrivateFolder>) -> Self {
        let folder = state.map(|state| state.subfolder("servers"));
        let folder = folder.filter(|folder| match folder.check() {
            // An I/O error may be temporary, so the folder is tried again whenever lists are loaded or saved.
            Ok(_) | Err(PrivateFileError::Io { .. }) => true,
            Err(error) => {
                let hint = error.hint();
                tracing::warn!(hint, "the lists of servers are not saved between runs: {error}");
                false
            }
        });
        Self { folder }
    }

    /// Returns the name of a server's file.
    fn file_name(name: &str, server: &Server) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(name);
        match &server.transport {
            Transport::Stdio { command, args, env, cwd } => {
                // The file's name also depends on the environment variables, because they may select an account, and
                // each account may have different tools.
                for (name, value) in env {
                    add(name);
                    add(value.expose());
                }
                add(command);
                for arg in args {
                    add(arg.expose());
                }
                add(&cwd.as_deref().unwrap_or(Path::new("")).to_string_lossy());
            }
            Transport::Http { url, headers, .. } => {
                add(url);
                for (name, value) in headers {
                    add(name);
                    add(value.expose());
                }
            }
        }
        format!("{}.json", &hasher.finalize().to_hex()[..32])
    }

    /// Loads the lists that a server had when it last answered, for clients with this environment. Also returns whether
    /// all references of the config had the same values then.
    pub(crate) fn load(
        &self,
        name: &str,
        server: &Server,
        environment: &ClientEnvironment,
    ) -> Option<(ServerLists, bool)> {
        let expanded = environment.expand_references(name, server);
        let same = expanded.as_ref().unwrap_or(server);
        let lists = self.load_file(name, same).map(|lists| (lists, true));
        lists.or_else(|| Some((self.load_file(name, server)?, false)))
    }

    fn load_file(&self, name: &str, server: &Server) -> Option<ServerLists> {
        let text = match self.folder.as_ref()?.read(&Self::file_name(name, server), MAX_FILE_BYTES)
        {
            Ok(text) => text?,
            Err(error) => {
                let hint = error.hint();
                tracing::warn!(
                    server = name,
                    hint,
                    "the saved lists of this server are not used: {error}"
                );
                return None;
            }
        };
        let file: SavedFile<&RawValue> = serde_json::from_slice(&text).ok()?;
        let is_intact =
            file.version == VERSION && file.server == name && file.checksum == checksum(file.known);
        if !is_intact {
            tracing::warn!(
                server = name,
                "the saved lists of this server cannot be read; they are fetched again"
            );
            return None;
        }
        serde_json::from_str(file.known.get()).ok()
    }

    /// Saves the lists of a server for clients with this environment. Returns the number of bytes written.
    pub(crate) fn save(
        &self,
        name: &str,
        server: &Server,
        environment: &ClientEnvironment,
        lists: &ServerLists,
    ) -> usize {
        let Some(folder) = &self.folder else { return 0 };
        let expanded = environment.expand_references(name, server);
        let configs = expanded.iter().filter(|expanded| *expanded != server).chain([server]);
        let written = configs.map(|server| write(folder, name, server, lists));
        written.sum::<Result<usize, _>>().unwrap_or_else(|error| {
            tracing::warn!(server = name, %error, "the lists of this server cannot be saved for the next run");
            0
        })
    }
}

fn write(
    folder: &PrivateFolder,
    name: &str,
    server: &Server,
    lists: &ServerLists,
) -> Result<usize, Box<dyn std::error::Error>> {
    let checksum = json_hash(lists)?.to_hex()[..32].to_owned();
    let file = SavedFile { version: VERSION, server: name.to_owned(), checksum, known: lists };
    let text = serde_json::to_vec(&file)?;
    folder.replace(&SavedLists::file_name(name, server), &text)?;
    Ok(text.len())
}

fn checksum(lists: &RawValue) -> String {
    blake3::hash(lists.get().as_bytes()).to_hex()[..32].to_owned()
}
