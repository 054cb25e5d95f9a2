//! The bearer token: generated at the first start, kept in a file that only its owner may read.
//!
//! There is no default token, and no way to listen on a network address without one.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::private_file::{self, Unreadable};
use crate::{Secret, random};

/// The name of the token file in the state folder.
pub const FILE: &str = "token";

/// Minimum length of a token. Shorter ones could be guessed over the network; a generated one has 64 characters.
const SHORTEST: usize = 16;

/// What a caller must send.
#[derive(Debug, Clone)]
pub enum Access {
    /// Nothing: the listener is on loopback, and no token is configured.
    Open,
    /// This token, on every route but the health check and those of services that check their own keys.
    Bearer(Secret),
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

/// Whether a token is too long to be guessed over the network.
pub(crate) fn is_strong(token: &str) -> bool {
    token.len() >= SHORTEST && token.bytes().all(|byte| byte.is_ascii_graphic())
}
