//! Signing in to an upstream, using it, and everything that may go wrong in between.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{StatusCode, header};
use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use toolcrib_mcp::oauth::{
    self, ClientId, Error, Login, NeedsLogin, Upstream, client_for, needs_login,
};
use url::Url;

use crate::fake_sign_in::Fake;

type Client = AuthClient<reqwest::Client>;

/// A fake upstream and an empty state folder.
struct Setup {
    fake: Fake,
    upstream: Upstream,
    state: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let fake = Fake::start();
        let upstream = Upstream {
            name: "mail".to_owned(),
            url: fake.at("mcp").parse().unwrap(),
            client: ClientId::Register,
            scopes: Vec::new(),
            trusted_hosts: Vec::new(),
        };
        Self { fake, upstream, state: tempfile::tempdir().unwrap() }
    }

    async fn start(&self) -> Result<Login, Error> {
        Login::start(&self.upstream, self.state.path()).await
    }

    async fn login(&self) -> Result<(), Error> {
        let login = self.start().await?;
        let url = login.url().clone();
        let (done, page) = tokio::join!(login.finish(), browse(url));
        assert_eq!(page.status(), StatusCode::OK);
        done
    }

    async fn client(&self) -> Result<Client, Error> {
        client_for(&self.upstream, self.state.path(), browser()).await
    }

    /// The one file with credentials, if there is one.
    fn file(&self) -> Option<PathBuf> {
        let folder = std::fs::read_dir(self.state.path().join("oauth")).ok()?;
        let mut files = folder.map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|end| end == "json"))
    }

    fn kept(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.file().unwrap()).unwrap()).unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut kept = self.kept();
        change(&mut kept);
        std::fs::write(self.file().unwrap(), kept.to_string()).unwrap();
    }

    /// As if the access token had been fetched long ago.
    fn age(&self) {
        self.change(|kept| kept["credentials"]["token_received_at"] = json!(1));
    }

    fn needs_login(&self) -> NeedsLogin {
        NeedsLogin { server: self.upstream.name.clone() }
    }
}

fn browser() -> reqwest::Client {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Where the sign-in sends the browser back to.
async fn sign_in(url: Url) -> Url {
    let answer = browser().get(url).send().await.unwrap();
    answer.headers()[header::LOCATION].to_str().unwrap().parse().unwrap()
}

async fn browse(url: Url) -> reqwest::Response {
    browser().get(sign_in(url).await).send().await.unwrap()
}

async fn connect(
    client: Client,
    url: &Url,
) -> Result<
    rmcp::service::RunningService<rmcp::RoleClient, ()>,
    Box<rmcp::service::ClientInitializeError>,
> {
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    ().serve(StreamableHttpClientTransport::with_client(client, config)).await.map_err(Box::new)
}

fn assert_needs_login(result: Result<Client, Error>, setup: &Setup) {
    match result {
        Err(Error::NeedsLogin(needed)) => assert_eq!(needed, setup.needs_login()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_login_is_used_by_the_gateway() {
    let setup = Setup::new();
    assert_needs_login(setup.client().await, &setup);
    assert_eq!(setup.needs_login().to_string(), "`mail` needs a login; run: toolcrib login mail");
    setup.login().await.unwrap();

    let client = setup.client().await.unwrap();
    let running = connect(client, &setup.upstream.url).await.unwrap();
    assert!(running.list_all_tools().await.unwrap().is_empty());
    let knobs = setup.fake.knobs();
    assert!(!knobs.inside.is_empty());
    assert!(
        knobs.inside.iter().all(|given| given == "Bearer CANARY-access-2"),
        "{:?}",
        knobs.inside
    );
    assert_eq!((knobs.refreshes, knobs.registrations), (0, 1));
    drop(knobs);

    let kept = setup.kept();
    assert_eq!(kept["version"], 1);
    assert_eq!(kept["url"], setup.upstream.url.as_str());
    assert_eq!(kept["credentials"]["issuer"], setup.fake.issuer());
    assert!(!kept.to_string().contains("CANARY-id"), "only what is needed is kept");
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_private_from_the_login_on_and_after_a_refresh() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;

    let setup = Setup::new();
    setup.login().await.unwrap();
    let file = setup.file().unwrap();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    setup.age();
    setup.client().await.unwrap();
    assert_eq!(setup.fake.knobs().refreshes, 1);
    assert_eq!(mode(&file), 0o600);

    for shared in [0o640, 0o604] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(shared)).unwrap();
        assert_needs_login(setup.client().await, &setup);
    }
}

#[tokio::test]
async fn calls_that_find_the_token_old_refresh_it_once() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    let running = connect(client.clone(), &setup.upstream.url).await.unwrap();

    setup.age();
    let tokens = tokio::join!(
        client.get_access_token(),
        client.get_access_token(),
        client.get_access_token()
    );
    let valid = setup.fake.knobs().valid.clone().unwrap();
    assert_eq!(
        (tokens.0.unwrap(), tokens.1.unwrap(), tokens.2.unwrap()),
        (valid.clone(), valid.clone(), valid.clone())
    );
    assert_eq!(setup.fake.knobs().refreshes, 1);
    assert_eq!(setup.kept()["credentials"]["token_response"]["access_token"], valid.as_str());
    running.list_all_tools().await.unwrap();
    assert_eq!(setup.fake.knobs().inside.last().unwrap(), &format!("Bearer {valid}"));
}

#[tokio::test]
async fn calls_that_are_turned_away_refresh_it_once_too() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let running = connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
    // The clock says the token is good; the server has withdrawn it.
    setup.fake.knobs().valid = None;
    let calls = (0..8).map(|_| {
        let peer = running.peer().clone();
        tokio::spawn(async move { peer.list_all_tools().await.map(drop) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(setup.fake.knobs().refreshes, 1);
}

#[tokio::test]
async fn two_gateways_do_not_spend_the_same_refresh_token() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.age();
    setup.fake.knobs().token_delay = Duration::from_millis(50);
    let (one, two) = tokio::join!(setup.client(), setup.client());
    let (one, two) = (one.unwrap(), two.unwrap());
    let valid = setup.fake.knobs().valid.clone().unwrap();
    assert_eq!(one.get_access_token().await.unwrap(), valid);
    assert_eq!(two.get_access_token().await.unwrap(), valid);
}

#[tokio::test]
async fn a_refresh_outlives_the_connection_that_asked_for_it() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.age();
    setup.fake.knobs().token_delay = Duration::from_millis(300);
    assert!(tokio::time::timeout(Duration::from_millis(150), setup.client()).await.is_err());
    // Until the file changes, or for as long as a slow machine may take.
    let aged = setup.kept();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if setup.kept() != aged {
            break;
        }
    }
    assert_eq!(setup.fake.knobs().refreshes, 1);
    let valid = setup.fake.knobs().valid.clone().unwrap();
    assert_eq!(setup.kept()["credentials"]["token_response"]["access_token"], valid.as_str());
}

#[test]
fn the_futures_can_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    let setup = Setup::new();
    is_send(setup.client());
    is_send(setup.login());
}

#[tokio::test]
async fn a_refused_refresh_needs_a_login() {
    for code in ["invalid_grant", "invalid_client", "unauthorized_client"] {
        let setup = Setup::new();
        setup.login().await.unwrap();
        let running = connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
        setup.age();
        setup.fake.knobs().valid = None;
        setup.fake.knobs().token_answer = Some((StatusCode::BAD_REQUEST, json!({ "error": code })));
        assert_needs_login(setup.client().await, &setup);
        assert_eq!(setup.file(), None, "what was refused is not tried again");
        assert_needs_login(setup.client().await, &setup);

        // The connection that was open meanwhile learns it from its next call.
        let error = running.list_all_tools().await.unwrap_err();
        assert_eq!(needs_login("mail", &error), Some(setup.needs_login()), "{error:?}");
        // And so does the next login's connection, before and after.
        setup.fake.knobs().token_answer = None;
        setup.login().await.unwrap();
        connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
    }
}

#[tokio::test]
async fn an_error_at_the_connection_tells_a_login_from_a_fault() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    std::fs::remove_file(setup.file().unwrap()).unwrap();
    let error = connect(client.clone(), &setup.upstream.url).await.unwrap_err();
    assert_eq!(needs_login("mail", &*error), Some(setup.needs_login()), "{error:?}");

    let nobody = "http://127.0.0.1:9/mcp".parse().unwrap();
    let error = connect(client, &nobody).await.unwrap_err();
    assert_eq!(needs_login("mail", &*error), None, "{error:?}");
}

#[tokio::test]
async fn a_sign_in_that_is_down_for_now_costs_no_login() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.age();
    setup.fake.knobs().token_answer = Some((StatusCode::SERVICE_UNAVAILABLE, json!("later")));
    assert!(matches!(setup.client().await, Err(Error::Unavailable { .. })));
    setup.fake.knobs().token_answer = None;
    setup.client().await.unwrap();
}

#[tokio::test]
async fn only_the_answer_to_this_login_counts() {
    let setup = Setup::new();
    let login = setup.start().await.unwrap();
    let url = login.url().clone();
    let finish = tokio::spawn(login.finish());
    let back = sign_in(url).await;
    let state = back.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();

    let query = |text: String| {
        let mut url = back.clone();
        url.set_query(Some(&text));
        url
    };
    let strangers = [
        query(String::new()),
        query("code=x".to_owned()),
        query("code=x&state=".to_owned()),
        query("code=x&state=wrong".to_owned()),
        query(format!("code=x&state={state}x")),
        query(format!("code=x&state={state}&state={state}")),
        query(format!("code=x&code=y&state={state}")),
        query(format!("state={state}")),
        query("error=<script>alert(1)</script>&state=wrong".to_owned()),
    ];
    for url in strangers {
        let answer = browser().get(url.clone()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{url}");
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(answer.text().await.unwrap(), "This is not the answer that Toolcrib waits for.");
    }
    let rebound =
        browser().get(back.clone()).header(header::HOST, "evil.com").send().await.unwrap();
    assert_eq!(rebound.status(), StatusCode::FORBIDDEN);
    assert!(!finish.is_finished());
    assert_eq!(setup.file(), None);

    assert_eq!(browser().get(back.clone()).send().await.unwrap().status(), StatusCode::OK);
    finish.await.unwrap().unwrap();
    assert!(setup.file().is_some());
    assert!(browser().get(back).send().await.is_err(), "the listener is gone");
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    for iss in ["https://evil.example.com", ""] {
        let setup = Setup::new();
        setup.fake.knobs().iss = Some(iss.to_owned());
        let error = setup.login().await.unwrap_err();
        assert!(matches!(error, Error::Issuer { .. }), "{iss:?}: {error:?}");
        assert_eq!(setup.file(), None);
    }
    let setup = Setup::new();
    setup.fake.knobs().metadata.insert("issuer".to_owned(), json!("https://evil.example.com"));
    let error = setup.start().await.unwrap_err();
    assert!(matches!(error, Error::Issuer { .. }), "{error:?}");
}

#[tokio::test]
async fn credentials_are_bound_to_server_url_and_issuer() {
    let mut setup = Setup::new();
    setup.login().await.unwrap();
    let url = std::mem::replace(&mut setup.upstream.url, setup.fake.at("other").parse().unwrap());
    assert_needs_login(setup.client().await, &setup);
    setup.upstream.url = url;
    setup.upstream.name = "other".to_owned();
    assert_needs_login(setup.client().await, &setup);
    setup.upstream.name = "mail".to_owned();
    setup.client().await.unwrap();

    setup.change(|kept| kept["credentials"]["issuer"] = json!("https://before.example.com"));
    assert_needs_login(setup.client().await, &setup);
}

#[tokio::test]
async fn a_damaged_file_is_no_login_and_no_panic() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let whole = std::fs::read(setup.file().unwrap()).unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut kept: Value = serde_json::from_slice(&whole).unwrap();
        change(&mut kept);
        kept.to_string().into_bytes()
    };
    let damaged = [
        Vec::new(),
        b"{".to_vec(),
        b"null".to_vec(),
        vec![0xff; 100],
        whole[..whole.len() - 1].to_vec(),
        whole[..whole.len() / 2].to_vec(),
        changed(|kept| kept["version"] = json!(2)),
        changed(|kept| kept["server"] = json!("other")),
        changed(|kept| kept["url"] = json!("https://evil.example.com/")),
        changed(|kept| kept["credentials"]["issuer"] = Value::Null),
        changed(|kept| kept["credentials"]["token_response"] = Value::Null),
        changed(|kept| kept["credentials"]["token_response"]["access_token"] = json!(7)),
        changed(|kept| kept["credentials"] = json!([])),
    ];
    for bytes in damaged {
        std::fs::write(setup.file().unwrap(), &bytes).unwrap();
        assert_needs_login(setup.client().await, &setup);
    }
    setup.login().await.unwrap();
    setup.client().await.unwrap();
}

#[tokio::test]
async fn a_sign_in_is_not_sent_into_the_private_network() {
    let addresses = [
        "http://10.0.0.1/x",
        "https://10.0.0.1/x",
        "https://192.168.1.1/x",
        "https://169.254.169.254/x",
        "https://[fd00::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "http://example.com/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://user:pass@example.com/x",
        "-oProxyCommand=x",
    ];
    for address in addresses {
        for endpoint in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            let setup = Setup::new();
            setup.fake.knobs().metadata.insert(endpoint.to_owned(), json!(address));
            let error = setup.start().await.unwrap_err();
            assert!(matches!(error, Error::Barred { .. }), "{endpoint} {address}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_say_where_to_sign_in_is_not_guessed_at() {
    let setup = Setup::new();
    setup.fake.knobs().silent = true;
    assert!(matches!(setup.start().await, Err(Error::NoMetadata { .. })));
    assert_eq!(setup.fake.knobs().registrations, 0);
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_code_elsewhere() {
    let setup = Setup::new();
    setup.fake.knobs().token_redirect = Some(setup.fake.at("elsewhere"));
    let error = setup.login().await.unwrap_err();
    assert!(matches!(error, Error::Exchange { .. }), "{error:?}");
    assert_eq!((setup.fake.knobs().elsewhere, setup.file()), (0, None));
}

#[tokio::test]
async fn no_from_the_person_and_no_answer_at_all() {
    let setup = Setup::new();
    let login = setup.start().await.unwrap();
    let mut back = sign_in(login.url().clone()).await;
    let state = back.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    back.query_pairs_mut()
        .clear()
        .append_pair("state", &state)
        .append_pair("error", "access_denied\u{1b}[2J");
    let (done, page) = tokio::join!(login.finish(), browser().get(back).send());
    assert_eq!(page.unwrap().status(), StatusCode::OK);
    let error = done.unwrap_err();
    assert_eq!(error.to_string(), "the sign-in to `mail` was refused: access_denied?[2J");

    let login = setup.start().await.unwrap().within(Duration::from_millis(50));
    let back = sign_in(login.url().clone()).await;
    assert!(matches!(login.finish().await, Err(Error::TimedOut { .. })));
    assert!(browser().get(back).send().await.is_err(), "the listener is gone");
}

#[tokio::test]
async fn the_ways_to_be_known() {
    let mut setup = Setup::new();
    // A registration that gives a secret: it is kept, and used for the refresh.
    setup.fake.knobs().client_secret = Some("CANARY-secret".to_owned());
    setup.login().await.unwrap();
    setup.age();
    setup.client().await.unwrap();
    setup.age();
    setup.client().await.unwrap();
    let basic = |authorization: &Option<String>| {
        authorization.as_ref().is_some_and(|text| text.starts_with("Basic "))
    };
    assert_eq!(setup.fake.knobs().refreshes, 2);
    assert!(setup.fake.knobs().token_authorization.drain(..).all(|given| basic(&given)));

    // A client of the config, with its secret; nothing is registered, no secret is kept.
    setup.upstream.client =
        ClientId::Given { id: "ours".to_owned(), secret: Some("CANARY-config".into()) };
    assert_needs_login(setup.client().await, &setup);
    setup.login().await.unwrap();
    setup.age();
    setup.client().await.unwrap();
    assert!(setup.fake.knobs().token_authorization.drain(..).all(|given| basic(&given)));
    assert_eq!(setup.fake.knobs().registrations, 1);
    assert_eq!(setup.kept()["credentials"]["client_id"], "ours");
    assert!(!setup.kept().to_string().contains("CANARY-config"));

    // A document, where it is read; a registration elsewhere.
    let document = "https://toolcrib.example.com/client.json";
    setup.upstream.client = ClientId::Document(document.parse().unwrap());
    setup.fake.knobs().client_secret = None;
    setup.login().await.unwrap();
    assert_eq!(setup.fake.knobs().registrations, 2);
    setup
        .fake
        .knobs()
        .metadata
        .insert("client_id_metadata_document_supported".to_owned(), json!(true));
    setup.login().await.unwrap();
    assert_eq!(setup.fake.knobs().registrations, 2);
    assert_eq!(setup.kept()["credentials"]["client_id"], document);
    setup.client().await.unwrap();
}

/// Everything that is written while a whole history runs at the finest log level.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_secret_reaches_a_log_an_error_or_a_debug_text() {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _listening = tracing::subscriber::set_default(subscriber);
    let mut said = Vec::new();
    let mut say = |error: &oauth::Error| {
        said.push(format!("{error} {error:?} {error:#?} {}", error.hint()));
    };

    let setup = Setup::new();
    setup.fake.knobs().client_secret = Some("CANARY-secret".to_owned());
    let login = setup.start().await.unwrap();
    tracing::info!("{login:?} {:?}", setup.upstream);
    drop(login);
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    tracing::info!("{client:?}");
    let running = connect(client, &setup.upstream.url).await.unwrap();
    running.list_all_tools().await.unwrap();
    setup.age();
    running.list_all_tools().await.unwrap();
    setup.fake.knobs().valid = None;
    let error = running.list_all_tools().await;
    tracing::info!("{error:?}");

    // Sign-ins that repeat what they were given, in every field they have.
    let echo = json!({
        "error": "CANARY", "error_description": "CANARY", "error_uri": "http://CANARY", "access_token": ["CANARY"],
        "refresh_token": {"CANARY": 1}, "expires_in": "CANARY", "token_type": "CANARY", "id_token": "CANARY",
    });
    let mut refusal = echo.clone();
    refusal["error"] = json!("invalid_grant");
    for (status, answer) in [
        (StatusCode::OK, echo.clone()),
        (StatusCode::OK, json!({ "access_token": "CANARY", "token_type": 1 })),
        (StatusCode::OK, json!("CANARY")),
        (StatusCode::BAD_REQUEST, echo.clone()),
        (StatusCode::INTERNAL_SERVER_ERROR, echo),
        (StatusCode::BAD_REQUEST, refusal),
    ] {
        setup.fake.knobs().token_answer = None;
        setup.login().await.unwrap();
        setup.age();
        setup.fake.knobs().token_answer = Some((status, answer));
        say(&setup.client().await.unwrap_err());
        say(&setup.login().await.unwrap_err());
    }
    setup.fake.knobs().token_answer = None;
    setup.login().await.unwrap();
    setup.change(|kept| kept["credentials"]["token_response"]["expires_in"] = json!("CANARY"));
    say(&setup.client().await.unwrap_err());

    let log = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("rmcp::transport::auth"), "the log was read");
    for text in [log, said.concat()] {
        let leak =
            text.find("CANARY").map(|at| &text[at.saturating_sub(300)..(at + 40).min(text.len())]);
        assert_eq!(leak, None);
    }
}
