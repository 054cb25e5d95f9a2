//! Who calls, and what they may see.
//!
//! A caller is known by a key of ours or, where none is asked for, by the provider's credential that it
//! sends. Both become a hash, and the hash is part of every key that state is kept under: what one
//! caller's conversation left behind cannot come up in another's.

use axum::http::{HeaderMap, Uri};
use toolcrib_core::policy::Glob;

use crate::Secret;
use crate::config::{self, Keys};

/// Where a key of ours is sent, if not in place of the provider's.
pub const KEY: &str = "x-toolcrib-key";
/// Tools that a request is narrowed to, as names or patterns; `-name` leaves one out.
pub const TOOLS: &str = "x-toolcrib-tools";

/// Somebody who calls.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What state is kept under.
    pub id: [u8; 32],
    /// Its name, where it has one.
    pub name: Option<String>,
    /// What it may see.
    pub scope: Scope,
    /// What is sent in place of its own key, where that stood in place of a credential.
    pub(crate) stands_in: Option<Keys>,
}

/// The tools a caller may know of.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Each must let a tool through: a header narrows what a key allows, and never widens it.
    all: Vec<Rule>,
}

#[derive(Debug, Clone, Default)]
struct Rule {
    only: Vec<Glob>,
    hidden: Vec<Glob>,
}

impl Caller {
    /// What records of a conversation are kept under. A record has definitions of the tools that were found, so
    /// one that was made in another scope must not come up in this one.
    pub(crate) fn records_id(&self) -> [u8; 32] {
        if !self.scope.is_narrow() {
            return self.id;
        }
        let rules = format!("{:?}", self.scope);
        *blake3::Hasher::new_derive_key("toolcrib proxy scope")
            .update(&self.id)
            .update(rules.as_bytes())
            .finalize()
            .as_bytes()
    }
}

impl Scope {
    /// Whether a tool of this name exists for the caller.
    pub fn sees(&self, name: &str) -> bool {
        self.sees_tool(&[name])
    }

    /// Whether a tool that goes by these names exists for the caller: one of them is allowed, and none is hidden.
    pub fn sees_tool(&self, names: &[&str]) -> bool {
        let matches =
            |globs: &[Glob]| globs.iter().any(|glob| names.iter().any(|name| glob.is(name)));
        self.all
            .iter()
            .all(|rule| (rule.only.is_empty() || matches(&rule.only)) && !matches(&rule.hidden))
    }

    /// Whether there is anything that it may not see.
    pub fn is_narrow(&self) -> bool {
        self.all.iter().any(|rule| !rule.only.is_empty() || !rule.hidden.is_empty())
    }
}

/// Everybody who may come in.
#[derive(Debug)]
pub struct Callers {
    known: Vec<(config::Caller, Rule)>,
    /// The key for callers that have none of their own; `None` on a listener that only this machine reaches.
    shared_key: Option<Secret>,
}

/// A key is needed, and there is none or a wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKey;

impl Callers {
    /// The callers of a config, and the key for all others.
    pub fn new(known: &[config::Caller], shared_key: Option<Secret>) -> Self {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect();
        let known = known.iter().map(|caller| {
            let rule = Rule { only: globs(&caller.tools), hidden: globs(&caller.hidden) };
            (caller.clone(), rule)
        });
        Self { known: known.collect(), shared_key }
    }

    /// Who sent a request.
    pub fn identify(&self, uri: &Uri, headers: &HeaderMap) -> Result<Caller, NoKey> {
        let own = headers.get(KEY).and_then(|value| value.to_str().ok());
        let providers = credentials(uri, headers);
        let known = |given: &str| self.known.iter().find(|(caller, _)| caller.key.matches(given));
        let stands_in = providers.iter().find_map(|given| known(given));
        let found = own.and_then(known).or(stands_in);
        let is_unnamed = match &self.shared_key {
            Some(shared) => own.is_some_and(|own| shared.matches(own)),
            // A wrong key is an error, not the absence of a key: its sender expects to be recognised.
            None => own.is_none(),
        };
        if found.is_none() && !is_unnamed {
            return Err(NoKey);
        }
        let shared_key = self.shared_key.as_ref();
        let sends_shared_key =
            providers.iter().any(|given| shared_key.is_some_and(|shared| shared.matches(given)));
        let header = headers.get(TOOLS).and_then(|value| value.to_str().ok()).map(rule);
        let scope =
            Scope { all: found.map(|(_, rule)| rule.clone()).into_iter().chain(header).collect() };
        Ok(Caller {
            id: match found {
                Some((caller, _)) => hash("caller", &caller.name),
                None => hash("credential", &providers.join("\n")),
            },
            name: found.map(|(caller, _)| caller.name.clone()),
            // A key of ours that stood in place of a credential is none.
            stands_in: match found {
                Some((caller, _)) if stands_in.is_some() => Some(caller.upstream_keys.clone()),
                _ if sends_shared_key => Some(Keys::default()),
                _ => None,
            },
            scope,
        })
    }
}

fn rule(text: &str) -> Rule {
    let mut rule = Rule::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.strip_prefix('-') {
            Some(hidden) => rule.hidden.push(Glob::new(hidden)),
            None => rule.only.push(Glob::new(part)),
        }
    }
    rule
}

/// The provider's credentials in a request, in every place that some provider's clients put one. Agents
/// send two now and then, and a key of ours may be either.
fn credentials<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Vec<&'a str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer =
        header("authorization").map(|value| value.split_once(' ').map_or(value, |(_, key)| key));
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let query = pairs.find_map(|pair| pair.strip_prefix("key="));
    let places = [header("x-api-key"), bearer, header("x-goog-api-key"), header("api-key"), query];
    places.into_iter().flatten().collect()
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
            upstream_keys: Keys { openai: Some(Secret::from("sk-real")), ..Keys::default() },
        };
        Callers::new(&[ci], shared_key.map(Secret::from))
    }

    fn who(callers: &Callers, pairs: &[(&'static str, &str)]) -> Result<Caller, NoKey> {
        callers.identify(&"/v1/messages".parse().unwrap(), &headers(pairs))
    }

    #[test]
    fn a_key_of_ours_narrows_and_a_header_narrows_further() {
        let callers = callers(None);
        let ci = who(&callers, &[("x-toolcrib-key", "tc-ci"), ("authorization", "Bearer sk-own")])
            .unwrap();
        assert_eq!((ci.name.as_deref(), &ci.stands_in), (Some("ci"), &None));
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
        assert!(!a.scope.is_narrow());
        assert_eq!(who(&callers, &[(KEY, "wrong")]).unwrap_err(), NoKey);
    }

    #[test]
    fn a_door_with_a_key_lets_nobody_in_without_one() {
        let callers = callers(Some("door"));
        assert_eq!(who(&callers, &[("authorization", "Bearer sk-a")]).unwrap_err(), NoKey);
        assert!(who(&callers, &[(KEY, "door"), ("authorization", "Bearer sk-a")]).is_ok());
        assert!(who(&callers, &[("authorization", "Bearer tc-ci")]).is_ok());
    }
}
