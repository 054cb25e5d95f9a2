//! Tests of which requests the guard accepts, and why it denies the others.

use std::net::IpAddr;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::routing::get;
use proptest::prelude::*;
use toolcrib_server::Secret;
use toolcrib_server::access::{self, Access, AccessControl, TokenError};
use toolcrib_server::guard::{AccessDenied, Guard, InvalidAllowEntry};
use toolcrib_server::private_file::PrivateFolder;
use tower::ServiceExt as _;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn guard(access: Access) -> Guard {
    let hosts =
        ["gw.example.com".to_owned(), "Port.Example.com:8443".to_owned(), "10.0.0.7".to_owned()];
    let origins = ["https://app.example.com".to_owned(), "http://10.0.0.7:3000".to_owned()];
    Guard::new(&hosts, &origins, access).unwrap()
}

fn check(guard: &Guard, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessDenied> {
    guard.check(&Method::POST, uri, headers).map(drop)
}

fn headers(rows: &[(header::HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn host(text: &str) -> Result<(), AccessDenied> {
    check(&guard(Access::Open), &Uri::from_static("/mcp"), &headers(&[(header::HOST, text)]))
}

fn origin(text: &str) -> Result<(), AccessDenied> {
    let headers = headers(&[(header::HOST, "localhost"), (header::ORIGIN, text)]);
    check(&guard(Access::Open), &Uri::from_static("/mcp"), &headers)
}

#[test]
fn every_host_is_accepted_or_denied_with_its_reason() {
    use AccessDenied::{ForeignHost, MalformedHost};
    let table: &[(&str, Result<(), AccessDenied>)] = &[
        ("localhost", Ok(())),
        ("localhost:1", Ok(())),
        ("localhost:65535", Ok(())),
        ("127.0.0.1", Ok(())),
        ("127.0.0.1:8080", Ok(())),
        ("127.255.255.254:8080", Ok(())),
        ("[::1]", Ok(())),
        ("[::1]:8080", Ok(())),
        ("gw.example.com", Ok(())),
        ("gw.example.com:8080", Ok(())),
        ("port.example.com:8443", Ok(())),
        ("10.0.0.7:80", Ok(())),
        ("evil.com", Err(ForeignHost)),
        ("localhost.evil.com", Err(ForeignHost)),
        ("127.0.0.1.evil.com", Err(ForeignHost)),
        ("127-0-0-1.evil.com", Err(ForeignHost)),
        ("evil-localhost", Err(ForeignHost)),
        ("xlocalhost", Err(ForeignHost)),
        ("a.localhost", Err(ForeignHost)),
        ("gw.example.com.evil.com", Err(ForeignHost)),
        ("evil.gw.example.com", Err(ForeignHost)),
        ("port.example.com", Err(ForeignHost)),
        ("port.example.com:8444", Err(ForeignHost)),
        ("128.0.0.1", Err(ForeignHost)),
        ("0.0.0.0", Err(ForeignHost)),
        ("0.0.0.0:8080", Err(ForeignHost)),
        ("10.0.0.8", Err(ForeignHost)),
        ("169.254.169.254", Err(ForeignHost)),
        ("[::]", Err(ForeignHost)),
        ("[::2]:80", Err(ForeignHost)),
        ("[::ffff:127.0.0.1]", Err(ForeignHost)),
        ("[fe80::1]", Err(ForeignHost)),
        ("LOCALHOST", Err(MalformedHost)),
        ("LocalHost:80", Err(MalformedHost)),
        ("localhost.", Err(MalformedHost)),
        ("localhost.:80", Err(MalformedHost)),
        ("127.0.0.1.", Err(MalformedHost)),
        ("localhost@evil.com", Err(MalformedHost)),
        ("evil.com@localhost", Err(MalformedHost)),
        ("user:pass@localhost", Err(MalformedHost)),
        ("localhost:80@evil.com", Err(MalformedHost)),
        ("2130706433", Err(MalformedHost)),
        ("0x7f000001", Err(MalformedHost)),
        ("127.1", Err(MalformedHost)),
        ("0177.0.0.1", Err(MalformedHost)),
        ("127.0.0.01", Err(MalformedHost)),
        ("127.0.0.1.1", Err(MalformedHost)),
        ("[0:0:0:0:0:0:0:1]", Err(MalformedHost)),
        ("[::0001]", Err(MalformedHost)),
        ("[::1%25lo]", Err(MalformedHost)),
        ("[::1]evil.com", Err(MalformedHost)),
        ("[::1", Err(MalformedHost)),
        ("::1", Err(MalformedHost)),
        ("[127.0.0.1]", Err(MalformedHost)),
        ("[localhost]", Err(MalformedHost)),
        ("", Err(MalformedHost)),
        (" localhost", Err(MalformedHost)),
        ("localhost ", Err(MalformedHost)),
        ("localhost:", Err(MalformedHost)),
        ("localhost:0", Err(MalformedHost)),
        ("localhost:+80", Err(MalformedHost)),
        ("localhost:080", Err(MalformedHost)),
        ("localhost:65536", Err(MalformedHost)),
        ("localhost:80:80", Err(MalformedHost)),
        ("localhost:http", Err(MalformedHost)),
        ("localhost/evil.com", Err(MalformedHost)),
        ("localhost#.evil.com", Err(MalformedHost)),
        ("localhost,evil.com", Err(MalformedHost)),
        ("localhost\\evil.com", Err(MalformedHost)),
        ("http://localhost", Err(MalformedHost)),
        ("localhost\u{e9}", Err(MalformedHost)),
    ];
    for (text, expected) in table {
        assert_eq!(host(text), *expected, "Host: {text:?}");
    }
}

#[test]
fn every_origin_is_accepted_or_denied_with_its_reason() {
    use AccessDenied::{ForeignOrigin, MalformedOrigin, NullOrigin};
    let table: &[(&str, Result<(), AccessDenied>)] = &[
        ("http://localhost", Ok(())),
        ("https://localhost:5173", Ok(())),
        ("http://127.0.0.1:6274", Ok(())),
        ("http://[::1]:80", Ok(())),
        ("https://app.example.com", Ok(())),
        ("https://app.example.com:443", Ok(())),
        ("http://10.0.0.7:3000", Ok(())),
        ("null", Err(NullOrigin)),
        ("http://app.example.com", Err(ForeignOrigin)),
        ("https://app.example.com:444", Err(ForeignOrigin)),
        ("https://app.example.com.evil.com", Err(ForeignOrigin)),
        ("http://evil.com", Err(ForeignOrigin)),
        ("http://localhost.evil.com", Err(ForeignOrigin)),
        ("http://127.0.0.1.evil.com", Err(ForeignOrigin)),
        ("http://gw.example.com", Err(ForeignOrigin)),
        ("http://10.0.0.7", Err(ForeignOrigin)),
        ("http://[::ffff:127.0.0.1]", Err(ForeignOrigin)),
        ("", Err(MalformedOrigin)),
        ("NULL", Err(MalformedOrigin)),
        ("localhost", Err(MalformedOrigin)),
        ("//localhost", Err(MalformedOrigin)),
        ("http://", Err(MalformedOrigin)),
        ("http://localhost/", Err(MalformedOrigin)),
        ("http://localhost/path", Err(MalformedOrigin)),
        ("http://user@localhost", Err(MalformedOrigin)),
        ("http://localhost@evil.com", Err(MalformedOrigin)),
        ("http://localhost.", Err(MalformedOrigin)),
        ("HTTP://localhost", Err(MalformedOrigin)),
        ("file://localhost", Err(MalformedOrigin)),
        ("chrome-extension://localhost", Err(MalformedOrigin)),
        ("http://localhost http://evil.com", Err(MalformedOrigin)),
        ("http://2130706433", Err(MalformedOrigin)),
    ];
    for (text, expected) in table {
        assert_eq!(origin(text), *expected, "Origin: {text:?}");
    }
}

#[test]
fn missing_and_repeated_headers_are_denied_and_the_authority_counts() {
    let check = |uri: &'static str, rows: &[(header::HeaderName, &str)]| {
        check(&guard(Access::Open), &Uri::from_static(uri), &headers(rows))
    };
    let (host, origin) = (header::HOST, header::ORIGIN);
    assert_eq!(check("/mcp", &[]), Err(AccessDenied::NoHost));
    assert_eq!(
        check("/mcp", &[(host.clone(), "localhost"), (host.clone(), "evil.com")]),
        Err(AccessDenied::ManyHosts)
    );
    assert_eq!(
        check("/mcp", &[(host.clone(), "localhost"), (host.clone(), "localhost")]),
        Err(AccessDenied::ManyHosts)
    );
    // HTTP/2 requests have an authority instead of `Host`. A request with an absolute URI in its request line may have
    // both.
    assert_eq!(check("http://localhost:1/mcp", &[]), Ok(()));
    assert_eq!(check("http://evil.com/mcp", &[]), Err(AccessDenied::ForeignHost));
    assert_eq!(
        check("http://evil.com/mcp", &[(host.clone(), "localhost")]),
        Err(AccessDenied::ForeignHost)
    );
    assert_eq!(
        check("http://localhost/mcp", &[(host.clone(), "evil.com")]),
        Err(AccessDenied::ForeignHost)
    );
    assert_eq!(
        check("http://u@localhost/mcp", &[(host.clone(), "localhost")]),
        Err(AccessDenied::MalformedHost)
    );
    let two =
        [(host, "localhost"), (origin.clone(), "http://localhost"), (origin, "http://evil.com")];
    assert_eq!(check("/mcp", &two), Err(AccessDenied::ManyOrigins));
}

#[test]
fn entries_that_no_request_can_match_are_errors() {
    let hosts = |text: &str| Guard::new(&[text.to_owned()], &[], Access::Open).map(drop);
    let origins = |text: &str| Guard::new(&[], &[text.to_owned()], Access::Open).map(drop);
    for text in ["", "*", "https://gw.example.com", "gw.example.com/", "gw.example.com:"] {
        assert_eq!(hosts(text), Err(InvalidAllowEntry::Host(text.to_owned())));
    }
    for text in ["", "*", "null", "app.example.com", "https://app.example.com/"] {
        assert_eq!(origins(text), Err(InvalidAllowEntry::Origin(text.to_owned())));
    }
}

#[test]
fn every_token_is_accepted_or_denied_with_its_reason() {
    use AccessDenied::{NoToken, WrongToken};
    let long = format!("Bearer {TOKEN}x");
    let table: &[(&[&str], Result<(), AccessDenied>)] = &[
        (&[], Err(NoToken)),
        (&["Bearer 0123456789abcdef0123456789abcdef"], Ok(())),
        (&["bearer 0123456789abcdef0123456789abcdef"], Ok(())),
        (&["Bearer"], Err(NoToken)),
        (&[TOKEN], Err(NoToken)),
        (&["Basic 0123456789abcdef0123456789abcdef"], Err(NoToken)),
        (&["Bearer "], Err(WrongToken)),
        (&["Bearer  0123456789abcdef0123456789abcdef"], Err(WrongToken)),
        (&["Bearer 0123456789abcdef0123456789abcdeF"], Err(WrongToken)),
        (&["Bearer 0123456789abcdef0123456789abcde"], Err(WrongToken)),
        (&[&long], Err(WrongToken)),
        (&["Bearer 0123456789abcdef0123456789abcdef", "Bearer x"], Err(WrongToken)),
    ];
    let guard = guard(Access::Bearer(TOKEN.into()));
    for (values, expected) in table {
        let mut rows = vec![(header::HOST, "localhost")];
        rows.extend(values.iter().map(|value| (header::AUTHORIZATION, *value)));
        let headers = headers(&rows);
        for path in
            ["/mcp", "/metrics", "/", "/healthz/", "//healthz", "/healthz/../mcp", "/HEALTHZ"]
        {
            assert_eq!(
                check(&guard, &path.parse().unwrap(), &headers),
                *expected,
                "{values:?} {path}"
            );
        }
        assert_eq!(check(&guard, &Uri::from_static("/healthz"), &headers), Ok(()));
    }
    let foreign = headers(&[(header::HOST, "evil.com")]);
    assert_eq!(
        check(&guard, &Uri::from_static("/healthz"), &foreign),
        Err(AccessDenied::ForeignHost)
    );
}

#[tokio::test]
async fn denied_requests_get_the_same_response_on_every_route() {
    let routes = Router::new().route("/mcp", get(|| async { "inside" }));
    let routes = guard(Access::Bearer(TOKEN.into())).protect(routes);
    let send = async |path: &str, host: &str, token: Option<&str>| {
        let mut request = Request::get(path).header(header::HOST, host);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let answer = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let challenge = answer.headers().get(header::WWW_AUTHENTICATE).cloned();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 16).await.unwrap();
        (status, challenge, String::from_utf8(body.to_vec()).unwrap())
    };
    for path in ["/mcp", "/unknown", "/healthz"] {
        let (status, challenge, body) = send(path, "evil.com", Some(TOKEN)).await;
        assert_eq!((status, challenge), (StatusCode::FORBIDDEN, None), "{path}");
        assert_eq!(
            body,
            r#"{"error":"the request's host is not served here","hint":"use `localhost`, or add the name to `allowed_hosts`"}"#
        );
    }
    for path in ["/mcp", "/unknown"] {
        let (status, challenge, body) = send(path, "localhost", None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(challenge.unwrap(), "Bearer");
        assert_eq!(
            body,
            r#"{"error":"a bearer token is required","hint":"send `Authorization: Bearer TOKEN`"}"#
        );
    }
    let (status, _, body) = send("/mcp", "localhost", Some(TOKEN)).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "inside"));
}

#[tokio::test]
async fn trace_and_connect_are_denied_on_every_route() {
    let routes = Router::new().fallback(|| async { "inside" });
    let routes = guard(Access::Open).protect(routes);
    for (method, status) in [("TRACE", 405), ("CONNECT", 405), ("GET", 200), ("PROPFIND", 200)] {
        let request = Request::builder().method(method).uri("http://localhost/healthz");
        let request = request.body(Body::empty()).unwrap();
        let answer = routes.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{method}");
        assert_eq!(answer.headers().contains_key(header::ALLOW), status == 405, "{method}");
    }
}

#[test]
fn replacing_a_token_revokes_its_credential() {
    let control = AccessControl::from(Access::Bearer(TOKEN.into()));
    let guard = Guard::new(&[], &[], control.clone()).unwrap();
    let check = |token: &str| {
        let bearer = format!("Bearer {token}");
        let rows = [(header::HOST, "localhost"), (header::AUTHORIZATION, &*bearer)];
        guard.check(&Method::POST, &Uri::from_static("/mcp"), &headers(&rows))
    };
    let credential = check(TOKEN).unwrap().unwrap();
    assert!(
        !control.replace(Access::Bearer(TOKEN.into())),
        "replacing a token with the same token changes nothing"
    );
    assert!(!credential.is_revoked());
    let other = TOKEN.replace('0', "f");
    assert!(control.replace(Access::Bearer(other.as_str().into())));
    assert!(credential.is_revoked());
    assert_eq!(check(TOKEN).unwrap_err(), AccessDenied::WrongToken);
    assert!(!check(&other).unwrap().unwrap().is_revoked());
    assert!(control.key().unwrap().matches(&other));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// A guard without allowed hosts accepts only loopback names. A simpler parser in this test decides which names
    /// those are.
    #[test]
    fn no_foreign_host_is_accepted(text in prop_oneof![
        "[ -~]{0,24}",
        "(localhost|127\\.0\\.0\\.1|\\[::1\\])[ -~]{0,12}",
        "[ -~]{0,12}(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9+ ]{0,6})?",
        "(localhost|127\\.0\\.0\\.1)[a-z0-9.-]{1,8}(:[0-9]{1,5})?",
        "[a-z0-9.-]{1,8}(localhost|127\\.0\\.0\\.1)(:[0-9]{1,5})?",
        "[0-9.x]{1,16}",
        "\\[[0-9a-f:.%]{0,20}\\](:[0-9]{1,5})?",
    ]) {
        let open = Guard::new(&[], &[], Access::Open).unwrap();
        let host = check(&open, &Uri::from_static("/"), &headers(&[(header::HOST, &text)]));
        let rows = [(header::HOST, "localhost"), (header::ORIGIN, &*format!("https://{text}"))];
        let origin = check(&open, &Uri::from_static("/"), &headers(&rows));
        prop_assert_eq!(host.is_ok(), origin.is_ok(), "Host and Origin are parsed in the same way");
        if host.is_ok() {
            let name = text.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix(':').unwrap_or(&text);
            let loopback = name == "localhost" || name == "[::1]"
                || name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
            prop_assert!(loopback, "{:?} was accepted", text);
        }
    }
}

/// Creates a state folder. Dropping the `TempDir` removes it.
fn state() -> (tempfile::TempDir, PrivateFolder) {
    let folder = tempfile::tempdir().unwrap();
    let state = PrivateFolder::new(folder.path(), Some(folder.path().to_owned()));
    (folder, state)
}

#[test]
fn a_token_is_required_off_loopback_or_if_configured() {
    let (_folder, state) = state();
    let decide = |address: &str, configured: Option<&str>| {
        let address = address.parse::<IpAddr>().unwrap();
        Access::decide(address, configured.map(Secret::from), Some(&state))
    };
    for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert!(matches!(decide(address, None), Ok(Access::Open)), "{address}");
        assert!(matches!(decide(address, Some(TOKEN)), Ok(Access::Bearer(_))), "{address}");
    }
    assert!(
        !state.path().join(access::TOKEN_FILE).exists(),
        "no token is generated if none is required"
    );
    for address in ["0.0.0.0", "::", "192.168.1.2", "::ffff:10.0.0.1"] {
        let Ok(Access::Bearer(token)) = decide(address, None) else {
            panic!("{address} requires no token");
        };
        assert!(token.matches(access::load_or_create(&state).unwrap().expose()));
    }
    for weak in ["", "secret-api-key", "0123456789 abcdef0123"] {
        let error = decide("0.0.0.0", Some(weak)).unwrap_err();
        assert!(matches!(error, TokenError::Weak { path: None }));
    }
    let error = Access::decide([0, 0, 0, 0].into(), None, None).unwrap_err();
    assert!(matches!(error, TokenError::NoState) && error.hint().contains("HOME"), "{error}");
}

#[test]
fn a_token_is_generated_once_and_differs_between_folders() {
    let ((_first, one), (_second, two)) = (state(), state());
    let token = access::load_or_create(&one).unwrap();
    assert_eq!(token.expose().len(), 64);
    assert!(token.matches(access::load_or_create(&one).unwrap().expose()));
    assert!(!token.matches(access::load_or_create(&two).unwrap().expose()));
    assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 1);

    let (_racing, state) = state();
    let folder = state.subfolder("new");
    let tokens: Vec<String> = std::thread::scope(|scope| {
        let start = || access::load_or_create(&folder).unwrap().expose().to_owned();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tokens.iter().all(|token| *token == tokens[0]), "all processes use the same token");
}

#[cfg(unix)]
#[test]
fn the_token_file_is_private_and_one_that_others_can_read_is_rejected() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, state) = state();
    let token = access::load_or_create(&state).unwrap();
    let path = state.path().join(access::TOKEN_FILE);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for mode in [0o640, 0o604, 0o644, 0o620] {
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = access::load_or_create(&state).unwrap_err();
        assert!(matches!(error, TokenError::ReadableByOthers { mode: found, .. } if found == mode));
        assert!(error.hint().starts_with("delete `"), "{}", error.hint());
        assert!(!format!("{error} {error:?}").contains(token.expose()));
    }
    set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, "short").unwrap();
    let error = access::load_or_create(&state).unwrap_err();
    assert!(matches!(error, TokenError::Weak { path: Some(_) }));
}
