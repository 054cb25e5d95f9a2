//! One server, and how to reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use toolcrib_core::DeferPolicy;
use toolcrib_server::url;

use crate::Secret;

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// How to reach it.
    pub transport: Transport,
    /// Whether it is used at all.
    pub enabled: bool,
    /// What stands before its tools' names; its own name where nothing is said, and nothing where
    /// this is empty.
    pub prefix: Option<String>,
    /// Its tools that may be used, as patterns; empty: all.
    pub allow: Vec<String>,
    /// Its tools that may not.
    pub deny: Vec<String>,
    /// What is said about deferring its tools.
    pub defer: Option<DeferPolicy>,
    /// Its tools that are never deferred, as patterns.
    pub always_load: Vec<String>,
    /// Seconds it may take to answer the handshake.
    pub start_timeout: f64,
    /// Seconds one call may take.
    pub call_timeout: f64,
    /// The same for single tools, by pattern; the first that fits counts.
    pub timeouts: Vec<(String, f64)>,
    /// Whether it may have several calls at once.
    pub parallel: bool,
}

/// How to reach a server.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A child process that speaks on its standard streams.
    Stdio {
        /// The program, looked for in `PATH`.
        command: String,
        /// Its arguments. No shell reads them.
        args: Vec<Secret>,
        /// Its environment beside the few variables that every program needs.
        env: BTreeMap<String, Secret>,
        /// The folder it runs in.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, Secret>,
        /// How to log in, where the server asks for that and discovery does not tell.
        oauth: OAuth,
    },
}

/// An address shows without what may be a key in it.
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
            Self::Http { url, headers, oauth } => f
                .debug_struct("Http")
                .field("url", &url::redact(url))
                .field("headers", headers)
                .field("oauth", oauth)
                .finish(),
        }
    }
}

/// How to log in.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// A client id that was registered by hand.
    pub client_id: Option<String>,
    /// Its secret, if it has one.
    pub client_secret: Option<Secret>,
    /// What to ask for; what the server names where this is empty.
    pub scopes: Vec<String>,
    /// Hosts besides the server's own that its sign-in may use though they have private addresses.
    pub trusted_hosts: Vec<String>,
}

impl Server {
    /// A server of which nothing is said but how to reach it.
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
        }
    }
}
