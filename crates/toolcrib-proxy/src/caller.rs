//! Who calls, and what they may do.
//!
//! A caller is known by a key of ours or, where none is asked for, by the provider's credential that it
//! sends. Both become a hash, and the hash is part of every key that state is kept under: what one
//! caller's conversation left behind cannot come up in another's.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri};
use toolcrib_server::access::AccessControl;
use toolcrib_server::admin::{ADMIN_HINT, AdminAccess};

use crate::Secret;
use crate::allowed_paths::{AllowedPaths, InvalidPathEntry};
use crate::caller_scope::{CallerScope, ScopeRule};
use crate::config::{self, Config, ProviderKeys};
use crate::credentials;
use crate::misplaced_keys::{self, KeyLocation};
use crate::path::NormalizedPath;
use crate::revocation::Revocation;
use crate::toolcrib_headers::{InvalidHeader, ToolcribHeaders};

/// Somebody who calls.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What state is kept under.
    pub id: [u8; 32],
    /// What it may see.
    pub scope: CallerScope,
    /// The caller in the config, if it has a key of its own.
    known: Option<Arc<ConfiguredCaller>>,
    /// Paths that are open to it although they are not to every caller.
    paths: Arc<AllowedPaths>,
    /// What is sent in place of its own key, if that was sent in place of a credential.
    pub(crate) substitute_keys: Option<ProviderKeys>,
    revocation: Revocation,
}

impl Caller {
    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.known.as_ref().map(|known| known.name.as_str())
    }

    /// What records of a conversation are kept under. A record has definitions of the tools that were found, so
    /// one that was made in another scope must not come up in this one.
    pub(crate) fn record_owner_id(&self) -> [u8; 32] {
        if !self.scope.is_narrow() {
            return self.id;
        }
        let mut hasher = blake3::Hasher::new_derive_key("toolcrib proxy scope");
        hasher.update(&self.id);
        self.scope.hash_into(&mut hasher);
        *hasher.finalize().as_bytes()
    }

    /// When its key, or the listener's token that it sent, is revoked.
    pub(crate) fn revocation(&self) -> Revocation {
        self.revocation.clone()
    }

    /// Whether only listed endpoints are open to it: it has a key, with which comes somebody else's credential, or
    /// a scope, which holds only in bodies that are read.
    pub(crate) fn is_limited(&self) -> bool {
        self.known.is_some() || self.scope.is_narrow()
    }

    /// Whether the config opens the provider's stored conversations to it.
    pub(crate) fn may_create_conversations(&self) -> bool {
        let path = NormalizedPath::read(b"/v1/conversations");
        path.is_ok_and(|path| self.may_use_path(&Method::POST, &path))
    }

    /// Whether the config opens this path to it.
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
    /// Its own, and those of all callers.
    paths: Arc<AllowedPaths>,
    upstream_keys: ProviderKeys,
    /// The same for as long as the caller has this key, however often the config is loaded.
    revocation: Revocation,
}

/// Everybody who may come in.
#[derive(Debug)]
pub struct Callers {
    known: Vec<Arc<ConfiguredCaller>>,
    /// Keys that were revoked since the start. On a listener that asks for no key they would otherwise be taken for a
    /// provider's credential, and be sent to one.
    revoked: Vec<Secret>,
    /// Paths that are open to every caller.
    paths: Arc<AllowedPaths>,
    /// The key for callers that have none of their own; none on a listener that only this machine reaches.
    shared_key: AccessControl,
    /// Who sees the figures of all callers. Its token is a key of ours too, which goes to no upstream.
    admin: Arc<AdminAccess>,
}

/// What somebody may see of the statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatsView {
    /// All of them.
    All,
    /// Those of the caller with this name.
    OneCaller(String),
}

/// Why the sender of a request is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifyError {
    /// A key is needed, and there is none or a wrong one.
    #[error("a key is needed: send it as `x-toolcrib-key`")]
    NoKey,
    /// A header that cannot be read.
    #[error(transparent)]
    InvalidHeader(#[from] InvalidHeader),
    /// A key of ours in a place where it would be forwarded.
    #[error(
        "a key of Toolcrib's is in {0}, and would be sent to the provider: send it as `x-toolcrib-key`, or alone in place of the provider's credential (`Authorization: Bearer KEY`, `x-api-key`, `x-goog-api-key`, `api-key` or `?key=`)"
    )]
    MisplacedKey(KeyLocation),
    /// Keys of two callers.
    #[error("the request has the keys of two callers: send one")]
    TwoCallers,
    /// Somebody who is neither a caller with a name nor the admin asks for statistics.
    #[error(
        "the statistics require a caller's key, or the admin token to see all callers: {ADMIN_HINT}"
    )]
    NotAdmin,
}

impl Callers {
    /// The callers of a config, and the key for all others. `before` are the callers in use so far.
    pub fn new(
        config: &Config,
        shared_key: impl Into<AccessControl>,
        admin: Arc<AdminAccess>,
        before: Option<&Self>,
    ) -> Result<Self, InvalidPathEntry> {
        let known = |caller: &config::CallerConfig| {
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
        let is_gone = |key: &&Secret| !config.callers.iter().any(|caller| caller.key == **key);
        let keys = before.into_iter().flat_map(|before| {
            before.revoked.iter().chain(before.known.iter().map(|known| &known.key))
        });
        Ok(Self {
            revoked: keys.filter(is_gone).cloned().collect(),
            known: config.callers.iter().map(known).collect::<Result<_, _>>()?,
            paths: Arc::new(AllowedPaths::new(&config.paths)?),
            shared_key: shared_key.into(),
            admin,
        })
    }

    /// The key for callers that have none of their own.
    pub(crate) fn shared_key(&self) -> AccessControl {
        self.shared_key.clone()
    }

    fn find(&self, name: &str, key: &Secret) -> Option<&Arc<ConfiguredCaller>> {
        self.known.iter().find(|known| known.name == name && known.key == *key)
    }

    /// Ends what is under way for callers that `now` does not have, or has with another key.
    pub(crate) fn revoke_missing(&self, now: &Self) {
        for known in self.known.iter().filter(|known| now.find(&known.name, &known.key).is_none()) {
            tracing::info!(caller = known.name, "the key of a caller is revoked");
            known.revocation.revoke();
        }
    }

    /// Whether this is a key or token that was revoked since the start.
    fn is_revoked(&self, given: &str) -> bool {
        self.revoked.iter().any(|key| key.matches(given))
            || self.shared_key.is_revoked_token(given)
            || self.admin.is_revoked_token(given)
    }

    /// Whether this is a caller's key, the listener's token or the admin token, current or revoked.
    fn is_key(&self, given: &str) -> bool {
        self.known.iter().any(|known| known.key.matches(given))
            || self.shared_key.key().is_some_and(|shared| shared.matches(given))
            || self.admin.matches(given)
            || self.is_revoked(given)
    }

    /// Whether a text contains one of these.
    fn is_key_in(&self, text: &str) -> bool {
        self.known.iter().map(|known| &known.key).chain(&self.revoked).any(|key| key.is_in(text))
            || self.shared_key.is_token_in(text)
            || self.admin.is_token_in(text)
    }

    /// What the sender of a request may see of the statistics.
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

    /// Who sent a request.
    pub(crate) fn identify(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        ours: &ToolcribHeaders<'_>,
    ) -> Result<Caller, IdentifyError> {
        let is_key = |given: &str| self.is_key(given);
        if let Some(place) =
            misplaced_keys::find_misplaced_key(uri, headers, is_key, |text| self.is_key_in(text))
        {
            return Err(IdentifyError::MisplacedKey(place));
        }
        let providers = credentials::provider_credentials(uri, headers)?;
        let known = |given: &str| self.known.iter().find(|caller| caller.key.matches(given));
        let own = ours.key.and_then(known);
        let mut stand_ins = providers.iter().filter_map(|given| known(given));
        let substitute_keys = stand_ins.next();
        let found = own.or(substitute_keys);
        let is_found =
            |other: &Arc<ConfiguredCaller>| found.is_some_and(|found| Arc::ptr_eq(found, other));
        if !substitute_keys.into_iter().chain(stand_ins).all(is_found) {
            return Err(IdentifyError::TwoCallers);
        }
        let (shared_key, credential) = self.shared_key.current();
        let is_admitted = match (ours.key, &shared_key) {
            // A wrong key is an error, not the absence of a key: its sender expects to be recognised. That applies
            // even if the request has the right key of a caller elsewhere.
            (Some(given), shared) => {
                own.is_some() || shared.as_ref().is_some_and(|shared| shared.matches(given))
            }
            (None, shared) => found.is_some() || shared.is_none(),
        };
        let is_ours = |given: &Cow<'_, str>| {
            shared_key.as_ref().is_some_and(|shared| shared.matches(given))
                || self.admin.matches(given)
        };
        let is_revoked = |given: &Cow<'_, str>| {
            // A secret that was revoked in one role may be valid in another by now.
            self.is_revoked(given) && known(given).is_none() && !is_ours(given)
        };
        if !is_admitted || providers.iter().any(is_revoked) {
            return Err(IdentifyError::NoKey);
        }
        let sends_ours = providers.iter().any(is_ours);
        let own_rule = found.map(|known| Arc::clone(&known.rule));
        Ok(Caller {
            id: match found {
                Some(known) => hash("caller", &known.name),
                None => hash("credential", &providers.join("\n")),
            },
            scope: CallerScope { all: own_rule.into_iter().chain(ours.tools.clone()).collect() },
            paths: Arc::clone(found.map_or(&self.paths, |known| &known.paths)),
            // A key of ours that was sent in place of a credential is none.
            substitute_keys: match found {
                Some(known) if substitute_keys.is_some() => Some(known.upstream_keys.clone()),
                _ if sends_ours => Some(ProviderKeys::default()),
                _ => None,
            },
            revocation: match found {
                Some(known) => known.revocation.clone(),
                None => Revocation::Listener(credential),
            },
            known: found.cloned(),
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
