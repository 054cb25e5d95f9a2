//! Merges the servers of many files into one set. Equal servers become one. If two of the user's servers differ but
//! have the same name, the name of the client is appended to the second server's name. A project's server never takes
//! the name of one of the user's servers, nor a name that looks similar.

use std::collections::{BTreeMap, BTreeSet};

use toolcrib_mcp::config::{ClientKind, Server};

/// Maximum length of a name in the config, in characters.
const MAX_NAME_CHARS: usize = 128;

/// The servers of a config, and those that were added to it.
#[derive(Clone)]
pub(crate) struct ServerMerge {
    servers: BTreeMap<String, Server>,
    /// Names of the user's servers that were not imported.
    reserved: BTreeSet<String>,
    /// Names of the added servers, in order.
    pub(crate) added: Vec<String>,
}

impl ServerMerge {
    /// Starts with the existing servers of a config.
    pub(crate) fn new(servers: BTreeMap<String, Server>) -> Self {
        Self { servers, reserved: BTreeSet::new(), added: Vec::new() }
    }

    /// Adds one of the user's servers, and returns the name it gets.
    pub(crate) fn add(&mut self, client: ClientKind, name: &str, server: Server) -> String {
        let mut candidate = name.to_owned();
        let mut attempt = 1;
        loop {
            match self.servers.get(&candidate) {
                Some(existing) if *existing == server => return candidate,
                Some(_) => {}
                None => {
                    self.insert(candidate.clone(), server);
                    return candidate;
                }
            }
            let suffix =
                if attempt == 1 { format!("-{client}") } else { format!("-{client}-{attempt}") };
            let room = MAX_NAME_CHARS - suffix.len();
            candidate = name.chars().take(room).chain(suffix.chars()).collect();
            attempt += 1;
        }
    }

    /// Reserves the names of the user's servers, so that a project's server cannot take them.
    pub(crate) fn reserve(&mut self, names: BTreeSet<String>) {
        self.reserved.extend(names);
    }

    /// Adds a project's server, or returns why it cannot be imported. `read` is the server as the file defines it.
    /// `anchored` is the same server with paths resolved against the project's folder, and this one is added. If an
    /// existing server equals either of them, nothing is added.
    pub(crate) fn add_project(
        &mut self,
        name: &str,
        read: &Server,
        anchored: Server,
    ) -> Result<(), &'static str> {
        if let Some(problem) = name_problem(name) {
            return Err(problem);
        }
        match self.servers.get(name) {
            Some(existing) if *existing == anchored || existing == read => return Ok(()),
            Some(_) => return Err("the config has a different server of that name"),
            None if self.reserved.contains(name) => {
                return Err("one of your clients has a server of that name");
            }
            None => {}
        }
        let same = lowercased(name);
        if self.servers.keys().chain(&self.reserved).any(|other| lowercased(other) == same) {
            return Err("its name differs from another server's name only in case");
        }
        self.insert(name.to_owned(), anchored);
        Ok(())
    }

    fn insert(&mut self, name: String, server: Server) {
        self.added.push(name.clone());
        self.servers.insert(name, server);
    }

    pub(crate) fn server(&self, name: &str) -> Option<&Server> {
        self.servers.get(name)
    }

    pub(crate) fn into_servers(self) -> BTreeMap<String, Server> {
        self.servers
    }
}

/// Normalises a name for a comparison that ignores case and surrounding whitespace.
fn lowercased(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Returns why a project's server must not have this name, or `None` if it may. A rejected name could be mistaken for
/// another name, or for part of a message or a config.
fn name_problem(name: &str) -> Option<&'static str> {
    if name.contains(['"', '[', ']']) || name.contains(char::is_control) {
        return Some("its name contains a quotation mark, a bracket or a control character");
    }
    // A name that mixes ASCII letters with other characters could imitate another name, because many letters of other
    // scripts look like ASCII letters and some characters are invisible.
    let is_mixed = !name.is_ascii() && name.contains(|c: char| c.is_ascii_alphabetic());
    is_mixed.then_some("its name mixes ASCII letters with other characters, which may look alike")
}
