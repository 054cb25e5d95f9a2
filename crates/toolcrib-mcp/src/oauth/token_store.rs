//! Stores the tokens of one upstream server in a private file.
//!
//! The file's name is a hash of the server's name and URL, so no name can point outside the folder, and a different URL
//! finds no credentials. The user counts as not logged in if the file is damaged, is readable by other users, has
//! another version or is for another server, or if other users can write to its folder. A warning reports this, without
//! quoting the file.

use parking_lot::Mutex;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthTokenResponse, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};
use url::Url;

use crate::Secret;

/// The version of the file format. Files of other versions are ignored.
const VERSION: u32 = 1;

/// Maximum size of a file, in bytes. Tokens take a few thousand bytes at most.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of attempts to acquire the lock. They take 40 s in total, because another process may hold the lock
/// for one request of at most 30 s.
const LOCK_ATTEMPTS: u32 = 400;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// The contents of the file with the tokens.
#[derive(Serialize, Deserialize)]
struct CredentialFile {
    version: u32,
    server: String,
    url: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

/// The OAuth client that the stored tokens were issued to.
pub(super) struct StoredClient {
    pub(super) client_id: String,
    pub(super) client_secret: Option<Secret>,
}

/// The credentials of one server. Clones share the store.
#[derive(Clone)]
pub(super) struct TokenStore {
    inner: Arc<TokenFile>,
}

struct TokenFile {
    server: String,
    url: Url,
    folder: PrivateFolder,
    /// The file's name without its extension.
    name: String,
    /// The client secret from registration. The SDK's credentials have no field for it.
    client_secret: Mutex<Option<Secret>>,
}

impl fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenStore").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl TokenStore {
    pub(super) fn new(state: &PrivateFolder, server: &str, url: &Url) -> Self {
        let mut hash = blake3::Hasher::new();
        // The length separates the name from the URL, so that `a` + `bc` differs from `ab` + `c`.
        hash.update(&(server.len() as u64).to_le_bytes());
        hash.update(server.as_bytes()).update(url.as_str().as_bytes());
        let name = hash.finalize().to_hex()[..32].to_owned();
        let inner = TokenFile {
            server: server.to_owned(),
            url: url.clone(),
            folder: state.subfolder("oauth"),
            name,
            client_secret: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    fn file_name(&self) -> String {
        format!("{}.json", self.inner.name)
    }

    /// Checks that credentials can be stored, before the user signs in.
    pub(super) fn prepare(&self) -> Result<(), PrivateFileError> {
        self.inner.folder.create_if_missing()
    }

    /// Returns the OAuth client that the stored tokens were issued to, if the file can be used.
    pub(super) fn client(&self) -> Option<StoredClient> {
        let file = self.load_file()?;
        Some(StoredClient {
            client_id: file.credentials.client_id,
            client_secret: file.client_secret.map(Secret::from),
        })
    }

    /// Sets the client secret, which is stored the next time that credentials are stored.
    pub(super) fn set_client_secret(&self, secret: Option<Secret>) {
        *self.inner.client_secret.lock() = secret;
    }

    /// Returns the stored token response, if the file can be used.
    pub(super) fn token(&self) -> Option<OAuthTokenResponse> {
        self.load_file()?.credentials.token_response
    }

    fn load_file(&self) -> Option<CredentialFile> {
        let name = self.file_name();
        let warn = |why: &str| {
            let path = self.inner.folder.file(&name);
            let (server, path) = (&self.inner.server, path.display());
            tracing::warn!(server, %path, why, "stored credentials are not used: log in again");
            None
        };
        let bytes = match self.inner.folder.read(&name, MAX_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return None,
            Err(error) => return warn(&format!("{error}; {}", error.hint())),
        };
        // serde's error is not logged, because it could quote a token.
        let Ok(file) = serde_json::from_slice::<CredentialFile>(&bytes) else {
            return warn("the file is damaged");
        };
        if file.version != VERSION {
            return warn("the file has a different version");
        }
        if file.server != self.inner.server || file.url != self.inner.url {
            return warn("the file is for another server");
        }
        if file.credentials.issuer.is_none() || file.credentials.token_response.is_none() {
            return warn("the file has no issuer or no token");
        }
        let secret = file.client_secret.as_deref().map(Secret::from);
        self.set_client_secret(secret);
        Some(file)
    }

    fn write(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let secret = self.inner.client_secret.lock().clone();
        let file = CredentialFile {
            version: VERSION,
            server: self.inner.server.clone(),
            url: self.inner.url.clone(),
            client_secret: secret.map(|secret| secret.expose().to_owned()),
            credentials,
        };
        let bytes = serde_json::to_vec(&file).map_err(|error| failed(&error))?;
        self.inner.folder.replace(&self.file_name(), &bytes).map_err(|error| failed(&error))
    }

    /// Waits until no other process refreshes the same tokens. Returns the lock file, and other processes wait until it
    /// is dropped. If two processes used the refresh token at once, the server could treat the token as stolen and
    /// revoke the tokens of both processes.
    async fn lock(&self) -> io::Result<File> {
        let name = format!("{}.lock", self.inner.name);
        let file = self.inner.folder.open_lock(&name).map_err(io::Error::other)?;
        for _ in 0..LOCK_ATTEMPTS {
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
impl CredentialStore for TokenStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.load_file().map(|file| file.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.inner.folder.remove(&self.file_name()).map_err(|error| failed(&error))
    }

    async fn on_refresh_token_rejected(&self, used: &StoredCredentials) -> Result<(), AuthError> {
        let same = self
            .load_file()
            .is_some_and(|file| refresh_token(&file.credentials) == refresh_token(used));
        // Rejected tokens are removed, unless a login has replaced them in the meantime.
        if same { self.clear().await } else { Ok(()) }
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let lock = self.lock().await.map_err(|error| failed(&error))?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}

fn refresh_token(credentials: &StoredCredentials) -> Option<String> {
    // The value is read through JSON, because its accessor belongs to a trait of a crate that is not otherwise needed.
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
    fn file_names_stay_in_the_folder_and_are_unique() {
        let url: Url = "https://mcp.example.com/mcp".parse().unwrap();
        let state = PrivateFolder::new("/state", None);
        let path = |server: &str, url: &Url| {
            let store = TokenStore::new(&state, server, url);
            store.inner.folder.file(&store.file_name())
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
