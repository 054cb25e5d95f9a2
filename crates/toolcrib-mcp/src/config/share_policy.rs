//! Whether clients share the process of a server, or each client gets its own.
//!
//! [`Server::share_policy`] decides this from the config and from what the server has asked, and returns the reason, which
//! `doctor` and `ps --json` print. `Upstream::client_needs_own_process` applies it to a client.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Server;
use super::stateful_servers::{self, stateful_word};

/// The setting `share`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ShareSetting {
    /// All clients for which the resolved config of the server is the same.
    All,
    /// One client, until it disconnects.
    Session,
}

/// Which clients share a process of a server, among those for which its resolved config is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSharing {
    /// All clients.
    AllClients,
    /// All clients that have no roots. Each client with roots gets its own process.
    ClientsWithoutRoots,
    /// No clients. Each client gets its own process.
    NotShared,
}

/// The requests that a server has sent to its client without saying which call they belong to. A later value includes
/// the earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnattributedQuestions {
    /// None so far.
    #[default]
    None,
    /// It asked for its client's roots, and for nothing else.
    Roots,
    /// It asked for other things, such as user input or a model's answer.
    Any,
}

/// Which clients share a process of a server, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharePolicy {
    /// Which clients share a process.
    pub sharing: ProcessSharing,
    /// Why, as a phrase for people.
    pub reason: String,
}

/// Writes the policy as `shared by all clients (default)`.
impl fmt::Display for SharePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.sharing {
            ProcessSharing::AllClients => "shared by all clients",
            ProcessSharing::ClientsWithoutRoots => {
                "one process for each client that has roots, and one for all others"
            }
            ProcessSharing::NotShared => "one process for each client",
        };
        write!(f, "{who} ({})", self.reason)
    }
}

impl SharePolicy {
    /// Whether a client gets its own process.
    pub(crate) fn gives_own_process(&self, client_has_roots: bool) -> bool {
        match self.sharing {
            ProcessSharing::AllClients => false,
            ProcessSharing::ClientsWithoutRoots => client_has_roots,
            ProcessSharing::NotShared => true,
        }
    }
}

impl Server {
    /// Decides which clients share a process of the server. `name` is its name in the config. `questions` are the
    /// unattributed questions of the server so far.
    pub fn share_policy(&self, name: &str, questions: UnattributedQuestions) -> SharePolicy {
        let policy = |sharing, reason: &str| SharePolicy { sharing, reason: reason.to_owned() };
        if let Some(share) = self.share {
            let sharing = match share {
                ShareSetting::All => ProcessSharing::AllClients,
                ShareSetting::Session => ProcessSharing::NotShared,
            };
            return policy(sharing, "configured with `share`");
        }
        // A stateful server keeps state for each process or, if it is remote, for each MCP session. So each client needs
        // its own.
        if let Some(word) = stateful_word(name, &self.transport) {
            return policy(ProcessSharing::NotShared, &stateful_servers::reason(word));
        }
        // With the older protocol, only Streamable HTTP says on whose behalf a server asks: the question arrives on the
        // stream of a call. A question that arrives in another way counts here.
        match questions {
            UnattributedQuestions::None => {}
            // Many servers ask for roots as soon as they start. All clients without roots get the same answer.
            UnattributedQuestions::Roots => {
                return policy(
                    ProcessSharing::ClientsWithoutRoots,
                    "it asks for roots without saying for which call",
                );
            }
            UnattributedQuestions::Any => {
                return policy(
                    ProcessSharing::NotShared,
                    "it asks questions without saying for which call",
                );
            }
        }
        policy(ProcessSharing::AllClients, "default")
    }
}

#[cfg(test)]
mod tests {
    use super::UnattributedQuestions::{self, Any, Roots};
    use crate::GatewayConfig;

    #[test]
    fn one_function_decides_who_shares_a_process() {
        let cases = [
            ("command = 'files'", UnattributedQuestions::None, "shared by all clients (default)"),
            (
                "command = 'files'",
                Roots,
                "one process for each client that has roots, and one for all others (it asks for roots without saying for which call)",
            ),
            (
                "command = 'files'",
                Any,
                "one process for each client (it asks questions without saying for which call)",
            ),
            (
                "command = 'npx'\nargs = ['@playwright/mcp']",
                UnattributedQuestions::None,
                "one process for each client (`playwright` in its name, package or host, so it probably keeps state between calls)",
            ),
            (
                "command = 'npx'\nargs = ['@playwright/mcp']\nshare = 'all'",
                Any,
                "shared by all clients (configured with `share`)",
            ),
            (
                "command = 'files'\nshare = 'session'",
                UnattributedQuestions::None,
                "one process for each client (configured with `share`)",
            ),
            (
                "url = 'https://a.example'",
                UnattributedQuestions::None,
                "shared by all clients (default)",
            ),
            (
                "url = 'https://browser.example'",
                UnattributedQuestions::None,
                "one process for each client (`browser` in its name, package or host, so it probably keeps state between calls)",
            ),
            (
                "url = 'https://a.example'",
                Any,
                "one process for each client (it asks questions without saying for which call)",
            ),
        ];
        for (lines, questions, expected) in cases {
            let config = GatewayConfig::from_toml(&format!("[servers.it]\n{lines}")).unwrap();
            let policy = config.servers["it"].share_policy("it", questions);
            assert_eq!(policy.to_string(), expected, "{lines}");
        }
        let wrong = GatewayConfig::from_toml("[servers.it]\ncommand = 'x'\nshare = 'none'");
        assert!(wrong.unwrap_err().to_string().contains("`all` or `session`"));
    }
}
