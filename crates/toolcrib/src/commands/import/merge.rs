//! Many files, one set of servers: what is the same is one, what differs gets its client's name.

use std::collections::BTreeMap;

use toolcrib_mcp::config::{Client, Server};

/// Characters of a name, as the config allows.
const NAME: usize = 128;

/// The servers of a config, and those that came to it.
pub(super) struct Merge {
    taken: BTreeMap<String, Server>,
    /// In the order in which they came.
    pub(super) added: Vec<String>,
}

impl Merge {
    /// Begins with what is there already.
    pub(super) fn over(servers: BTreeMap<String, Server>) -> Self {
        Self { taken: servers, added: Vec::new() }
    }

    /// Takes a server in, and returns the name it has from now on.
    pub(super) fn add(&mut self, client: Client, name: &str, server: Server) -> String {
        let mut candidate = name.to_owned();
        let mut turn = 1;
        loop {
            match self.taken.get(&candidate) {
                Some(there) if *there == server => return candidate,
                Some(_) => {}
                None => {
                    self.taken.insert(candidate.clone(), server);
                    self.added.push(candidate.clone());
                    return candidate;
                }
            }
            let suffix = if turn == 1 { format!("-{client}") } else { format!("-{client}-{turn}") };
            let room = NAME - suffix.len();
            candidate = name.chars().take(room).chain(suffix.chars()).collect();
            turn += 1;
        }
    }

    pub(super) fn server(&self, name: &str) -> Option<&Server> {
        self.taken.get(name)
    }

    pub(super) fn into_servers(self) -> BTreeMap<String, Server> {
        self.taken
    }
}
