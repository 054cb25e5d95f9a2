//! Tests of how a request's keys identify its caller.

use super::*;
use crate::toolcrib_headers::{KEY, TOOLS};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
}

fn callers(shared_key: Option<&str>) -> Callers {
    let ci = config::CallerConfig {
        name: "ci".into(),
        key: Secret::from("tc-ci"),
        tools: vec!["github__*".into()],
        hidden: vec!["*delete*".into()],
        paths: Vec::new(),
        upstream_keys: ProviderKeys {
            openai: Some(Secret::from("sk-real")),
            ..ProviderKeys::default()
        },
    };
    let other =
        config::CallerConfig { name: "other".into(), key: Secret::from("tc-other"), ..ci.clone() };
    let config = ProxyConfig { callers: vec![ci, other], ..ProxyConfig::default() };
    Callers::new(&config, shared_key.map(Secret::from), Arc::default(), None).unwrap()
}

fn identify(callers: &Callers, pairs: &[(&'static str, &str)]) -> Result<Caller, IdentifyError> {
    let headers = headers(pairs);
    let own_headers = ToolcribHeaders::read(&headers)?;
    callers.identify(&"/v1/messages".parse().unwrap(), &headers, &own_headers)
}

#[test]
fn a_key_limits_the_scope_and_a_header_limits_it_further() {
    let callers = callers(None);
    let ci = identify(&callers, &[("x-toolcrib-key", "tc-ci"), ("authorization", "Bearer sk-own")])
        .unwrap();
    assert_eq!((ci.name(), &ci.substitute_keys), (Some("ci"), &None));
    assert!(ci.scope.sees("github__create_issue"));
    assert!(!ci.scope.sees("github__delete_repo") && !ci.scope.sees("slack__post"));
    let narrowed =
        identify(&callers, &[("x-api-key", "tc-ci"), (TOOLS, "*issue*, slack__*, -*close*")])
            .unwrap();
    assert!(narrowed.scope.sees("github__create_issue"));
    assert!(!narrowed.scope.sees("slack__post") && !narrowed.scope.sees("github__close_issue"));
    assert_eq!(narrowed.substitute_keys.clone().unwrap().openai, Some(Secret::from("sk-real")));
    assert_eq!(narrowed.id, ci.id);
    assert_ne!(narrowed.record_owner_id(), ci.record_owner_id());
    // A tool with several names is visible if one of them is allowed and none is hidden.
    assert!(ci.scope.sees_tool(&["create_issue", "github__create_issue"]));
    assert!(!ci.scope.sees_tool(&["github__create_issue", "delete_issue"]));
}

#[test]
fn callers_without_a_key_are_distinguished_by_their_credentials() {
    let callers = callers(None);
    let a = identify(&callers, &[("authorization", "Bearer sk-a")]).unwrap();
    let b = identify(&callers, &[("authorization", "Bearer sk-b")]).unwrap();
    assert_ne!(a.id, b.id);
    assert_eq!(a.id, identify(&callers, &[("x-api-key", "sk-a")]).unwrap().id);
    assert!(!a.is_limited());
    for pairs in [&[(KEY, "wrong")][..], &[(KEY, "wrong"), ("authorization", "Bearer tc-ci")]] {
        assert_eq!(identify(&callers, pairs).unwrap_err(), IdentifyError::NoKey, "{pairs:?}");
    }
}

#[test]
fn a_listener_with_a_key_rejects_clients_without_one() {
    let callers = callers(Some("door"));
    let error = identify(&callers, &[("authorization", "Bearer sk-a")]).unwrap_err();
    assert_eq!(error, IdentifyError::NoKey);
    assert!(identify(&callers, &[(KEY, "door"), ("authorization", "Bearer sk-a")]).is_ok());
    assert!(identify(&callers, &[("authorization", "Bearer tc-ci")]).is_ok());
}

#[test]
fn two_callers_are_not_one() {
    let callers = callers(Some("door"));
    for pairs in [
        [("x-api-key", "tc-ci"), ("authorization", "Bearer tc-other")],
        [(KEY, "tc-other"), ("authorization", "Bearer tc-ci")],
    ] {
        assert_eq!(identify(&callers, &pairs).unwrap_err(), IdentifyError::TwoCallers, "{pairs:?}");
    }
    for pairs in [
        [("x-api-key", "tc-ci"), ("authorization", "Bearer  tc-ci")],
        [(KEY, "door"), ("authorization", "Bearer tc-ci")],
    ] {
        assert_eq!(identify(&callers, &pairs).unwrap().name(), Some("ci"), "{pairs:?}");
    }
    let twice = [("authorization", "Bearer a"), ("authorization", "Bearer tc-ci")];
    let repeated = InvalidHeader::Repeated("authorization".into());
    assert_eq!(identify(&callers, &twice).unwrap_err(), IdentifyError::InvalidHeader(repeated));
}
