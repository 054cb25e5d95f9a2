//! What became of a server.

use std::time::{Duration, Instant};

use rmcp::model::ServerPeerInfo;
use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use crate::hidden_text::loggable_name;
use crate::metrics::ServerState;

/// Why a server that has yet to answer for the first time cannot be asked.
pub(crate) const CONNECTING: &str = "it is still connecting";

/// Maximum length of a protocol version, in characters. A server can send any text in its place.
const VERSION_CHARS: usize = 32;

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The config says not to use it.
    Off,
    /// It is being connected to.
    Connecting,
    /// It answers.
    Up,
    /// It does not.
    Down,
    /// It wants somebody to log in.
    NeedsLogin,
}

impl From<Phase> for ServerState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Off => Self::Off,
            Phase::Connecting => Self::Connecting,
            Phase::Up => Self::Up,
            Phase::Down | Phase::NeedsLogin => Self::Down,
        }
    }
}

/// Which protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With a handshake: 2025-11-25 and before.
    Legacy,
    /// Without: 2026-07-28 and later.
    Modern,
}

/// What became of a server.
#[derive(Debug, Clone)]
pub struct Status {
    /// Where it stands.
    pub phase: Phase,
    /// Why it is not up, in words.
    pub why: Option<String>,
    /// What can be done about that.
    pub hint: Option<String>,
    /// Whether the last try failed because somebody has to log in.
    pub needs_login: bool,
    /// Whether it failed so often that it gets one try a minute.
    pub hopeless: bool,
    /// When it is tried again.
    pub retry_at: Option<Instant>,
    /// Which protocol it speaks, once that is known.
    pub era: Option<Era>,
    /// The revision it speaks.
    pub version: Option<String>,
    /// What it calls itself.
    pub calls_itself: Option<String>,
    /// How long it took to start.
    pub started_in: Option<Duration>,
    /// What of its lists was left out.
    pub notes: Vec<String>,
}

impl Status {
    pub(crate) fn new(phase: Phase) -> Self {
        Self {
            phase,
            why: None,
            hint: None,
            needs_login: false,
            hopeless: false,
            retry_at: None,
            era: None,
            version: None,
            calls_itself: None,
            started_in: None,
            notes: Vec::new(),
        }
    }

    pub(crate) fn connected(&mut self, era: Era, took: Duration, info: &ServerPeerInfo) {
        self.phase = Phase::Up;
        self.why = None;
        self.hint = None;
        self.needs_login = false;
        self.retry_at = None;
        self.hopeless = false;
        self.era = Some(era);
        let version = one_line(&info.protocol_version.to_string());
        self.version = Some(shorten(&version, VERSION_CHARS).into_owned());
        let name = |who: &rmcp::model::Implementation| {
            loggable_name(&format!("{} {}", who.name, who.version))
        };
        self.calls_itself = info.server_info.as_ref().map(name);
        self.started_in = Some(took);
    }

    /// Where it stands or, while it is tried again, where the last try left it.
    pub(crate) fn last_result(&self) -> Phase {
        match self.phase {
            Phase::Connecting if self.needs_login => Phase::NeedsLogin,
            Phase::Connecting if self.why.is_some() => Phase::Down,
            phase => phase,
        }
    }

    /// Whether it is being connected to and has not failed yet: only then is it worth waiting for.
    pub(crate) fn is_first_try(&self) -> bool {
        self.phase == Phase::Connecting && self.why.is_none()
    }

    /// Why nothing can be asked of it now.
    pub(crate) fn why_not(&self) -> String {
        match (self.phase, &self.why) {
            (Phase::Off, _) => "it is switched off".into(),
            (Phase::Connecting, None) => CONNECTING.into(),
            (Phase::Connecting, Some(why)) => format!("it is being connected to again: {why}"),
            (_, Some(why)) => why.clone(),
            (_, None) => "it is not connected".into(),
        }
    }
}
