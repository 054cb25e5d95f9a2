//! The bearer token: generated at the first start and stored in a file that only its owner may read.
//!
//! There is no default token, and no way to listen on a network address without a token. The token can be replaced
//! while the listener runs. Sessions and streams that were opened with the old token then end.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::private_file::{PrivateFileError, PrivateFolder};
use crate::{Secret, random};

/// The name of the token file in the state folder.
pub const TOKEN_FILE: &str = "token";

/// Maximum size of the token file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

/// Minimum length of a token, in characters. Shorter tokens could be guessed over the network. Generated tokens have 64
/// characters.
const MIN_LENGTH: usize = 16;

/// The credential that a client must send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// No credential. For a listener on loopback without a configured token.
    Open,
    /// This token, on every route except the health check and the routes of services that check their own keys.
    Bearer(Secret),
}

/// The [`Access`] of a listener, which can be replaced while the listener runs. Clones share it.
#[derive(Debug, Clone)]
pub struct AccessControl(Arc<ArcSwap<AccessState>>);

#[derive(Debug)]
struct AccessState {
    access: Access,
    credential: AcceptedCredential,
    /// Tokens that were valid earlier in this process and have been replaced.
    revoked: Vec<Secret>,
}

impl AccessState {
    fn new(access: Access, revoked: Vec<Secret>) -> Self {
        Self { access, credential: AcceptedCredential::default(), revoked }
    }

    /// Returns the state that requires `access`. In this state, the previous token is revoked, unless it is also the
    /// token of `access`.
    fn replaced_by(&self, access: Access) -> Self {
        let token = |access: &Access| match access {
            Access::Bearer(token) => Some(token.clone()),
            Access::Open => None,
        };
        let current = token(&access);
        let mut revoked = self.revoked.clone();
        revoked.extend(token(&self.access));
        revoked.retain(|token| Some(token) != current.as_ref());
        Self::new(access, revoked)
    }
}

/// The credential of an accepted request, stored in the request's extensions. Sessions, streams and anything else that
/// outlives the request must end when the credential is revoked.
#[derive(Debug, Clone, Default)]
pub struct AcceptedCredential(CancellationToken);

impl AcceptedCredential {
    /// Completes when the credential is revoked.
    pub async fn revoked(self) {
        self.0.cancelled_owned().await;
    }

    /// Whether `other` is the same credential. If it is, both are revoked at the same time.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Whether the credential is revoked.
    pub fn is_revoked(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl AccessControl {
    /// Returns the key that a client must send, unless the config has a separate key for that client. Returns `None` if
    /// no key is required.
    pub fn key(&self) -> Option<Secret> {
        self.current().0
    }

    /// Returns the key that a client must send, unless the config has a separate key for that client, and the
    /// credential of a request with this key. The key is `None` if no key is required.
    pub fn current(&self) -> (Option<Secret>, AcceptedCredential) {
        let current = self.0.load();
        let key = match &current.access {
            Access::Bearer(token) => Some(token.clone()),
            Access::Open => None,
        };
        (key, current.credential.clone())
    }

    /// Whether `given` is a token that was replaced.
    pub fn is_revoked_token(&self, given: &str) -> bool {
        self.0.load().revoked.iter().any(|token| token.matches(given))
    }

    /// Whether a text contains the current token or a replaced one.
    pub fn is_token_in(&self, text: &str) -> bool {
        let current = self.0.load();
        let token = match &current.access {
            Access::Bearer(token) => Some(token),
            Access::Open => None,
        };
        token.into_iter().chain(&current.revoked).any(|token| token.is_in(text))
    }

    /// Requires `access` from now on. If it differs from the current access, revokes the credential of earlier requests
    /// and returns `true`.
    pub fn replace(&self, access: Access) -> bool {
        let current = self.0.load();
        if current.access == access {
            return false;
        }
        let before = self.0.swap(Arc::new(current.replaced_by(access)));
        before.credential.0.cancel();
        true
    }

    /// If a token is required, checks with `matches` that the client has sent it. Returns the credential of the
    /// request.
    pub(crate) fn check<E>(
        &self,
        matches: impl FnOnce(&Secret) -> Result<(), E>,
    ) -> Result<AcceptedCredential, E> {
        let current = self.0.load();
        if let Access::Bearer(token) = &current.access {
            matches(token)?;
        }
        Ok(current.credential.clone())
    }
}

impl From<Access> for AccessControl {
    fn from(access: Access) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(AccessState::new(access, Vec::new()))))
    }
}

impl From<Option<Secret>> for AccessControl {
    fn from(key: Option<Secret>) -> Self {
        key.map_or(Access::Open, Access::Bearer).into()
    }
}

/// Why a listener that needs a token has no usable token. The server then does not start.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Other users can read the token file, so they may know the token.
    #[error("other users may read the token in `{}` (mode {mode:o})", path.display())]
    ReadableByOthers {
        /// The token file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The token in the file or in the config is too short, or has invalid characters.
    #[error("the token {} has fewer than {MIN_LENGTH} characters, or characters other than visible ASCII", source_of(path.as_deref()))]
    Weak {
        /// The token file; `None` for a token from the config.
        path: Option<PathBuf>,
    },
    /// The token file or its folder cannot be used.
    #[error("the token file cannot be used: {0}")]
    File(#[source] PrivateFileError),
    /// There is no state folder to store a token in.
    #[error(
        "a listener on a network address needs a token, and there is no state folder to store one in"
    )]
    NoState,
    /// The operating system provides no random numbers.
    #[error("cannot generate a token: {0}")]
    Random(#[source] io::Error),
}

impl TokenError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::ReadableByOthers { path, .. } | Self::Weak { path: Some(path) } => {
                format!("delete `{}`; the next start generates a new token", path.display())
            }
            Self::Weak { path: None } => {
                "leave the token out of the config: one is generated at the first start".to_owned()
            }
            Self::File(error) => error.hint(),
            Self::NoState => "set `http.token` in the config, or HOME".to_owned(),
            Self::Random(_) => "check that this machine has `/dev/urandom`".to_owned(),
        }
    }
}

fn source_of(path: Option<&Path>) -> String {
    path.map_or_else(|| "in the config".to_owned(), |path| format!("in `{}`", path.display()))
}

impl Access {
    /// Decides what a listener on `address` requires: the configured token if there is one; otherwise nothing on a
    /// loopback address, and the generated token on any other address.
    pub fn decide(
        address: IpAddr,
        configured: Option<Secret>,
        state: Option<&PrivateFolder>,
    ) -> Result<Self, TokenError> {
        match configured {
            Some(token) if is_strong(token.expose()) => Ok(Self::Bearer(token)),
            Some(_) => Err(TokenError::Weak { path: None }),
            None if address.to_canonical().is_loopback() => Ok(Self::Open),
            None => load_or_create(state.ok_or(TokenError::NoState)?).map(Self::Bearer),
        }
    }
}

/// Returns the token in the state folder. If there is none, generates a token from 256 random bits of the operating
/// system and stores it there.
pub fn load_or_create(state: &PrivateFolder) -> Result<Secret, TokenError> {
    if let Some(token) = load(state)? {
        return Ok(token);
    }
    let token = random::hex::<32>().map_err(TokenError::Random)?;
    if state.create(TOKEN_FILE, token.as_bytes()).map_err(TokenError::File)? {
        return Ok(token.into());
    }
    // Another process that started at the same time has created the file, so use the token in it.
    let removed = || PrivateFileError::Io {
        path: state.file(TOKEN_FILE),
        source: io::ErrorKind::NotFound.into(),
    };
    load(state)?.ok_or_else(|| TokenError::File(removed()))
}

fn load(state: &PrivateFolder) -> Result<Option<Secret>, TokenError> {
    let path = state.file(TOKEN_FILE);
    let bytes = match state.read(TOKEN_FILE, MAX_FILE_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(PrivateFileError::ReadableByOthers { path, mode }) => {
            return Err(TokenError::ReadableByOthers { path, mode });
        }
        Err(PrivateFileError::TooLarge { path, .. }) => {
            return Err(TokenError::Weak { path: Some(path) });
        }
        Err(error) => return Err(TokenError::File(error)),
    };
    match std::str::from_utf8(&bytes).map(str::trim) {
        Ok(token) if is_strong(token) => Ok(Some(token.into())),
        _ => Err(TokenError::Weak { path: Some(path) }),
    }
}

/// Whether a token is too long to be guessed over the network, and consists of visible ASCII.
pub(crate) fn is_strong(token: &str) -> bool {
    token.len() >= MIN_LENGTH && token.bytes().all(|byte| byte.is_ascii_graphic())
}
