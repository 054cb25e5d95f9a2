//! Whether clients share the process of a server, or each client gets its own.
//!
//! [`Server::share_policy`] is the only place that decides this. It also returns the reason, which `doctor` and `ps`
//! print.

use std::fmt;

use serde::Deserialize;

use super::stateful_servers::stateful_word;
use super::{Server, Transport};

/// Who uses one process of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// All clients for which the expanded config of the server is the same.
    All,
    /// One client, until it disconnects.
    Session,
}

/// Who uses one process of a server, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharePolicy {
    /// Who uses one process.
    pub sharing: Sharing,
    /// Why, as a phrase for people.
    pub reason: String,
}

/// Writes the policy as `shared by all clients (default)`.
impl fmt::Display for SharePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.sharing {
            Sharing::All => "shared by all clients",
            Sharing::Session => "one process for each client",
        };
        write!(f, "{who} ({})", self.reason)
    }
}

impl Server {
    /// Decides who uses one process of the server. `name` is its name in the config. `has_asked` tells whether the
    /// server has ever sent a request to its client without saying which call the request belongs to.
    pub fn share_policy(&self, name: &str, has_asked: bool) -> SharePolicy {
        let policy = |sharing, reason: &str| SharePolicy { sharing, reason: reason.to_owned() };
        if let Some(sharing) = self.share {
            return policy(sharing, "configured with `share`");
        }
        // A remote server keeps the state of each session, so each client needs a session of its own.
        if let Some(word) = stateful_word(name, &self.transport) {
            let reason = format!("`{word}` in its name: it keeps state between calls");
            return policy(Sharing::Session, &reason);
        }
        if has_asked {
            // With the older protocol, only Streamable HTTP says on whose behalf a server asks: the question arrives on
            // the stream of a call. A question that arrives in another way counts here.
            return policy(Sharing::Session, "it asks its client questions");
        }
        if matches!(self.transport, Transport::Http { .. }) {
            return policy(Sharing::All, "a remote server needs no process");
        }
        policy(Sharing::All, "default")
    }
}

#[cfg(test)]
mod tests {
    use crate::GatewayConfig;

    #[test]
    fn one_function_decides_who_shares_a_process() {
        let cases = [
            ("command = 'files'", false, "shared by all clients (default)"),
            (
                "command = 'files'",
                true,
                "one process for each client (it asks its client questions)",
            ),
            (
                "command = 'npx'\nargs = ['@playwright/mcp']",
                false,
                "one process for each client (`playwright` in its name: it keeps state between calls)",
            ),
            (
                "command = 'npx'\nargs = ['@playwright/mcp']\nshare = 'all'",
                true,
                "shared by all clients (configured with `share`)",
            ),
            (
                "command = 'files'\nshare = 'session'",
                false,
                "one process for each client (configured with `share`)",
            ),
            (
                "url = 'https://a.example'",
                false,
                "shared by all clients (a remote server needs no process)",
            ),
            (
                "url = 'https://browser.example'",
                false,
                "one process for each client (`browser` in its name: it keeps state between calls)",
            ),
            (
                "url = 'https://a.example'",
                true,
                "one process for each client (it asks its client questions)",
            ),
        ];
        for (lines, has_asked, expected) in cases {
            let config = GatewayConfig::from_toml(&format!("[servers.it]\n{lines}")).unwrap();
            let policy = config.servers["it"].share_policy("it", has_asked);
            assert_eq!(policy.to_string(), expected, "{lines}");
        }
        let wrong = GatewayConfig::from_toml("[servers.it]\ncommand = 'x'\nshare = 'none'");
        assert!(wrong.unwrap_err().to_string().contains("`all` or `session`"));
    }
}
