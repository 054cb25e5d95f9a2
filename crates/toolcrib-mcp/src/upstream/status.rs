//! The status of a server.

use std::time::Duration;

use rmcp::model::ServerPeerInfo;
use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use crate::hidden_text::loggable_name;
use crate::metrics::ServerState;

/// The reason why a server that has not answered yet is unavailable.
pub(crate) const CONNECTING: &str = "it is still connecting";

/// Maximum length of a protocol version, in characters. A server may send any text as its version.
const VERSION_CHARS: usize = 32;

/// The phase that a server is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerPhase {
    /// The server is disabled in the config, or was stopped.
    Off,
    /// The server is not connected because nothing needs it. It is started by the next request that does.
    Idle,
    /// The gateway is connecting to the server.
    Connecting,
    /// The server is connected.
    Up,
    /// The server is not connected.
    Down,
    /// The server requires a login.
    NeedsLogin,
}

impl ServerPhase {
    /// Returns the name that commands print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Up => "up",
            Self::Down => "down",
            Self::NeedsLogin => "needs login",
        }
    }
}

impl From<ServerPhase> for ServerState {
    fn from(phase: ServerPhase) -> Self {
        match phase {
            ServerPhase::Off => Self::Off,
            ServerPhase::Idle => Self::Idle,
            ServerPhase::Connecting => Self::Connecting,
            ServerPhase::Up => Self::Up,
            ServerPhase::Down | ServerPhase::NeedsLogin => Self::Down,
        }
    }
}

/// Whether a server uses the older or the newer protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolEra {
    /// The older protocol, with a handshake: version 2025-11-25 and earlier.
    Older,
    /// The newer protocol, without a handshake: version 2026-07-28 and later.
    Newer,
}

/// The status of a server.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// The server's phase.
    pub phase: ServerPhase,
    /// Why the server is not connected.
    pub reason: Option<String>,
    /// What the operator can do if the server is not connected.
    pub hint: Option<String>,
    /// Whether the last attempt failed because a login is required.
    pub needs_login: bool,
    /// Whether the server uses the older or the newer protocol, once this is known.
    pub era: Option<ProtocolEra>,
    /// The protocol version that the server uses.
    pub protocol_version: Option<String>,
    /// The name and version that the server reports.
    pub reported_name: Option<String>,
    /// How long the server took to connect and list its tools.
    pub startup_time: Option<Duration>,
    /// Notes about what was left out of the server's lists.
    pub notes: Vec<String>,
}

impl ServerStatus {
    pub(crate) fn new(phase: ServerPhase) -> Self {
        Self {
            phase,
            reason: None,
            hint: None,
            needs_login: false,
            era: None,
            protocol_version: None,
            reported_name: None,
            startup_time: None,
            notes: Vec::new(),
        }
    }

    pub(crate) fn set_connected(
        &mut self,
        era: ProtocolEra,
        startup_time: Duration,
        info: &ServerPeerInfo,
    ) {
        self.phase = ServerPhase::Up;
        self.reason = None;
        self.hint = None;
        self.needs_login = false;
        self.era = Some(era);
        let version = one_line(&info.protocol_version.to_string());
        self.protocol_version = Some(shorten(&version, VERSION_CHARS).into_owned());
        let name = |who: &rmcp::model::Implementation| {
            loggable_name(&format!("{} {}", who.name, who.version))
        };
        self.reported_name = info.server_info.as_ref().map(name);
        self.startup_time = Some(startup_time);
    }

    /// Records that an idle server is being started. An earlier failure no longer counts, so requests wait for it.
    pub(crate) fn set_starting(&mut self) {
        self.phase = ServerPhase::Connecting;
        self.reason = None;
        self.hint = None;
        self.needs_login = false;
    }

    /// Whether requests wait for the server: it is idle, so they start it, or its first attempt to connect is in
    /// progress.
    pub(crate) fn is_worth_waiting_for(&self) -> bool {
        self.phase == ServerPhase::Idle || self.is_first_attempt()
    }

    /// Whether the first attempt to connect is in progress. Requests wait for a server only during its first attempt.
    pub(crate) fn is_first_attempt(&self) -> bool {
        self.phase == ServerPhase::Connecting && self.reason.is_none()
    }

    /// Returns why the server cannot be used now.
    pub(crate) fn unavailable_reason(&self) -> String {
        match (self.phase, &self.reason) {
            (ServerPhase::Off, _) => "it is disabled or was stopped".into(),
            (ServerPhase::Idle | ServerPhase::Connecting, None) => CONNECTING.into(),
            (ServerPhase::Connecting, Some(reason)) => {
                format!("it is reconnecting: {reason}")
            }
            (_, Some(reason)) => reason.clone(),
            (_, None) => "it is not connected".into(),
        }
    }
}
