//! Whether clients share the process of a server, or each client gets its own.
//!
//! [`Server::share_policy`] is the only place that decides this. It also returns the reason, which `doctor` and `ps`
//! print.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::stateful_servers::stateful_word;
use super::{Server, Transport};

/// The setting `share`: who uses one process of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// All clients for which the expanded config of the server is the same.
    All,
    /// One client, until it disconnects.
    Session,
}

/// The clients that share one process of a server, among those for which its expanded config is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedBy {
    /// All clients.
    AllClients,
    /// All clients that have no roots. Each client with roots gets its own process.
    ClientsWithoutRoots,
    /// No clients. Each client gets its own process.
    NoClients,
}

/// The requests that a server has sent to its client without saying which call they belong to. A later value includes
/// the earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskedQuestions {
    /// None so far.
    #[default]
    None,
    /// It asked for its client's roots, and for nothing else.
    Roots,
    /// It asked for other things, such as user input or a model's answer.
    Any,
}

/// Who uses one process of a server, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharePolicy {
    /// Who shares a process.
    pub shared_by: SharedBy,
    /// Why, as a phrase for people.
    pub reason: String,
}

/// Writes the policy as `shared by all clients (default)`.
impl fmt::Display for SharePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.shared_by {
            SharedBy::AllClients => "shared by all clients",
            SharedBy::ClientsWithoutRoots => "one process for each client that has roots",
            SharedBy::NoClients => "one process for each client",
        };
        write!(f, "{who} ({})", self.reason)
    }
}

impl SharePolicy {
    /// Whether a client gets its own process.
    pub(crate) fn separates(&self, client_has_roots: bool) -> bool {
        match self.shared_by {
            SharedBy::AllClients => false,
            SharedBy::ClientsWithoutRoots => client_has_roots,
            SharedBy::NoClients => true,
        }
    }
}

impl Server {
    /// Decides who uses one process of the server. `name` is its name in the config. `asked` is what the server has
    /// ever asked its client without saying which call the question belongs to.
    pub fn share_policy(&self, name: &str, asked: AskedQuestions) -> SharePolicy {
        let policy = |shared_by, reason: &str| SharePolicy { shared_by, reason: reason.to_owned() };
        if let Some(share) = self.share {
            let shared_by = match share {
                Sharing::All => SharedBy::AllClients,
                Sharing::Session => SharedBy::NoClients,
            };
            return policy(shared_by, "configured with `share`");
        }
        // A remote server keeps the state of each session, so each client needs a session of its own.
        if let Some(word) = stateful_word(name, &self.transport) {
            let reason = format!("`{word}` in its name: it keeps state between calls");
            return policy(SharedBy::NoClients, &reason);
        }
        // With the older protocol, only Streamable HTTP says on whose behalf a server asks: the question arrives on the
        // stream of a call. A question that arrives in another way counts here.
        match asked {
            AskedQuestions::None => {}
            // Many servers ask for roots as soon as they start. All clients without roots get the same answer.
            AskedQuestions::Roots => {
                return policy(SharedBy::ClientsWithoutRoots, "it asks for roots");
            }
            AskedQuestions::Any => {
                return policy(SharedBy::NoClients, "it asks its client questions");
            }
        }
        if matches!(self.transport, Transport::Http { .. }) {
            return policy(SharedBy::AllClients, "a remote server needs no process");
        }
        policy(SharedBy::AllClients, "default")
    }
}

#[cfg(test)]
mod tests {
    use super::AskedQuestions::{self, Any, Roots};
    use crate::GatewayConfig;

    #[test]
    fn one_function_decides_who_shares_a_process() {
        let cases = [
            ("command = 'files'", AskedQuestions::None, "shared by all clients (default)"),
            (
                "command = 'files'",
                Roots,
                "one process for each client that has roots (it asks for roots)",
            ),
            (
                "command = 'files'",
                Any,
                "one process for each client (it asks its client questions)",
            ),
            (
                "command = 'npx'\nargs = ['@playwright/mcp']",
                AskedQuestions::None,
                "one process for each client (`playwright` in its name: it keeps state between calls)",
            ),
            (
                "command = 'npx'\nargs = ['@playwright/mcp']\nshare = 'all'",
                Any,
                "shared by all clients (configured with `share`)",
            ),
            (
                "command = 'files'\nshare = 'session'",
                AskedQuestions::None,
                "one process for each client (configured with `share`)",
            ),
            (
                "url = 'https://a.example'",
                AskedQuestions::None,
                "shared by all clients (a remote server needs no process)",
            ),
            (
                "url = 'https://browser.example'",
                AskedQuestions::None,
                "one process for each client (`browser` in its name: it keeps state between calls)",
            ),
            (
                "url = 'https://a.example'",
                Any,
                "one process for each client (it asks its client questions)",
            ),
        ];
        for (lines, asked, expected) in cases {
            let config = GatewayConfig::from_toml(&format!("[servers.it]\n{lines}")).unwrap();
            let policy = config.servers["it"].share_policy("it", asked);
            assert_eq!(policy.to_string(), expected, "{lines}");
        }
        let wrong = GatewayConfig::from_toml("[servers.it]\ncommand = 'x'\nshare = 'none'");
        assert!(wrong.unwrap_err().to_string().contains("`all` or `session`"));
    }
}
