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
    /// It is disabled in the config, or was stopped.
    Off,
    /// The gateway is connecting to it.
    Connecting,
    /// It is connected.
    Up,
    /// It is not connected.
    Down,
    /// It requires a login.
    NeedsLogin,
}

impl From<ServerPhase> for ServerState {
    fn from(phase: ServerPhase) -> Self {
        match phase {
            ServerPhase::Off => Self::Off,
            ServerPhase::Connecting => Self::Connecting,
            ServerPhase::Up => Self::Up,
            ServerPhase::Down | ServerPhase::NeedsLogin => Self::Down,
        }
    }
}

/// Which of the two protocol eras a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolEra {
    /// With a handshake: protocol version 2025-11-25 and earlier.
    Legacy,
    /// Without a handshake: protocol version 2026-07-28 and later.
    Modern,
}

/// The status of a server.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its phase.
    pub phase: ServerPhase,
    /// Why it is not connected.
    pub reason: Option<String>,
    /// What the operator can do about that.
    pub hint: Option<String>,
    /// Whether the last attempt failed because a login is required.
    pub needs_login: bool,
    /// The protocol era it uses, once that is known.
    pub era: Option<ProtocolEra>,
    /// The protocol version it uses.
    pub protocol_version: Option<String>,
    /// The name and version that it reports.
    pub reported_name: Option<String>,
    /// How long it took to connect and list its tools.
    pub startup_time: Option<Duration>,
    /// What was left out of its lists.
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

    /// The current phase or, while another attempt is in progress, the result of the last attempt.
    pub(crate) fn last_result(&self) -> ServerPhase {
        match self.phase {
            ServerPhase::Connecting if self.needs_login => ServerPhase::NeedsLogin,
            ServerPhase::Connecting if self.reason.is_some() => ServerPhase::Down,
            phase => phase,
        }
    }

    /// Whether the first attempt to connect is in progress. Only then is the server worth waiting for.
    pub(crate) fn is_first_attempt(&self) -> bool {
        self.phase == ServerPhase::Connecting && self.reason.is_none()
    }

    /// Why the server cannot be used now.
    pub(crate) fn unavailable_reason(&self) -> String {
        match (self.phase, &self.reason) {
            (ServerPhase::Off, _) => "it is switched off".into(),
            (ServerPhase::Connecting, None) => CONNECTING.into(),
            (ServerPhase::Connecting, Some(reason)) => {
                format!("it is being connected to again: {reason}")
            }
            (_, Some(reason)) => reason.clone(),
            (_, None) => "it is not connected".into(),
        }
    }
}
