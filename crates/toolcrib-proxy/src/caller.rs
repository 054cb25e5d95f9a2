//! Who calls, and what they may do.
//!
//! A caller is known by a key of ours or, where none is asked for, by the provider's credential that it
//! sends. Both become a hash, and the hash is part of every key that state is kept under: what one
//! caller's conversation left behind cannot come up in another's.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri};
use toolcrib_server::access::AccessControl;
use toolcrib_server::admin::{Admin, HINT};

use crate::Secret;
use crate::config::{self, Config, Keys};
use crate::open_paths::{BadEntry, OpenPaths};
use crate::our_headers::{BadHeader, OurHeaders, single};
use crate::path::NormalPath;
use crate::query;
use crate::revocation::Revocation;
use crate::scope::{Rule, Scope};

/// The headers that some provider's clients put a credential into. Agents send two now and then, and a key of
/// ours may be either.
pub(crate) const CREDENTIALS: [&str; 4] =
    ["x-api-key", "authorization", "x-goog-api-key", "api-key"];

/// Somebody who calls.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What state is kept under.
    pub id: [u8; 32],
    /// What it may see.
    pub scope: Scope,
    /// The caller in the config, if it has a key of its own.
    known: Option<Arc<Known>>,
    /// Paths that are open to it although they are not to every caller.
    paths: Arc<OpenPaths>,
    /// What is sent in place of its own key, if that was sent in place of a credential.
    pub(crate) stands_in: Option<Keys>,
}

impl Caller {
    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.known.as_ref().map(|known| known.name.as_str())
    }

    /// What records of a conversation are kept under. A record has definitions of the tools that were found, so
    /// one that was made in another scope must not come up in this one.
    pub(crate) fn records_id(&self) -> [u8; 32] {
        if !self.scope.is_narrow() {
            return self.id;
        }
        let mut hasher = blake3::Hasher::new_derive_key("toolcrib proxy scope");
        hasher.update(&self.id);
        self.scope.hash_into(&mut hasher);
        *hasher.finalize().as_bytes()
    }

    /// When its key is revoked.
    pub(crate) fn revocation(&self) -> Revocation {
        self.known.as_ref().map(|known| known.revocation.clone()).unwrap_or_default()
    }

    /// Whether only listed endpoints are open to it: it has a key, with which comes somebody else's credential, or
    /// a scope, which holds only in bodies that are read.
    pub(crate) fn is_limited(&self) -> bool {
        self.known.is_some() || self.scope.is_narrow()
    }

    /// Whether the config opens the provider's stored conversations to it.
    pub(crate) fn may_create_conversations(&self) -> bool {
        let path = NormalPath::read(b"/v1/conversations");
        path.is_ok_and(|path| self.may_use(&Method::POST, &path))
    }

    /// Whether the config opens this path to it.
    pub(crate) fn may_use(&self, method: &Method, path: &NormalPath) -> bool {
        self.paths.allow(method, path)
    }
}

/// A caller in the config.
#[derive(Debug)]
struct Known {
    name: String,
    key: Secret,
    rule: Rule,
    /// Its own, and those of all callers.
    paths: Arc<OpenPaths>,
    upstream_keys: Keys,
    /// The same for as long as the caller has this key, however often the config is loaded.
    revocation: Revocation,
}

/// Everybody who may come in.
#[derive(Debug)]
pub struct Callers {
    known: Vec<Arc<Known>>,
    /// Keys that were revoked since the start. On a listener that asks for no key they would otherwise be taken for a
    /// provider's credential, and be sent to one.
    revoked: Vec<Secret>,
    /// Paths that are open to every caller.
    paths: Arc<OpenPaths>,
    /// The key for callers that have none of their own; none on a listener that only this machine reaches.
    shared_key: AccessControl,
    /// Who sees the figures of all callers. Its token is a key of ours too, which goes to no upstream.
    admin: Arc<Admin>,
}

/// What somebody may see of the statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// All of them.
    All,
    /// Those of the caller with this name.
    Own(String),
}

/// Why the sender of a request is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unidentified {
    /// A key is needed, and there is none or a wrong one.
    #[error("a key is needed: send it as `x-toolcrib-key`")]
    NoKey,
    /// A header that cannot be read.
    #[error(transparent)]
    Header(#[from] BadHeader),
    /// Keys of two callers.
    #[error("the request has the keys of two callers: send one")]
    TwoCallers,
    /// Somebody who is neither a caller with a name nor the admin asks for statistics.
    #[error("the statistics require a caller's key, or the admin token to see all callers: {HINT}")]
    NotAdmin,
}

impl Callers {
    /// The callers of a config, and the key for all others. `before` are the callers in use so far.
    pub fn new(
        config: &Config,
        shared_key: impl Into<AccessControl>,
        admin: Arc<Admin>,
        before: Option<&Self>,
    ) -> Result<Self, BadEntry> {
        let known = |caller: &config::Caller| {
            let same = before.and_then(|before| before.find(&caller.name, &caller.key));
            Ok(Arc::new(Known {
                revocation: same.map_or_else(Revocation::possible, |same| same.revocation.clone()),
                name: caller.name.clone(),
                key: caller.key.clone(),
                rule: Rule::new(&caller.tools, &caller.hidden),
                paths: Arc::new(OpenPaths::new(config.paths.iter().chain(&caller.paths))?),
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
            paths: Arc::new(OpenPaths::new(&config.paths)?),
            shared_key: shared_key.into(),
            admin,
        })
    }

    /// The key for callers that have none of their own.
    pub(crate) fn shared_key(&self) -> AccessControl {
        self.shared_key.clone()
    }

    fn find(&self, name: &str, key: &Secret) -> Option<&Arc<Known>> {
        self.known.iter().find(|known| known.name == name && known.key == *key)
    }

    /// Ends what is under way for callers that `now` does not have, or has with another key.
    pub(crate) fn revoke_missing(&self, now: &Self) {
        for known in self.known.iter().filter(|known| now.find(&known.name, &known.key).is_none()) {
            tracing::info!(caller = known.name, "the key of a caller is revoked");
            known.revocation.revoke();
        }
    }

    /// What the sender of a request may see of the statistics.
    pub(crate) fn view(&self, uri: &Uri, headers: &HeaderMap) -> Result<View, Unidentified> {
        if self.admin.is_admin(headers) {
            return Ok(View::All);
        }
        let caller = self.identify(uri, headers, &OurHeaders::read(headers)?)?;
        match caller.name() {
            _ if !self.admin.is_required() => Ok(View::All),
            Some(name) => Ok(View::Own(name.to_owned())),
            None => Err(Unidentified::NotAdmin),
        }
    }

    /// Who sent a request.
    pub(crate) fn identify(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        ours: &OurHeaders<'_>,
    ) -> Result<Caller, Unidentified> {
        let providers = credentials(uri, headers)?;
        let known = |given: &str| self.known.iter().find(|caller| caller.key.matches(given));
        let own = ours.key.and_then(known);
        let mut stand_ins = providers.iter().filter_map(|given| known(given));
        let stands_in = stand_ins.next();
        let found = own.or(stands_in);
        let is_found = |other: &Arc<Known>| found.is_some_and(|found| Arc::ptr_eq(found, other));
        if !stands_in.into_iter().chain(stand_ins).all(is_found) {
            return Err(Unidentified::TwoCallers);
        }
        let shared_key = self.shared_key.key();
        let is_unnamed = match &shared_key {
            Some(shared) => ours.key.is_some_and(|own| shared.matches(own)),
            // A wrong key is an error, not the absence of a key: its sender expects to be recognised.
            None => ours.key.is_none(),
        };
        let is_revoked = |given: &str| self.revoked.iter().any(|key| key.matches(given));
        if (found.is_none() && !is_unnamed) || providers.iter().any(|given| is_revoked(given)) {
            return Err(Unidentified::NoKey);
        }
        let shared_key = shared_key.as_ref();
        let is_ours = |given: &Cow<'_, str>| {
            shared_key.is_some_and(|shared| shared.matches(given)) || self.admin.matches(given)
        };
        let sends_ours = providers.iter().any(is_ours);
        let own_rule = found.map(|known| known.rule.clone());
        Ok(Caller {
            id: match found {
                Some(known) => hash("caller", &known.name),
                None => hash("credential", &providers.join("\n")),
            },
            scope: Scope { all: own_rule.into_iter().chain(ours.tools.clone()).collect() },
            paths: Arc::clone(found.map_or(&self.paths, |known| &known.paths)),
            // A key of ours that was sent in place of a credential is none.
            stands_in: match found {
                Some(known) if stands_in.is_some() => Some(known.upstream_keys.clone()),
                _ if sends_ours => Some(Keys::default()),
                _ => None,
            },
            known: found.cloned(),
        })
    }
}

/// The provider's credentials in a request, in every place that some provider's clients put one.
fn credentials<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Vec<Cow<'a, str>>, BadHeader> {
    let mut all = Vec::new();
    for name in CREDENTIALS {
        let Some(value) = single(headers, name)? else { continue };
        let key = match value.split_once(|c: char| c.is_ascii_whitespace()) {
            Some((_, key)) if name == "authorization" => key,
            _ => value,
        };
        all.push(Cow::Borrowed(key.trim()));
    }
    all.extend(query::credentials(uri.query().unwrap_or_default()));
    Ok(all)
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
mod tests {
    use super::*;
    use crate::our_headers::{KEY, TOOLS};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn callers(shared_key: Option<&str>) -> Callers {
        let ci = config::Caller {
            name: "ci".into(),
            key: Secret::from("tc-ci"),
            tools: vec!["github__*".into()],
            hidden: vec!["*delete*".into()],
            paths: Vec::new(),
            upstream_keys: Keys { openai: Some(Secret::from("sk-real")), ..Keys::default() },
        };
        let other =
            config::Caller { name: "other".into(), key: Secret::from("tc-other"), ..ci.clone() };
        let config = Config { callers: vec![ci, other], ..Config::default() };
        Callers::new(&config, shared_key.map(Secret::from), Arc::default(), None).unwrap()
    }

    fn who(callers: &Callers, pairs: &[(&'static str, &str)]) -> Result<Caller, Unidentified> {
        let headers = headers(pairs);
        let ours = OurHeaders::read(&headers)?;
        callers.identify(&"/v1/messages".parse().unwrap(), &headers, &ours)
    }

    #[test]
    fn a_key_of_ours_narrows_and_a_header_narrows_further() {
        let callers = callers(None);
        let ci = who(&callers, &[("x-toolcrib-key", "tc-ci"), ("authorization", "Bearer sk-own")])
            .unwrap();
        assert_eq!((ci.name(), &ci.stands_in), (Some("ci"), &None));
        assert!(ci.scope.sees("github__create_issue"));
        assert!(!ci.scope.sees("github__delete_repo") && !ci.scope.sees("slack__post"));
        let narrowed =
            who(&callers, &[("x-api-key", "tc-ci"), (TOOLS, "*issue*, slack__*, -*close*")])
                .unwrap();
        assert!(narrowed.scope.sees("github__create_issue"));
        assert!(!narrowed.scope.sees("slack__post") && !narrowed.scope.sees("github__close_issue"));
        assert_eq!(narrowed.stands_in.clone().unwrap().openai, Some(Secret::from("sk-real")));
        assert_eq!(narrowed.id, ci.id);
        assert_ne!(narrowed.records_id(), ci.records_id());
        // One allowed name is enough, and so is one hidden name.
        assert!(ci.scope.sees_tool(&["create_issue", "github__create_issue"]));
        assert!(!ci.scope.sees_tool(&["github__create_issue", "delete_issue"]));
    }

    #[test]
    fn callers_without_a_key_are_told_apart_by_their_credentials() {
        let callers = callers(None);
        let a = who(&callers, &[("authorization", "Bearer sk-a")]).unwrap();
        let b = who(&callers, &[("authorization", "Bearer sk-b")]).unwrap();
        assert_ne!(a.id, b.id);
        assert_eq!(a.id, who(&callers, &[("x-api-key", "sk-a")]).unwrap().id);
        assert!(!a.is_limited());
        assert_eq!(who(&callers, &[(KEY, "wrong")]).unwrap_err(), Unidentified::NoKey);
    }

    #[test]
    fn a_door_with_a_key_lets_nobody_in_without_one() {
        let callers = callers(Some("door"));
        let refused = who(&callers, &[("authorization", "Bearer sk-a")]).unwrap_err();
        assert_eq!(refused, Unidentified::NoKey);
        assert!(who(&callers, &[(KEY, "door"), ("authorization", "Bearer sk-a")]).is_ok());
        assert!(who(&callers, &[("authorization", "Bearer tc-ci")]).is_ok());
    }

    #[test]
    fn two_callers_are_not_one() {
        let callers = callers(Some("door"));
        for pairs in [
            [("x-api-key", "tc-ci"), ("authorization", "Bearer tc-other")],
            [(KEY, "tc-other"), ("authorization", "Bearer tc-ci")],
        ] {
            assert_eq!(who(&callers, &pairs).unwrap_err(), Unidentified::TwoCallers, "{pairs:?}");
        }
        for pairs in [
            [("x-api-key", "tc-ci"), ("authorization", "Bearer  tc-ci")],
            [(KEY, "door"), ("authorization", "Bearer tc-ci")],
        ] {
            assert_eq!(who(&callers, &pairs).unwrap().name(), Some("ci"), "{pairs:?}");
        }
        let twice = [("authorization", "Bearer a"), ("authorization", "Bearer tc-ci")];
        let repeated = BadHeader::Repeated("authorization".into());
        assert_eq!(who(&callers, &twice).unwrap_err(), Unidentified::Header(repeated));
    }
}
