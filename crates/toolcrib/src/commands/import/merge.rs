//! Many files, one set of servers. Servers that are the same become one. Of two different servers of the user's with one
//! name, the second gets its client's name, too; a project's server never takes a name that the user has given.

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

    /// Takes a server of a project in, or returns why not.
    pub(super) fn add_project(&mut self, name: &str, server: Server) -> Result<(), &'static str> {
        match self.taken.get(name) {
            Some(there) if *there == server => Ok(()),
            Some(_) => Err("there is another server of that name, which is kept"),
            None if self.reserved.contains(name) => {
                Err("a client of yours has a server of that name")
            }
            None => {
                self.insert(name.to_owned(), server);
                Ok(())
            }
        }
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
