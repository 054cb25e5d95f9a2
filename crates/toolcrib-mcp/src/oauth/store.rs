//! Where the tokens of one upstream lie: one private file per server.
//!
//! The file's name is a hash of the server's name and URL: no name leads out of the folder, and another
//! URL finds no credentials. A file that is damaged, readable by others, from another version or about
//! another server, or in a folder that others can change, counts as "not logged in", with a warning that never quotes it.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthTokenResponse, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};
use url::Url;

use crate::Secret;

/// Raised when the file's shape changes; other versions are not read.
const VERSION: u32 = 1;

/// Maximum size of a file, in bytes. Tokens have a few thousand at most.
const LARGEST: u64 = 1 << 20;

/// Another process refreshes for at most one request of 30 s.
const LOCK_TRIES: u32 = 400;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    server: String,
    url: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

/// What [`client_for`](super::client_for) needs to know of a file.
pub(super) struct Stored {
    pub(super) client_id: String,
    pub(super) client_secret: Option<Secret>,
}

/// The credentials of one server. A clone is the same store.
#[derive(Clone)]
pub(super) struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    server: String,
    url: Url,
    folder: PrivateFolder,
    /// The file's name without its extension.
    name: String,
    /// What registration gave us beside the id; rmcp's own record has no place for it.
    client_secret: Mutex<Option<Secret>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn new(state: &PrivateFolder, server: &str, url: &Url) -> Self {
        let mut hash = blake3::Hasher::new();
        // The length keeps the border between the two: `a` + `bc` is not `ab` + `c`.
        hash.update(&(server.len() as u64).to_le_bytes());
        hash.update(server.as_bytes()).update(url.as_str().as_bytes());
        let name = hash.finalize().to_hex()[..32].to_owned();
        let inner = Inner {
            server: server.to_owned(),
            url: url.clone(),
            folder: state.folder("oauth"),
            name,
            client_secret: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    fn file(&self) -> String {
        format!("{}.json", self.inner.name)
    }

    /// Makes sure that credentials can be stored, before somebody signs in for nothing.
    pub(super) fn prepare(&self) -> Result<(), PrivateFileError> {
        self.inner.folder.prepare()
    }

    /// What is stored, if it can be used.
    pub(super) fn read(&self) -> Option<Stored> {
        let kept = self.kept()?;
        Some(Stored {
            client_id: kept.credentials.client_id,
            client_secret: kept.client_secret.map(Secret::from),
        })
    }

    /// The secret to keep beside the next credentials.
    pub(super) fn set_client_secret(&self, secret: Option<Secret>) {
        *self.inner.client_secret.lock().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// The tokens as their server gave them.
    pub(super) fn token(&self) -> Option<OAuthTokenResponse> {
        self.kept()?.credentials.token_response
    }

    fn kept(&self) -> Option<Kept> {
        let file = self.file();
        let warn = |why: &str| {
            let path = self.inner.folder.file(&file);
            let (server, path) = (&self.inner.server, path.display());
            tracing::warn!(server, %path, why, "stored credentials are not used: log in again");
            None
        };
        let bytes = match self.inner.folder.read(&file, LARGEST) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return None,
            Err(error) => return warn(&format!("{error}; {}", error.hint())),
        };
        // serde's message could quote a token.
        let Ok(kept) = serde_json::from_slice::<Kept>(&bytes) else {
            return warn("the file is damaged");
        };
        if kept.version != VERSION {
            return warn("the file is of another version");
        }
        if kept.server != self.inner.server || kept.url != self.inner.url {
            return warn("the file is about another server");
        }
        if kept.credentials.issuer.is_none() || kept.credentials.token_response.is_none() {
            return warn("the file names no issuer or no token");
        }
        let secret = kept.client_secret.as_deref().map(Secret::from);
        self.set_client_secret(secret);
        Some(kept)
    }

    fn write(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let secret =
            self.inner.client_secret.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = Kept {
            version: VERSION,
            server: self.inner.server.clone(),
            url: self.inner.url.clone(),
            client_secret: secret.map(|secret| secret.expose().to_owned()),
            credentials,
        };
        let bytes = serde_json::to_vec(&kept).map_err(|error| failed(&error))?;
        self.inner.folder.replace(&self.file(), &bytes).map_err(|error| failed(&error))
    }

    /// Waits until no other process refreshes the same tokens. Two that did at once would each spend the
    /// refresh token, and a careful server then takes both for a theft.
    async fn lock(&self) -> io::Result<File> {
        let name = format!("{}.lock", self.inner.name);
        let file = self.inner.folder.open_lock(&name).map_err(io::Error::other)?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the refresh lock"))
    }
}

#[async_trait]
impl CredentialStore for Store {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.kept().map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.inner.folder.remove(&self.file()).map_err(|error| failed(&error))
    }

    async fn on_refresh_token_rejected(&self, used: &StoredCredentials) -> Result<(), AuthError> {
        let same = self.kept().is_some_and(|kept| refresh(&kept.credentials) == refresh(used));
        // A login may have replaced them meanwhile; else every later call would ask in vain.
        if same { self.clear().await } else { Ok(()) }
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let lock = self.lock().await.map_err(|error| failed(&error))?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}

fn refresh(credentials: &StoredCredentials) -> Option<String> {
    // Through JSON, for the accessor is a trait of a crate that we do not otherwise need.
    let token = serde_json::to_value(credentials.token_response.as_ref()?).ok()?;
    Some(token.get("refresh_token")?.as_str()?.to_owned())
}

fn failed(error: &impl fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder_and_none_meets_another() {
        let url: Url = "https://mcp.example.com/mcp".parse().unwrap();
        let state = PrivateFolder::new("/state", None);
        let path = |server: &str, url: &Url| {
            let store = Store::new(&state, server, url);
            store.inner.folder.file(&store.file())
        };
        let mut seen = std::collections::BTreeSet::new();
        for server in
            ["a", "../../etc/passwd", "/etc/passwd", "", "..", "a\0", "a/b", "ä", &"x".repeat(5000)]
        {
            let path = path(server, &url);
            assert_eq!(path.parent().unwrap(), Path::new("/state/oauth"), "{server:?}");
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.len() == 37 && name.is_ascii(), "{name}");
            assert!(seen.insert(path));
        }
        assert!(seen.insert(path("a", &"https://mcp.example.com/mcp2".parse().unwrap())));
        assert!(seen.insert(path("a", &"http://mcp.example.com/mcp".parse().unwrap())));
    }
}
