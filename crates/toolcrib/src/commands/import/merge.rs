//! Many files, one set of servers. Servers that are the same become one. Of two different servers of the user's with one
//! name, the second gets its client's name, too; a project's server never takes a name that the user has given, nor one that
//! people could take for it.

use std::collections::{BTreeMap, BTreeSet};

use toolcrib_mcp::config::{Client, Server};

/// Maximum length of a name in the config, in characters.
const NAME: usize = 128;

/// The servers of a config, and those that came to it.
pub(super) struct Merge {
    taken: BTreeMap<String, Server>,
    /// Names of the user's servers that were not taken in.
    reserved: BTreeSet<String>,
    /// In the order in which they came.
    pub(super) added: Vec<String>,
}

impl Merge {
    /// Begins with what is there already.
    pub(super) fn over(servers: BTreeMap<String, Server>) -> Self {
        Self { taken: servers, reserved: BTreeSet::new(), added: Vec::new() }
    }

    /// Takes a server of the user's in, and returns the name it has from now on.
    pub(super) fn add(&mut self, client: Client, name: &str, server: Server) -> String {
        let mut candidate = name.to_owned();
        let mut turn = 1;
        loop {
            match self.taken.get(&candidate) {
                Some(there) if *there == server => return candidate,
                Some(_) => {}
                None => {
                    self.insert(candidate.clone(), server);
                    return candidate;
                }
            }
            let suffix = if turn == 1 { format!("-{client}") } else { format!("-{client}-{turn}") };
            let room = NAME - suffix.len();
            candidate = name.chars().take(room).chain(suffix.chars()).collect();
            turn += 1;
        }
    }

    /// Keeps these names of the user's from the servers of projects.
    pub(super) fn reserve(&mut self, names: BTreeSet<String>) {
        self.reserved.extend(names);
    }

    /// Takes a server of a project in, or returns why not. It is added as `anchored`, which has the project's folder in
    /// its paths; one of the user's that equals the server as it was read is the same server, too.
    pub(super) fn add_project(
        &mut self,
        name: &str,
        read: &Server,
        anchored: Server,
    ) -> Result<(), &'static str> {
        if let Some(problem) = name_problem(name) {
            return Err(problem);
        }
        match self.taken.get(name) {
            Some(there) if *there == anchored || there == read => return Ok(()),
            Some(_) => return Err("there is another server of that name, which is kept"),
            None if self.reserved.contains(name) => {
                return Err("a client of yours has a server of that name");
            }
            None => {}
        }
        let same = folded(name);
        if self.taken.keys().chain(&self.reserved).any(|other| folded(other) == same) {
            return Err("its name differs from another server's only in upper and lower case");
        }
        self.insert(name.to_owned(), anchored);
        Ok(())
    }

    fn insert(&mut self, name: String, server: Server) {
        self.added.push(name.clone());
        self.taken.insert(name, server);
    }

    pub(super) fn server(&self, name: &str) -> Option<&Server> {
        self.taken.get(name)
    }

    pub(super) fn into_servers(self) -> BTreeMap<String, Server> {
        self.taken
    }
}

/// A name as people compare it.
fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Why a project's server may not have this name: it could be read as another one, or as part of a message or a config.
fn name_problem(name: &str) -> Option<&'static str> {
    if name.contains(['"', '[', ']']) || name.contains(char::is_control) {
        return Some("its name has a quotation mark, a bracket or a control character in it");
    }
    // Many letters of other scripts look like ASCII letters, and some characters are invisible.
    let is_mixed = !name.is_ascii() && name.contains(|c: char| c.is_ascii_alphabetic());
    is_mixed.then_some("its name mixes ASCII letters with other characters, which may look alike")
}
