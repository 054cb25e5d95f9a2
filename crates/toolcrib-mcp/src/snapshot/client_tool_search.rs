//! Decides whether a client gets the full tool list, because it searches tools on its own, or Toolcrib's short list.
//!
//! [`ListDecision::of`] is the only place that decides this. It also returns the reason, which is logged once for each
//! session. The table of clients contains only what was seen: docs/gateway.md has the figures.

use std::fmt;

use rmcp::model::Implementation;

use super::SessionKind;
use crate::config::DeferToClients;

/// The first three numbers of a client's version.
type Version = [u64; 3];

/// A client that searches tools on its own, from one version on.
struct KnownClient {
    /// `clientInfo.name`.
    name: &'static str,
    /// The first version that this row applies to.
    since: Version,
    better_list: BetterList,
}

/// The list with which a client reached a tool in fewer model requests and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BetterList {
    /// The full list: the client hides even Toolcrib's three tools, so that the model would have to search twice.
    Full,
    /// Toolcrib's short list, which the client shows to the model.
    Short,
    /// Not measured. The short list, because some clients send all tools to models for which they have no search.
    Unknown,
}

/// The clients that search tools on their own. If several rows apply, the row with the newest version is used.
///
/// "Run" means that this version was run with a gateway for 200 tools, "read" that only documents or logs were read.
///
/// These clients are missing for a reason:
/// - Hermes (0.19.0, run) reports the name and version of its MCP library, `mcp` 0.1.0.
/// - Qwen Code (0.24.4, run) reports the version 0.0.1. With the full list, each request has 8,300 tokens more, but a
///   search takes one request less, so neither list is always better.
/// - Gemini CLI (0.61.0, run) and opencode 1 (1.18.33, run) send all tools to the model by default.
/// - goose (read): its code mode is an extension that users must enable.
const KNOWN_CLIENTS: [KnownClient; 8] = [
    // Read: the search is on by default since 2.1.7. Run: if it is switched on, 2.1.10, 2.1.68, 2.1.78 and 2.1.84 hide
    // Toolcrib's tools. Below a threshold it is off and shows them, so neither list is always better.
    KnownClient { name: "claude-code", since: [2, 1, 7], better_list: BetterList::Unknown },
    // Run: in 2.1.92, 2.1.110, 2.1.119 and 2.1.327, `anthropic/alwaysLoad` keeps Toolcrib's tools visible.
    KnownClient { name: "claude-code", since: [2, 1, 92], better_list: BetterList::Short },
    // Run: 0.142.0 defers 200 tools, but shows Toolcrib's three.
    KnownClient { name: "codex-mcp-client", since: [0, 142, 0], better_list: BetterList::Short },
    // Run: 0.143.0, 0.144.0, 0.145.0, 0.147.0, 0.151.0, 0.155.0 and 0.169.0 hide even Toolcrib's three tools.
    KnownClient { name: "codex-mcp-client", since: [0, 143, 0], better_list: BetterList::Full },
    // Run: 1.0.102 defers 200 tools, but shows Toolcrib's three. Read: the notes of 1.0.63 mention the search.
    KnownClient { name: "copilot-cli", since: [1, 0, 63], better_list: BetterList::Short },
    // Read: version 2 calls MCP tools from code by default. The name was seen in 1.18.33.
    KnownClient { name: "opencode", since: [2, 0, 0], better_list: BetterList::Unknown },
    // Read: a setting of 1.109 switches the search on. The names are from logs of 1.119 to 1.140 and of 1.103.
    KnownClient {
        name: "Visual Studio Code",
        since: [1, 109, 0],
        better_list: BetterList::Unknown,
    },
    KnownClient {
        name: "Visual Studio Code - Insiders",
        since: [1, 109, 0],
        better_list: BetterList::Unknown,
    },
];

/// What the gateway knows about a client's own tool search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ClientToolSearch {
    /// The gateway does not know the client.
    #[default]
    UnknownClient,
    /// The gateway knows the client, but not that this version searches tools. A version that is not a number is one
    /// of these.
    UnknownVersion,
    /// The client searches tools on its own.
    Present(BetterList),
}

impl ClientToolSearch {
    /// Looks a client up by its name and version.
    pub(crate) fn of(client: &Implementation) -> Self {
        let rows = || KNOWN_CLIENTS.iter().filter(|known| known.name == client.name);
        if rows().next().is_none() {
            return Self::UnknownClient;
        }
        let version = parse_version(&client.version);
        rows()
            .filter(|known| version.is_some_and(|version| known.since <= version))
            .max_by_key(|known| known.since)
            .map_or(Self::UnknownVersion, |known| Self::Present(known.better_list))
    }
}

/// Parses the first three numbers of a version. Missing numbers are 0. What follows the numbers, such as `-insider`, is
/// ignored.
fn parse_version(text: &str) -> Option<Version> {
    let numbers = text.split(['-', '+']).next()?;
    let mut version = [0; 3];
    for (part, number) in numbers.split('.').zip(&mut version) {
        *number = part.parse().ok()?;
    }
    Some(version)
}

/// Which tool list a client gets, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListDecision {
    /// Whether the client gets all definitions in full.
    pub(crate) is_full: bool,
    pub(crate) reason: ListReason,
}

/// Why a client gets the full or the short tool list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListReason {
    SwitchedOff,
    NewerProtocol,
    UnknownClient,
    UnknownVersion,
    SwitchedOn,
    HidesShortList,
    ShowsShortList,
    NotMeasured,
}

/// Writes the reason as a phrase for people.
impl fmt::Display for ListReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SwitchedOff => "`defer_to_clients = false`",
            Self::NewerProtocol => "the list must not depend on the client in the newer protocol",
            Self::UnknownClient => "the client is not known to search tools itself",
            Self::UnknownVersion => {
                "this version of the client is not known to search tools itself"
            }
            Self::SwitchedOn => "`defer_to_clients = true`, and the client searches tools itself",
            Self::HidesShortList => {
                "the client searches tools itself, and would hide `tool_search`"
            }
            Self::ShowsShortList => "the client searches tools itself, but shows `tool_search`",
            Self::NotMeasured => {
                "the client searches tools itself, but was not measured with the full list"
            }
        })
    }
}

impl ListDecision {
    /// Decides which tool list a client gets.
    pub(crate) fn of(
        setting: DeferToClients,
        search: ClientToolSearch,
        session: SessionKind,
    ) -> Self {
        let short = |reason| Self { is_full: false, reason };
        let full = |reason| Self { is_full: true, reason };
        match (setting, search) {
            (DeferToClients::Never, _) => short(ListReason::SwitchedOff),
            (_, ClientToolSearch::UnknownClient) => short(ListReason::UnknownClient),
            (_, ClientToolSearch::UnknownVersion) => short(ListReason::UnknownVersion),
            (_, ClientToolSearch::Present(_)) if session == SessionKind::Stateless => {
                short(ListReason::NewerProtocol)
            }
            (DeferToClients::All, ClientToolSearch::Present(_)) => full(ListReason::SwitchedOn),
            (DeferToClients::Auto, ClientToolSearch::Present(better)) => match better {
                BetterList::Full => full(ListReason::HidesShortList),
                BetterList::Short => short(ListReason::ShowsShortList),
                BetterList::Unknown => short(ListReason::NotMeasured),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(setting: DeferToClients, name: &str, version: &str) -> (bool, ListReason) {
        let search = ClientToolSearch::of(&Implementation::new(name, version));
        let decision = ListDecision::of(setting, search, SessionKind::Stateful);
        (decision.is_full, decision.reason)
    }

    #[test]
    fn one_function_decides_which_list_a_client_gets() {
        use ListReason::{
            HidesShortList, NotMeasured, ShowsShortList, SwitchedOn, UnknownClient, UnknownVersion,
        };
        // Each row: name, version, the decision with `auto`, and the decision with `true`.
        let switched_on = (true, SwitchedOn);
        let too_old = (false, UnknownVersion);
        let unknown = (false, UnknownClient);
        let shown = (false, ShowsShortList);
        let hidden = (true, HidesShortList);
        let not_measured = (false, NotMeasured);
        let cases = [
            ("claude-code", "2.1.6", too_old, too_old),
            ("claude-code", "2.1.7", not_measured, switched_on),
            ("claude-code", "2.1.91", not_measured, switched_on),
            ("claude-code", "2.1.92", shown, switched_on),
            ("claude-code", "2.1.327", shown, switched_on),
            ("codex-mcp-client", "0.141.9", too_old, too_old),
            ("codex-mcp-client", "0.142.0", shown, switched_on),
            ("codex-mcp-client", "0.142.5", shown, switched_on),
            ("codex-mcp-client", "0.143.0", hidden, switched_on),
            ("codex-mcp-client", "0.169.0", hidden, switched_on),
            ("codex-mcp-client", "0.170.0-alpha.3", hidden, switched_on),
            ("codex-mcp-client", "1", hidden, switched_on),
            ("copilot-cli", "1.0.62", too_old, too_old),
            ("copilot-cli", "1.0.63", shown, switched_on),
            ("copilot-cli", "1.0.102", shown, switched_on),
            ("opencode", "1.18.33", too_old, too_old),
            ("opencode", "2.0.0+build.7", not_measured, switched_on),
            ("Visual Studio Code", "1.108.2", too_old, too_old),
            ("Visual Studio Code", "1.140.0", not_measured, switched_on),
            ("Visual Studio Code - Insiders", "1.109.0-insider", not_measured, switched_on),
            // A version that cannot be read does not count as a new one.
            ("codex-mcp-client", "", too_old, too_old),
            ("codex-mcp-client", "latest", too_old, too_old),
            ("codex-mcp-client", "0.99999999999999999999.0", too_old, too_old),
            ("gemini-cli-mcp-client", "0.61.0", unknown, unknown),
            ("mcp", "0.1.0", unknown, unknown),
            ("Codex-MCP-Client", "0.169.0", unknown, unknown),
            ("codex-mcp-client ", "0.169.0", unknown, unknown),
        ];
        for (name, version, auto, all) in cases {
            assert_eq!(decide(DeferToClients::Auto, name, version), auto, "{name} {version}");
            assert_eq!(decide(DeferToClients::All, name, version), all, "{name} {version}");
            let never = (false, ListReason::SwitchedOff);
            assert_eq!(decide(DeferToClients::Never, name, version), never, "{name} {version}");
        }
    }

    #[test]
    fn the_list_does_not_depend_on_the_client_in_the_newer_protocol() {
        let codex = ClientToolSearch::of(&Implementation::new("codex-mcp-client", "0.169.0"));
        for setting in [DeferToClients::Auto, DeferToClients::All] {
            let decision = ListDecision::of(setting, codex, SessionKind::Stateless);
            let expected = ListDecision { is_full: false, reason: ListReason::NewerProtocol };
            assert_eq!(decision, expected, "{setting:?}");
        }
    }
}
