//! The config of one server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use toolcrib_core::DeferPolicy;
use toolcrib_core::call::AccessPolicy;
use toolcrib_server::url;

use super::{IdleTimeout, ShareSetting, StartPolicy, ToolDefault, ToolOverride};
use crate::Secret;

/// The config of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// How to reach the server.
    pub transport: Transport,
    /// Whether the gateway uses the server.
    pub enabled: bool,
    /// The prefix of the server's tool names. If `None`, the prefix is the server's name. If empty, there is no prefix.
    pub prefix: Option<String>,
    /// Patterns for the tools that may be used. If empty, all tools may be used.
    pub allow: Vec<String>,
    /// Patterns for the tools that may not be used. Takes precedence over `allow`.
    pub deny: Vec<String>,
    /// When the server's tools are deferred. If `None`, each tool keeps its own policy.
    pub defer: Option<DeferPolicy>,
    /// Patterns for the tools that are never deferred.
    pub always_load: Vec<String>,
    /// Timeout for connecting to the server and fetching its lists, in seconds.
    pub start_timeout: f64,
    /// Timeout of a call, in seconds.
    pub call_timeout: f64,
    /// Timeouts of individual tools, by pattern, in seconds. The first matching pattern applies.
    pub timeouts: Vec<(String, f64)>,
    /// Whether the server may receive several calls at the same time.
    pub parallel: bool,
    /// When the server is started. If `None`, [`Server::run_policy`] decides.
    pub start: Option<StartPolicy>,
    /// How long the server stays unused before it is stopped. If `None`, [`Server::run_policy`] decides.
    pub idle: Option<IdleTimeout>,
    /// Which clients share a process of the server. If `None`, [`Server::share_policy`] decides.
    pub share: Option<ShareSetting>,
    /// Whether the server's annotations decide which of its tools only read.
    pub trust_annotations: bool,
    /// Changes to individual tools, by the tools' own names.
    pub tools: BTreeMap<String, ToolOverride>,
}

/// How to reach a server.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A child process that communicates over its stdin and stdout.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// The program's arguments, passed without a shell.
        args: Vec<Secret>,
        /// The program's environment variables, in addition to the few that every server inherits.
        env: BTreeMap<String, Secret>,
        /// The program's working folder.
        cwd: Option<PathBuf>,
    },
    /// A server that is reached over HTTP.
    Http {
        /// The URL of the server's MCP endpoint. For HTTP+SSE, the URL of its event stream.
        url: String,
        /// Which of the two HTTP transports the server uses.
        variant: HttpVariant,
        /// Headers that are sent with every request.
        headers: BTreeMap<String, Secret>,
        /// OAuth settings that discovery does not provide.
        oauth: OAuth,
    },
}

/// Which HTTP transport a server uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HttpVariant {
    /// Streamable HTTP is tried first, then HTTP+SSE if the server rejects the handshake as such a server does.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Streamable HTTP, the transport since protocol version 2025-03-26.
    #[serde(rename = "http")]
    Streamable,
    /// HTTP+SSE, the transport of protocol version 2024-11-05.
    #[serde(rename = "sse")]
    Sse,
}

impl HttpVariant {
    /// Returns the value of `transport` in `toolcrib.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Streamable => "http",
            Self::Sse => "sse",
        }
    }
}

/// Shows the URL without the parts that may contain secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", env)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, variant, headers, oauth } => f
                .debug_struct("Http")
                .field("url", &url::redact(url))
                .field("variant", variant)
                .field("headers", headers)
                .field("oauth", oauth)
                .finish(),
        }
    }
}

/// OAuth settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// The id of an OAuth client that was registered manually.
    pub client_id: Option<String>,
    /// The secret that belongs to `client_id`, if there is one.
    pub client_secret: Option<Secret>,
    /// Scopes to request. If empty, the scopes that the server advertises are requested.
    pub scopes: Vec<String>,
    /// Hosts that the sign-in may use even if they have private addresses. The server's own host is always allowed.
    pub trusted_hosts: Vec<String>,
}

impl Server {
    /// Creates a server with defaults for everything except its transport.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            enabled: true,
            prefix: None,
            allow: Vec::new(),
            deny: Vec::new(),
            defer: None,
            always_load: Vec::new(),
            start_timeout: 30.0,
            call_timeout: 120.0,
            timeouts: Vec::new(),
            parallel: true,
            start: None,
            idle: None,
            share: None,
            trust_annotations: true,
            tools: BTreeMap::new(),
        }
    }

    /// Returns who decides whether a tool only reads. The tool is given by its own name.
    pub(crate) fn access_policy(&self, own_name: &str) -> AccessPolicy {
        match self.tools.get(own_name).and_then(|change| change.read_only) {
            Some(true) => AccessPolicy::ReadOnly,
            Some(false) => AccessPolicy::MayWrite,
            None if self.trust_annotations => AccessPolicy::Annotations,
            None => AccessPolicy::IgnoreAnnotations,
        }
    }

    /// Returns all values that the config adds to the arguments of calls.
    pub(crate) fn tool_defaults(&self) -> impl Iterator<Item = &ToolDefault> {
        self.tools.values().flat_map(|tool| tool.defaults.iter().map(|(_, value)| value))
    }
}
