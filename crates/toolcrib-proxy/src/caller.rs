//! Identifies the caller of a request, and says what it may do.
//!
//! A caller in the config is identified by its Toolcrib key, and any other caller by the provider's credential that it
//! sends. The id of a caller is a hash of its name in the config, or of that credential. The id is part of the key of
//! every stored record, so one caller's records cannot appear in another caller's conversation.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri};
use toolcrib_server::access::AccessControl;
use toolcrib_server::admin::{ADMIN_HINT, AdminAccess};

use crate::Secret;
use crate::allowed_paths::{AllowedPaths, InvalidPathEntry};
use crate::caller_scope::{CallerScope, ScopeRule};
use crate::config::{self, ProviderKeys, ProxyConfig};
use crate::credentials;
use crate::misplaced_keys::{self, KeyLocation};
use crate::path::NormalizedPath;
use crate::revocation::Revocation;
use crate::toolcrib_headers::{InvalidHeader, ToolcribHeaders};

/// The sender of a request, and what the sender may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Identifies the caller in the keys of stored records.
    pub id: [u8; 32],
    /// The tools that the caller may see.
    pub scope: CallerScope,
    /// The caller's entry in the config, if the caller has a key of its own.
    configured: Option<Arc<ConfiguredCaller>>,
    /// Paths that the config opens to the caller.
    paths: Arc<AllowedPaths>,
    /// The provider credentials that replace the caller's Toolcrib key, if the caller sent the key in place of a
    /// credential.
    pub(crate) substitute_keys: Option<ProviderKeys>,
    revocation: Revocation,
}

impl Caller {
    /// Returns the caller's name in the config; `None` if the caller has no key of its own.
    pub fn name(&self) -> Option<&str> {
        self.configured.as_ref().map(|configured| configured.name.as_str())
    }

    /// Returns the id that identifies the caller and its scope in the keys of a conversation's records. A record
    /// contains definitions of tools that were found, so a record that was made with one scope must not be used with
    /// another.
    pub(crate) fn record_owner_id(&self) -> [u8; 32] {
        if !self.scope.is_narrow() {
            return self.id;
        }
        let mut hasher = blake3::Hasher::new_derive_key("toolcrib proxy scope");
        hasher.update(&self.id);
        self.scope.hash_into(&mut hasher);
        *hasher.finalize().as_bytes()
    }

    /// Returns the [`Revocation`] of the caller's key, or of the listener's token if the caller has no key.
    pub(crate) fn revocation(&self) -> Revocation {
        self.revocation.clone()
    }

    /// Whether the caller may use only generation, counting, lists of models, and the paths that the config opens. True
    /// for a caller with a key, because it may use a credential of the operator, and for a caller with a scope, because
    /// a scope can be enforced only in bodies that are read.
    pub(crate) fn is_limited(&self) -> bool {
        self.configured.is_some() || self.scope.is_narrow()
    }

    /// Whether the config opens `POST /v1/conversations` to the caller. Only then may the caller's requests continue
    /// conversations that the provider stores.
    pub(crate) fn may_create_conversations(&self) -> bool {
        let path = NormalizedPath::read(b"/v1/conversations");
        path.is_ok_and(|path| self.may_use_path(&Method::POST, &path))
    }

    /// Whether the config opens this path to the caller.
    pub(crate) fn may_use_path(&self, method: &Method, path: &NormalizedPath) -> bool {
        self.paths.allow(method, path)
    }
}

/// A caller in the config.
#[derive(Debug)]
struct ConfiguredCaller {
    name: String,
    key: Secret,
    rule: Arc<ScopeRule>,
    /// The paths that are open to this caller: its own, and those that are open to all callers.
    paths: Arc<AllowedPaths>,
    upstream_keys: ProviderKeys,
    /// Whether the caller's key is revoked. This is kept when the config is reloaded, as long as the caller has the
    /// same key.
    revocation: Revocation,
}

/// All callers that may send requests.
#[derive(Debug)]
pub struct Callers {
    configured: Vec<Arc<ConfiguredCaller>>,
    /// Keys that were revoked since the process started. A listener that requires no key would otherwise take such a
    /// key for a provider's credential and send it to the provider.
    revoked: Vec<Secret>,
    /// Paths that are open to every caller.
    paths: Arc<AllowedPaths>,
    /// The key for callers without a key of their own. No key is required if only this machine can reach the listener.
    shared_key: AccessControl,
    /// Decides who may see the statistics of all callers. The admin token is never sent to an upstream.
    admin: Arc<AdminAccess>,
}

/// Which statistics a client may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatsView {
    /// The statistics of all callers.
    All,
    /// The statistics of the caller with this name.
    OneCaller(String),
}

/// Why the caller of a request cannot be identified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifyError {
    /// A key is required, but the request has none or a wrong one.
    #[error("a key is required: send it as `x-toolcrib-key`")]
    NoKey,
    /// A header is invalid.
    #[error(transparent)]
    InvalidHeader(#[from] InvalidHeader),
    /// A Toolcrib key is in a part of the request that would be forwarded to the provider.
    #[error(
        "a Toolcrib key is in {0} and would be sent to the provider: send it as `x-toolcrib-key`, or alone in place of the provider's credential (`Authorization: Bearer KEY`, `x-api-key`, `x-goog-api-key`, `api-key` or `?key=`)"
    )]
    MisplacedKey(KeyLocation),
    /// The request contains the keys of two callers.
    #[error("the request contains the keys of two callers: send one")]
    TwoCallers,
    /// The client requests statistics, but it is neither a configured caller nor the admin.
    #[error(
        "the statistics require a caller's key, or the admin token to see all callers: {ADMIN_HINT}"
    )]
    NotAdmin,
}

impl Callers {
    /// Creates the callers of a config. `shared_key` is the key for callers without a key of their own, and `before`
    /// are the callers of the previous config.
    pub fn new(
        config: &ProxyConfig,
        shared_key: impl Into<AccessControl>,
        admin: Arc<AdminAccess>,
        before: Option<&Self>,
    ) -> Result<Self, InvalidPathEntry> {
        let configured = |caller: &config::CallerConfig| {
            let same = before.and_then(|before| before.find(&caller.name, &caller.key));
            Ok(Arc::new(ConfiguredCaller {
                revocation: same
                    .map_or_else(Revocation::for_new_key, |same| same.revocation.clone()),
                name: caller.name.clone(),
                key: caller.key.clone(),
                rule: Arc::new(ScopeRule::new(&caller.tools, &caller.hidden)),
                paths: Arc::new(AllowedPaths::new(config.paths.iter().chain(&caller.paths))?),
                upstream_keys: caller.upstream_keys.clone(),
            }))
        };
        let is_removed = |key: &&Secret| !config.callers.iter().any(|caller| caller.key == **key);
        let keys = before.into_iter().flat_map(|before| {
            before.revoked.iter().chain(before.configured.iter().map(|caller| &caller.key))
        });
        Ok(Self {
            revoked: keys.filter(is_removed).cloned().collect(),
            configured: config.callers.iter().map(configured).collect::<Result<_, _>>()?,
            paths: Arc::new(AllowedPaths::new(&config.paths)?),
            shared_key: shared_key.into(),
            admin,
        })
    }

    /// Returns the key for callers without a key of their own.
    pub(crate) fn shared_key(&self) -> AccessControl {
        self.shared_key.clone()
    }

    fn find(&self, name: &str, key: &Secret) -> Option<&Arc<ConfiguredCaller>> {
        self.configured.iter().find(|caller| caller.name == name && caller.key == *key)
    }

    /// Revokes the keys that are missing from `now`, the callers of the reloaded config. This ends the requests that
    /// use these keys.
    pub(crate) fn revoke_missing(&self, now: &Self) {
        for caller in
            self.configured.iter().filter(|caller| now.find(&caller.name, &caller.key).is_none())
        {
            tracing::info!(caller = caller.name, "a caller's key was revoked");
            caller.revocation.revoke();
        }
    }

    /// Whether `given` is a key or token that was revoked since the process started.
    fn is_revoked(&self, given: &str) -> bool {
        self.revoked.iter().any(|key| key.matches(given))
            || self.shared_key.is_revoked_token(given)
            || self.admin.is_revoked_token(given)
    }

    /// Whether `given` is a caller's key, the listener's token or the admin token, current or revoked.
    fn is_key(&self, given: &str) -> bool {
        self.configured.iter().any(|caller| caller.key.matches(given))
            || self.shared_key.key().is_some_and(|shared| shared.matches(given))
            || self.admin.matches(given)
            || self.is_revoked(given)
    }

    /// Whether a text contains a key or token for which [`Self::is_key`] is true.
    fn is_key_in(&self, text: &str) -> bool {
        self.configured
            .iter()
            .map(|caller| &caller.key)
            .chain(&self.revoked)
            .any(|key| key.is_in(text))
            || self.shared_key.is_token_in(text)
            || self.admin.is_token_in(text)
    }

    /// Returns which statistics the sender of a request may see.
    pub(crate) fn stats_view(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<StatsView, IdentifyError> {
        if self.admin.is_admin(headers) {
            return Ok(StatsView::All);
        }
        let caller = self.identify(uri, headers, &ToolcribHeaders::read(headers)?)?;
        match caller.name() {
            _ if !self.admin.is_required() => Ok(StatsView::All),
            Some(name) => Ok(StatsView::OneCaller(name.to_owned())),
            None => Err(IdentifyError::NotAdmin),
        }
    }

    /// Identifies the caller of a request.
    pub(crate) fn identify(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        own_headers: &ToolcribHeaders<'_>,
    ) -> Result<Caller, IdentifyError> {
        let is_key = |given: &str| self.is_key(given);
        if let Some(place) =
            misplaced_keys::find_misplaced_key(uri, headers, is_key, |text| self.is_key_in(text))
        {
            return Err(IdentifyError::MisplacedKey(place));
        }
        let providers = credentials::provider_credentials(uri, headers)?;
        let find_caller =
            |given: &str| self.configured.iter().find(|caller| caller.key.matches(given));
        let own = own_headers.key.and_then(find_caller);
        let mut in_credentials = providers.iter().filter_map(|given| find_caller(given));
        let from_credential = in_credentials.next();
        let found = own.or(from_credential);
        let is_found =
            |other: &Arc<ConfiguredCaller>| found.is_some_and(|found| Arc::ptr_eq(found, other));
        if !from_credential.into_iter().chain(in_credentials).all(is_found) {
            return Err(IdentifyError::TwoCallers);
        }
        let (shared_key, credential) = self.shared_key.current();
        let is_admitted = match (own_headers.key, &shared_key) {
            // A wrong key in `x-toolcrib-key` is an error, even if the request contains a valid key elsewhere. It is
            // not treated as a missing key, because its sender expects to be recognised.
            (Some(given), shared) => {
                own.is_some() || shared.as_ref().is_some_and(|shared| shared.matches(given))
            }
            (None, shared) => found.is_some() || shared.is_none(),
        };
        let is_token = |given: &Cow<'_, str>| {
            shared_key.as_ref().is_some_and(|shared| shared.matches(given))
                || self.admin.matches(given)
        };
        let is_revoked = |given: &Cow<'_, str>| {
            // A secret that was revoked as one kind of key may now be valid as another kind.
            self.is_revoked(given) && find_caller(given).is_none() && !is_token(given)
        };
        if !is_admitted || providers.iter().any(is_revoked) {
            return Err(IdentifyError::NoKey);
        }
        let sends_token = providers.iter().any(is_token);
        let own_rule = found.map(|caller| Arc::clone(&caller.rule));
        Ok(Caller {
            id: match found {
                Some(caller) => hash("caller", &caller.name),
                None => hash("credential", &providers.join("\n")),
            },
            scope: CallerScope {
                rules: own_rule.into_iter().chain(own_headers.tools.clone()).collect(),
            },
            paths: Arc::clone(found.map_or(&self.paths, |caller| &caller.paths)),
            // A Toolcrib key that was sent in place of a credential must not be forwarded.
            substitute_keys: match found {
                Some(caller) if from_credential.is_some() => Some(caller.upstream_keys.clone()),
                _ if sends_token => Some(ProviderKeys::default()),
                _ => None,
            },
            revocation: match found {
                Some(caller) => caller.revocation.clone(),
                None => Revocation::Listener(credential),
            },
            configured: found.cloned(),
        })
    }
}

fn hash(kind: &str, text: &str) -> [u8; 32] {
    *blake3::Hasher::new_derive_key("toolcrib proxy caller")
        .update(kind.as_bytes())
        .update(&[0])
        .update(text.as_bytes())
        .finalize()
        .as_bytes()
}

#[cfg(test)]
mod tests;
