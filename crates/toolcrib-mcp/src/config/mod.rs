//! The configuration of the gateway: its servers, its profiles, and what clients see.
//!
//! The configuration is part of `toolcrib.toml`, next to the engine's settings, or is imported from another client's
//! file. It is checked completely before any of it is used.

mod check;
mod defer_to_clients;
mod expand;
pub mod import;
mod mask;
mod run_policy;
mod server;
mod server_toml;
mod share_policy;
mod stateful_servers;
mod tool_override;
mod toolcrib_toml;

pub(crate) use check::INSTRUCTIONS_CHARS;
pub use defer_to_clients::DeferToClients;
pub use import::{ClientKind, ImportedConfig};
pub use mask::{masked, masked_for_preview};
pub use run_policy::{IdleTimeout, RunPolicy, StartPolicy};
pub use server::{HttpVariant, OAuth, Server, Transport};
pub use server_toml::server_toml;
pub use share_policy::{ProcessSharing, SharePolicy, ShareSetting, UnattributedQuestions};
pub use tool_override::{ToolDefault, ToolOverride};
pub use toolcrib_toml::SECTIONS;
#[cfg(feature = "schema")]
pub use toolcrib_toml::server_schema;

pub use toolcrib_server::ConfigError;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toolcrib_core::Settings;
use toolcrib_server::config::duration;

/// The configuration of a gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GatewayConfig {
    /// The engine's settings.
    pub settings: Settings,
    /// The servers, by name.
    pub servers: BTreeMap<String, Server>,
    /// The profiles, by name. Each is a subset of the servers and tools.
    pub profiles: BTreeMap<String, Profile>,
    /// Settings of the gateway that apply to all servers.
    pub gateway: GatewaySettings,
}

/// A subset of the servers and tools. A client chooses a profile with `--profile` or at `/mcp/NAME`. The config can
/// name a profile for clients that do not choose one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Patterns for the servers in the profile. If empty, the profile includes all servers.
    pub servers: Vec<String>,
    /// Patterns for the tools in the profile, as `server/tool` or a tool's name. If empty, the profile includes all
    /// tools.
    pub allow: Vec<String>,
    /// Patterns for the tools that are not in the profile. Takes precedence over `allow`.
    pub deny: Vec<String>,
}

/// Settings of the gateway that apply to all servers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// Maximum length of our own tools' descriptions, in characters. The default is 2,000, because some clients
    /// truncate longer descriptions.
    pub description_chars: usize,
    /// Maximum length of a server's own instructions in a reply to a search, in characters. Longer instructions are
    /// cut. With 0, they are not shown.
    pub server_instructions_chars: usize,
    /// Whether tools that a search finds are also added to the client's tool list. This affects only clients of the
    /// older protocol that honour `list_changed`.
    pub add_found: bool,
    /// Which clients that have their own tool search get the full tool list.
    pub defer_to_clients: DeferToClients,
    /// Seconds that a search without a strong hit waits for servers that are still connecting.
    #[serde(deserialize_with = "duration::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub wait: f64,
    /// Seconds that a client's first list of tools waits for servers whose lists are not known yet.
    #[serde(deserialize_with = "duration::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub first_list_wait: f64,
    /// Whether hidden characters are removed from the results of calls and from the contents of resources.
    pub clean_results: bool,
    /// What happens to a call that needs a task, if its client does not support tasks.
    pub unsupported_tasks: UnsupportedTasks,
    /// The profile of clients that do not choose one.
    pub profile: Option<String>,
    /// Seconds that `toolcrib mcp` waits for the background gateway. After that, it runs a gateway of its own.
    #[serde(deserialize_with = "duration::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub background_wait: f64,
    /// How long the background gateway keeps running without clients.
    pub background_idle: IdleTimeout,
    /// While a request is open, `toolcrib mcp` checks in this interval whether the background gateway still responds, and
    /// waits at most this long for its response. In seconds.
    #[serde(deserialize_with = "duration::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub background_check: f64,
    /// Limits on what servers and clients send.
    pub limits: GatewayLimits,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            description_chars: 2_000,
            server_instructions_chars: 600,
            add_found: false,
            defer_to_clients: DeferToClients::Auto,
            wait: 2.0,
            first_list_wait: 2.0,
            clean_results: false,
            unsupported_tasks: UnsupportedTasks::Wait,
            profile: None,
            background_wait: 2.0,
            background_idle: IdleTimeout::After(60.0),
            background_check: 30.0,
            limits: GatewayLimits::default(),
        }
    }
}

/// What happens to a call of a tool that runs only as a task, if the client does not support tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UnsupportedTasks {
    /// The gateway waits for the task and answers the call with its result.
    Wait,
    /// The client gets the server's error.
    Reject,
}

/// Limits on what servers and clients send.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct GatewayLimits {
    /// Maximum size of one message from a server (a line, an event, a body), in bytes.
    pub message_bytes: usize,
    /// Maximum size of one request from a client, in bytes.
    pub request_bytes: usize,
    /// Maximum number of tools of one server.
    pub server_tools: usize,
    /// Maximum number of pages that a server may use for one list.
    pub pages: usize,
    /// Maximum number of tools of all servers together.
    pub tools: usize,
    /// Maximum number of concurrent sessions. Only clients of the older protocol have sessions. At the maximum, a new
    /// session ends an idle one.
    pub sessions: usize,
    /// Maximum number of concurrent sessions from one remote address. Loopback addresses are not limited.
    pub sessions_per_client: usize,
    /// Seconds after which an idle session ends.
    #[serde(deserialize_with = "duration::whole_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub session_idle: u64,
    /// Maximum number of concurrent calls to one server.
    pub server_calls: usize,
    /// Maximum number of calls that wait in the queue of one server.
    pub server_queue: usize,
    /// Maximum number of requests from one server that wait for a client's answer. The answers that wait to be written
    /// to the server have the same maximum.
    pub server_requests: usize,
    /// Maximum memory of all messages from one server that wait for a client, in bytes.
    pub server_bytes: usize,
    /// Seconds after which a server that does not read the answers to its requests is disconnected.
    #[serde(deserialize_with = "duration::whole_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "duration::Seconds"))]
    pub server_stall: u64,
    /// Maximum number of concurrent calls to all servers together.
    pub calls: usize,
    /// Maximum number of servers that start at the same time.
    pub starting: usize,
    /// Maximum total number of server processes that are not shared between clients.
    pub session_servers: usize,
    /// Maximum number of tasks that all clients together may have.
    pub tasks: usize,
    /// Maximum number of tasks that one client may have.
    pub tasks_per_client: usize,
    /// Maximum length of a server's question to the user, in characters. Longer questions are truncated.
    pub question_chars: usize,
    /// Maximum size of a server's question to the user, including its form, in bytes. Larger questions are refused.
    pub question_bytes: usize,
    /// Maximum size of a server's sampling request, in bytes. Larger requests are refused.
    pub sampling_bytes: usize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            message_bytes: 8 << 20,
            request_bytes: 4 << 20,
            server_tools: 2_000,
            pages: 64,
            tools: 20_000,
            sessions: 10_000,
            sessions_per_client: 1_000,
            session_idle: 1_800,
            server_calls: 64,
            server_queue: 256,
            server_requests: 64,
            server_bytes: 64 << 20,
            server_stall: 10,
            calls: 1_024,
            starting: 32,
            session_servers: 256,
            tasks: 4_096,
            tasks_per_client: 256,
            question_chars: 4_000,
            question_bytes: 64 << 10,
            sampling_bytes: 4 << 20,
        }
    }
}

/// Converts seconds from the config to a duration. Invalid values become zero.
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::ZERO)
}
