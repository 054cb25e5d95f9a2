//! The bearer token: generated at the first start, kept in a file that only its owner may read.
//!
//! There is no default token, and no way to listen on a network address without one. A token can be replaced
//! while the listener runs, which ends whatever the old one had begun.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::private_file::{self, Unreadable};
use crate::{Secret, random};

/// The name of the token file in the state folder.
pub const FILE: &str = "token";

/// Minimum length of a token. Shorter ones could be guessed over the network; a generated one has 64 characters.
const SHORTEST: usize = 16;

/// What a caller must send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the listener is on loopback, and no token is configured.
    Open,
    /// This token, on every route but the health check and those of services that check their own keys.
    Bearer(Secret),
}

/// The [`Access`] of a listener, which can be replaced while it runs. A clone is the same one.
#[derive(Debug, Clone)]
pub struct AccessControl(Arc<ArcSwap<Current>>);

#[derive(Debug)]
struct Current {
    access: Access,
    credential: Credential,
}

/// What a request was let in with, in the extensions of the request. Everything that outlives the request ends
/// when the credential is revoked.
#[derive(Debug, Clone, Default)]
pub struct Credential(CancellationToken);

impl Credential {
    /// Completes when the credential is revoked.
    pub async fn revoked(self) {
        self.0.cancelled_owned().await;
    }

    /// Whether both are revoked together.
    pub fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Whether it is revoked.
    pub fn is_revoked(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl AccessControl {
    /// The key that a caller without a key of its own must send; `None` if none is needed.
    pub fn key(&self) -> Option<Secret> {
        match &self.0.load().access {
            Access::Bearer(token) => Some(token.clone()),
            Access::Open => None,
        }
    }

    /// Requires `access` from now on, and revokes what was let in before if that is a change. Returns whether
    /// it is.
    pub fn replace(&self, access: Access) -> bool {
        if self.0.load().access == access {
            return false;
        }
        let before = self.0.swap(Arc::new(Current { access, credential: Credential::default() }));
        before.credential.0.cancel();
        true
    }

    /// Decides with `matches` whether a caller has the token, if one is needed.
    pub(crate) fn check<E>(
        &self,
        matches: impl FnOnce(&Secret) -> Result<(), E>,
    ) -> Result<Credential, E> {
        let current = self.0.load();
        if let Access::Bearer(token) = &current.access {
            matches(token)?;
        }
        Ok(current.credential.clone())
    }
}

impl From<Access> for AccessControl {
    fn from(access: Access) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Current { access, credential: Credential::default() })))
    }
}

impl From<Option<Secret>> for AccessControl {
    fn from(key: Option<Secret>) -> Self {
        key.map_or(Access::Open, Access::Bearer).into()
    }
}

/// Why there is no token to compare with. The server must not start then.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Other users could read the file, and may know the token.
    #[error("other users may read the token in `{}` (mode {mode:o})", path.display())]
    Shared {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The token in the file or in the config is too short to be one.
    #[error("the token {} has fewer than {SHORTEST} characters, or others than visible ASCII", source_of(path.as_deref()))]
    Weak {
        /// The file; `None` for a token from the config.
        path: Option<PathBuf>,
    },
    /// The file can be neither read nor created.
    #[error("the token file `{}` cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl TokenError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Shared { path, .. } | Self::Weak { path: Some(path) } => {
                format!("delete `{}`; the next start makes a new token", path.display())
            }
            Self::Weak { path: None } => {
                "leave the token out of the config: one is made at the first start".to_owned()
            }
            Self::Io { path, .. } => format!("check the folder of `{}`", path.display()),
        }
    }
}

fn source_of(path: Option<&Path>) -> String {
    path.map_or_else(|| "in the config".to_owned(), |path| format!("in `{}`", path.display()))
}

impl Access {
    /// What a listener on `address` requires: the configured token if there is one; otherwise the
    /// generated token, or nothing on a loopback address.
    pub fn decide(
        address: IpAddr,
        configured: Option<Secret>,
        state: &Path,
    ) -> Result<Self, TokenError> {
        match configured {
            Some(token) if is_strong(token.expose()) => Ok(Self::Bearer(token)),
            Some(_) => Err(TokenError::Weak { path: None }),
            None if address.to_canonical().is_loopback() => Ok(Self::Open),
            None => load_or_create(state).map(Self::Bearer),
        }
    }
}

/// The token in the state folder, generated if there is none: 256 bits from the operating system.
pub fn load_or_create(state: &Path) -> Result<Secret, TokenError> {
    let path = state.join(FILE);
    if let Some(token) = load(&path)? {
        return Ok(token);
    }
    let io = |source| TokenError::Io { path: path.clone(), source };
    private_file::make_folder(state).map_err(io)?;
    let token = random::hex::<32>().map_err(io)?;
    match private_file::create(&path, token.as_bytes()) {
        Ok(()) => Ok(token.into()),
        // A concurrent first start created the file: use its token.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            load(&path)?.ok_or_else(|| io(error))
        }
        Err(error) => Err(io(error)),
    }
}

fn load(path: &Path) -> Result<Option<Secret>, TokenError> {
    let path = path.to_owned();
    let bytes = match private_file::read(&path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(Unreadable::Shared { mode }) => return Err(TokenError::Shared { path, mode }),
        Err(Unreadable::TooLarge) => return Err(TokenError::Weak { path: Some(path) }),
        Err(Unreadable::Io(source)) => return Err(TokenError::Io { path, source }),
    };
    match std::str::from_utf8(&bytes).map(str::trim) {
        Ok(token) if is_strong(token) => Ok(Some(token.into())),
        _ => Err(TokenError::Weak { path: Some(path) }),
    }
}

fn is_strong(token: &str) -> bool {
    token.len() >= SHORTEST && token.bytes().all(|byte| byte.is_ascii_graphic())
}
